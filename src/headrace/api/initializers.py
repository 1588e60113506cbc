"""tf.initializers: what makes the initial values of variables."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
