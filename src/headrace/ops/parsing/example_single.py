"""The dense features of one Example message, read without the means for batches.

Queue runners parse one message at a time; the arrays of a batch of one would cost more than the
parsing. What is out of the ordinary is left to ``example_parse``, and so are all errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.ops.parsing.example_scan import (
    BYTES,
    FLOAT,
    Malformed,
    Span,
    decode_ints,
    open_feature,
    packed,
    scan_example,
    strings,
)

Array = np.ndarray[Any, Any]


class DenseLayout:
    """Features of fixed shapes.

    Args:
        slots: the number of each key.
        kinds, shapes: of each feature; the sizes are all known.
    """

    def __init__(
        self, slots: dict[bytes, int], kinds: Sequence[int], shapes: Sequence[tuple[int, ...]]
    ) -> None:
        self._slots = slots
        self._empty: list[Span | None] = [None] * len(slots)
        self._features = [
            (kind, shape, math.prod(shape)) for kind, shape in zip(kinds, shapes, strict=True)
        ]

    def read(self, message: bytes) -> list[Array] | None:
        """An array for each feature; None if a feature is missing, or does not fit."""
        found = self._empty.copy()
        try:
            scan_example(message, self._slots, found)
            return [
                self._array(span, *feature)
                for span, feature in zip(found, self._features, strict=True)
            ]
        except (Malformed, _Unusual):
            return None

    @staticmethod
    def _array(span: Span | None, kind: int, shape: tuple[int, ...], size: int) -> Array:
        if span is None:
            raise _Unusual
        there, values = open_feature(span)
        if there != kind:
            raise _Unusual
        array: Array
        if kind == BYTES:
            items = strings(values)
            if len(items) != size:
                raise _Unusual
            array = np.empty(shape, object)
            if shape:
                array.reshape(-1)[:] = items
            else:
                array[()] = items[0]
            return array
        raw = packed(values, kind == FLOAT)
        if kind == FLOAT:
            array = np.frombuffer(raw, "<f4")
        elif size == 1:
            return np.full(shape, _single_int(raw), np.int64)
        else:
            array = decode_ints(raw)[0]
        if array.size != size:
            raise _Unusual
        return array.reshape(shape)


def _single_int(raw: bytes) -> int:
    """The number that a packed list of one holds."""
    value = shift = 0
    for byte in raw:
        if shift == 70:
            raise _Unusual
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 and shift != 7 * len(raw):
            raise _Unusual
    if not raw:
        raise _Unusual
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


class _Unusual(Exception):
    """Something that only the parser of batches knows how to treat."""
