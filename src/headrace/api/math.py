"""``tf.math``: arithmetic, functions, comparisons and reductions."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
