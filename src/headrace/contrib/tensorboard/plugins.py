"""``tf.contrib.tensorboard.plugins``."""

from headrace.contrib.tensorboard import projector as projector

__all__ = ["projector"]
