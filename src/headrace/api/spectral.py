"""``tf.spectral``: Fourier transforms."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
