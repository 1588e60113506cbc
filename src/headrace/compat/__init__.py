"""``tf.compat``: strings of both kinds, and the interface under its 1.x name, ``tf.compat.v1``.

`headrace.compat.tensorflow` makes programs that say ``import tensorflow`` run on Headrace.
"""

from __future__ import annotations

import numbers as _numbers
import os as _os
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from typing import Any

import numpy as _np

from headrace.graph.shapes import Dimension, TensorShape, dimension_value
from headrace.namespaces.lazy import lazy as _lazy

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
]

integral_types = (_numbers.Integral, _np.integer)
real_types = (_numbers.Real, _np.integer, _np.floating)
complex_types = (_numbers.Complex, _np.number)
bytes_or_text_types = (bytes, str)

#: The day that `forward_compatible` takes for today: that of the last 1.x release.
_horizon = (2019, 8, 21)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """A string, bytes or bytearray as bytes.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """A string or bytes as a string.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Bytes decoded, anything else as ``str`` writes it."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as a string; other values as they are."""
    return as_str_any(path.__fspath__()) if isinstance(path, _os.PathLike) else path


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The dimension of ``shape`` at ``index``; an unknown one where the rank is unknown.

    Raises:
        IndexError: if the rank is known and ``index`` lies outside.
    """
    return Dimension(None) if shape.dims is None else shape.dims[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether readers of graphs may be taken to know what TensorFlow had on that day.

    Raises:
        TypeError: if an argument cannot be compared with a number.
    """
    return _horizon > (year, month, day)


@_contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> _Iterator[None]:
    """Let `forward_compatible` take another day for today.

    Raises:
        TypeError: inside, from `forward_compatible`, if these or its numbers cannot be compared.
    """
    global _horizon
    before, _horizon = _horizon, (year, month, day)
    try:
        yield
    finally:
        _horizon = before


__getattr__, __dir__ = _lazy(__name__, modules={"v1": "headrace"})
