"""``tf.signal``: Fourier transforms, under their later name."""

from headrace.spectral import *  # noqa: F403
from headrace.spectral import __all__ as __all__
