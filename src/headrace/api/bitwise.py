"""``tf.bitwise``: operations on the bits of integers, elementwise with broadcasting."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
