"""``tf.signal``: Fourier transforms, under their later name."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
