"""Importing this module lets the process say ``import tensorflow`` and mean Headrace.

    import headrace.compat.tensorflow
    import tensorflow as tf                      # Headrace, with TensorFlow's version number
    from tensorflow.python.framework import ops

Raises ImportError if TensorFlow itself is imported already.
"""

from typing import Any

from headrace.compat.aliases import install

_TENSORFLOW = install()


def __getattr__(name: str) -> Any:
    return getattr(_TENSORFLOW, name)


def __dir__() -> list[str]:
    return dir(_TENSORFLOW)
