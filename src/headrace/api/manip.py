"""``tf.manip``: functions that rearrange tensors, under their names of release 1.6."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
