"""Kernels of oneDNN on CPUs: an optional library of ours, built from the C++ beside this file.

`library` answers it, or None where it was not built, or does not fit: then XLA does all. See
docs/native.md; ``python -m headrace.native`` builds it.
"""

from headrace.native.loading import (
    CONVOLUTION,
    ELEMENTS,
    POOL,
    PRODUCT,
    Library,
    library,
    portable,
)

__all__ = ["CONVOLUTION", "ELEMENTS", "POOL", "PRODUCT", "Library", "library", "portable"]
