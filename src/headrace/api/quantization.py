"""``tf.quantization``: floats as small integers, and what makes up for their rounding."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
