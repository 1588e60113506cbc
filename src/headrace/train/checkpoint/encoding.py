"""How the elements of each type stand in a safetensors file.

Types that safetensors has are stored as they are. The others:

| type | safetensors | bytes |
|---|---|---|
| complex64, complex128 | F32, F64 with one more axis of size 2 | real part, imaginary part |
| string | U8, one axis | the lengths, 8 bytes each, then the strings one after another |
| qint8, quint8, qint16, quint16, qint32 | I8, U8, I16, U16, I32 | the integers |

All numbers are little-endian. The manifest names the type that was saved.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataLossError, UnimplementedError
from headrace.graph import dtypes
from headrace.graph.dtypes import DType

Array = np.ndarray[Any, Any]

_SAFETENSORS = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "bfloat16": "BF16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "complex64": "F32",
    "complex128": "F64",
    "string": "U8",
    "qint8": "I8",
    "quint8": "U8",
    "qint16": "I16",
    "quint16": "U16",
    "qint32": "I32",
}

if sys.byteorder != "little":
    raise ImportError("Checkpoints are little-endian; this machine is big-endian.")


def stored_type(dtype: DType) -> str:
    """The safetensors type that holds ``dtype``.

    Raises:
        UnimplementedError: for handles, which stand for state and are no data.
    """
    found = _SAFETENSORS.get(dtype.name)
    if found is None:
        raise UnimplementedError(None, None, f"Tensors of type {dtype.name} cannot be saved.")
    return found


def stored_shape(dtype: DType, shape: Sequence[int], size: int) -> list[int]:
    """The shape in the safetensors header of ``size`` bytes that hold a piece."""
    if dtype is dtypes.string:
        return [size]
    return [*shape, 2] if dtype.is_complex else list(shape)


def stored_bytes(dtype: DType, array: Array) -> int:
    """How many bytes an array takes in a file."""
    if dtype is dtypes.string:
        return 8 * array.size + sum(map(len, array.ravel().tolist()))
    return array.size * dtype.size


def to_bytes(dtype: DType, array: Array) -> Array:
    """The bytes of an array, as uint8; a view where that is possible."""
    if dtype is dtypes.string:
        items = array.ravel().tolist()
        lengths = np.fromiter(map(len, items), "<u8", len(items))
        return np.frombuffer(lengths.tobytes() + b"".join(items), np.uint8)
    if array.size == 0:
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def allocate(dtype: DType, shape: Sequence[int]) -> Array:
    """An array to read a tensor into."""
    array = np.empty(shape, dtype.np_dtype)
    if dtype is dtypes.string:
        array.fill(b"")
    return array


def bytes_of(array: Array) -> Array:
    """The memory of a contiguous array of numbers, as uint8, to be written to."""
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)


def strings_from(data: Array, shape: Sequence[int], where: str) -> Array:
    """The strings that `to_bytes` wrote.

    Raises:
        DataLossError: if the lengths do not fit the data.
    """
    array = np.empty(shape, object)
    head = 8 * array.size
    lengths = data[:head].view("<u8") if data.size >= head else None
    if lengths is None or int(lengths.sum()) != data.size - head:
        raise DataLossError(None, None, f"{where}: the string lengths do not fit the data.")
    content, begin, items = data[head:].tobytes(), 0, []
    for length in lengths.tolist():
        items.append(content[begin : begin + length])
        begin += length
    array.reshape(-1)[:] = items
    return array
