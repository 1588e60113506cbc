"""How the elements of each type stand in the data files of a bundle.

Numbers are the bytes that they take in memory, little-endian. Strings are their lengths, 7 bits
per byte, then a checksum of the lengths, then the strings one after another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import google_crc32c
import numpy as np

from headrace.errors import UnimplementedError
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import table

Array = np.ndarray[Any, Any]

if sys.byteorder != "little":
    raise ImportError("Checkpoints are little-endian; this machine is big-endian.")


def check_can_be_saved(dtype: DType) -> None:
    """Raise UnimplementedError for handles, which stand for state and are no data."""
    if not dtype.is_numpy_compatible or dtype in (dtypes.resource, dtypes.variant):
        raise UnimplementedError(None, None, f"Tensors of type {dtype.name} cannot be saved.")


def stored_bytes(dtype: DType, array: Array) -> int:
    """About how many bytes an array takes in a file."""
    if dtype is dtypes.string:
        return 5 * array.size + sum(map(len, array.ravel().tolist()))
    return array.size * dtype.size


def to_bytes(array: Array) -> Array:
    """The bytes of an array of numbers, as uint8; a view where that is possible."""
    if array.size == 0:
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def strings_to_bytes(array: Array) -> tuple[bytes, int]:
    """The bytes of an array of strings, and the masked checksum of its entry."""
    items = array.ravel().tolist()
    lengths = list(map(len, items))
    crc = _crc_of_lengths(lengths)
    behind = table.masked(crc).to_bytes(4, "little") + b"".join(items)
    content = b"".join(map(table.to_varint, lengths)) + behind
    return content, table.masked(google_crc32c.extend(crc, behind))


def _crc_of_lengths(lengths: Iterable[int]) -> int:
    """The checksum of strings covers their lengths as numbers of fixed size."""
    fixed = b"".join(n.to_bytes(4 if n < 1 << 32 else 8, "little") for n in lengths)
    return int(google_crc32c.value(fixed))


def strings_from(content: bytes, shape: Sequence[int], crc: int) -> Array | None:
    """The strings that `strings_to_bytes` wrote; None if ``crc`` does not fit.

    Raises:
        ValueError: if the lengths do not fit the data.
    """
    count = 1
    for n in shape:
        count *= n
    if count > len(content):
        raise ValueError("there are more strings than bytes")
    lengths, at = [], 0
    for _ in range(count):
        length, at = table.varint(content, at)
        lengths.append(length)
    if at + 4 + sum(lengths) != len(content):
        raise ValueError("the lengths of the strings do not fit the data")
    if table.masked(google_crc32c.extend(_crc_of_lengths(lengths), content[at:])) != crc:
        return None
    at += 4
    items = []
    for length in lengths:
        items.append(content[at : at + length])
        at += length
    array = np.empty(shape, object)
    array.reshape(-1)[:] = items
    return array


def allocate(dtype: DType, shape: Sequence[int]) -> Array:
    """An array to read a tensor into."""
    array = np.empty(shape, dtype.np_dtype)
    if dtype is dtypes.string:
        array.fill(b"")
    return array


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array of numbers, as uint8, to be written to."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
