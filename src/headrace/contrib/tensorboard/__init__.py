"""``tf.contrib.tensorboard``: settings of TensorBoard's plugins."""

from headrace.contrib.tensorboard import plugins as plugins

__all__ = ["plugins"]
