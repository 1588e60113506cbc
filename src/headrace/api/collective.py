"""``tf.collective``: each member gives a tensor, and gets what all of them make."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
