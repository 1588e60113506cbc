"""``tf.sparse``: tensors given by their elements that are not zero."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
