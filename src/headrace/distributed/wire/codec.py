"""Values of a step as they cross from one process to another: a small description and buffers.

The description (`TensorMeta`) is a protocol buffer; the contents stay outside of it, as plain bytes
that a transport can hand over without looking at them. Nothing is pickled. What a peer describes is
checked in full before memory is taken or touched.

Arrays are not copied on either side: the buffers of a raw tensor are views of the array, and a
decoded array lies over the received buffer, read-only.

    >>> meta, buffers = encode(np.float32([1.0, 2.0]))
    >>> decode(meta, buffers)
    array([1., 2.], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import jax
import numpy as np

from headrace.distributed.protocol import wire_pb2 as pb
from headrace.distributed.protocol.wire_pb2 import TensorMeta
from headrace.distributed.wire.compress import (
    Buffer,
    ErrorFeedback,
    compress,
    damaged,
    expand,
    malformed,
    size_of,
)
from headrace.errors import InvalidArgumentError
from headrace.executor.resources import ResourceHandle
from headrace.graph import dtypes
from headrace.ops.control.tensor_list_kernels import TensorList

#: Lists within lists; deeper ones are refused on both sides.
MAX_DEPTH: Final = 32
#: NumPy's own limit.
MAX_RANK: Final = 64
#: TensorFlow counts the elements of a list in 32 bits.
MAX_LIST_SIZE: Final = 2**31 - 1

_NUMBERS: Final[dict[np.dtype[Any], int]] = {
    t.np_dtype: t.as_datatype_enum for t in dtypes.NUMBER_TYPES | {dtypes.bool}
}
_NP_DTYPES: Final[dict[int, np.dtype[Any]]] = {
    t.as_datatype_enum: t.np_dtype for t in dtypes.XLA_TYPES
}
_BOOL: Final = dtypes.bool.as_datatype_enum
_STRING: Final = dtypes.string.as_datatype_enum
_RESOURCE: Final = dtypes.resource.as_datatype_enum
_VARIANT: Final = dtypes.variant.as_datatype_enum
_OFFSETS: Final = np.dtype("<i8")


def encode(
    value: Any, precision: str = "", feedback: ErrorFeedback | None = None
) -> tuple[TensorMeta, list[Buffer]]:
    """Describes ``value`` and gives its contents as buffers, without copying where that can be.

    Takes NumPy and JAX arrays and scalars of every tensor type (strings: bytes and str), Python
    scalars (int32 or, where that is too small, int64; float32; bool; complex128), `TensorList`,
    `ResourceHandle`, and None for a value that is absent. The value must not change until the
    buffers are written.

    Args:
      precision: one of `wire_precision.PRECISIONS` or "": how arrays of float32 and float64 go;
        arrays within lists always go as they are.
      feedback: what earlier "int8" transfers of the same edge left out.

    Raises:
      InvalidArgumentError: no tensor can hold the value, or there is no such precision.
    """
    if value.__class__ is not np.ndarray:
        if not isinstance(value, (jax.Array, np.generic)):
            buffers: list[Buffer] = []
            return _encode_any(value, buffers, 0), buffers
        value = np.asarray(value)
    if precision:
        compressed = compress(value, precision, feedback)
        if compressed is not None:
            encoding, buffers = compressed
            number = _NUMBERS[value.dtype]
            return TensorMeta(
                dtype=number, dims=value.shape, encoding=encoding, buffers=len(buffers)
            ), buffers
    return _encode_array(value)


def encode_many(
    values: Sequence[Any],
    precisions: Sequence[str] | None = None,
    feedbacks: Sequence[ErrorFeedback | None] | None = None,
) -> tuple[list[TensorMeta], list[Buffer]]:
    """`encode` of each value; the buffers of all of them stand one after the other.

    Raises:
      InvalidArgumentError: as `encode`.
      ValueError: the sequences differ in length.
    """
    metas: list[TensorMeta] = []
    buffers: list[Buffer] = []
    choices = repeat("", len(values)) if precisions is None else precisions
    residues = repeat(None, len(values)) if feedbacks is None else feedbacks
    for value, precision, feedback in zip(values, choices, residues, strict=True):
        meta, own = encode(value, precision, feedback)
        metas.append(meta)
        buffers += own
    return metas, buffers


def decode(meta: TensorMeta, buffers: Sequence[Buffer]) -> Any:
    """The value that ``meta`` describes. Arrays lie over ``buffers`` and are read-only.

    Strings come as object arrays of bytes, scalars as arrays of rank 0, quantised types as plain
    integers.

    Raises:
      InvalidArgumentError: the description makes no sense.
      DataLossError: the contents do not fit the description.
    """
    if meta.buffers != len(buffers):
        raise damaged(f"{len(buffers)} buffers came for a value that has {meta.buffers}")
    return _Decoder(buffers).value(meta, 0, 0)


def decode_many(metas: Iterable[TensorMeta], buffers: Sequence[Buffer]) -> list[Any]:
    """The values that `encode_many` was given.

    Raises:
      InvalidArgumentError, DataLossError: as `decode`.
    """
    decoder = _Decoder(buffers)
    values = [decoder.value(meta, 0, 0) for meta in metas]
    if decoder.next != len(buffers):
        raise damaged(f"{len(buffers)} buffers came for values that have {decoder.next}")
    return values


# -- encoding -----------------------------------------------------------------------------------


def _encode_array(array: np.ndarray[Any, Any]) -> tuple[TensorMeta, list[Buffer]]:
    number = _NUMBERS.get(array.dtype)
    if number is None:
        return _encode_unusual(array)
    return _encode_raw(number, array)


def _encode_raw(number: int, array: np.ndarray[Any, Any]) -> tuple[TensorMeta, list[Buffer]]:
    shape = array.shape
    if not array.size:
        return TensorMeta(dtype=number, dims=shape), []
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    content = array.reshape(-1).view(np.uint8)
    return TensorMeta(dtype=number, dims=shape, buffers=1), [content]


def _encode_unusual(array: np.ndarray[Any, Any]) -> tuple[TensorMeta, list[Buffer]]:
    """Strings, foreign byte orders, and the records of one field that name quantised types."""
    try:
        dtype = dtypes.np_array_dtype(array)
    except TypeError as error:
        raise InvalidArgumentError(None, None, str(error)) from None
    if dtype is dtypes.string:
        return _encode_strings(array)
    if array.dtype.names is not None:
        array = array.view(dtype.np_dtype)
    return _encode_raw(dtype.as_datatype_enum, array.astype(dtype.np_dtype, copy=False))


def _encode_strings(array: np.ndarray[Any, Any]) -> tuple[TensorMeta, list[Buffer]]:
    items = array.ravel().tolist()
    meta = TensorMeta(dtype=_STRING, dims=array.shape, encoding=pb.STRINGS)
    if not items:
        return meta, []
    if any(item.__class__ is not bytes for item in items):
        items = [_string(item) for item in items]
    ends = np.cumsum(np.fromiter(map(len, items), _OFFSETS, len(items)))
    buffers: list[Buffer] = [ends.view(np.uint8)]
    if ends[-1]:
        buffers.append(np.frombuffer(b"".join(items), np.uint8))
    meta.buffers = len(buffers)
    return meta, buffers


def _string(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "surrogateescape")
    raise InvalidArgumentError(
        None,
        None,
        f"A string tensor holds a value of type {type(item).__name__}; only bytes and str can be "
        "sent to another task.",
    )


def _encode_any(value: Any, buffers: list[Buffer], depth: int) -> TensorMeta:
    """`encode` for every kind of value; appends to ``buffers``."""
    if value is None:
        return TensorMeta(encoding=pb.NONE)
    if isinstance(value, TensorList):
        return _encode_list(value, buffers, depth)
    if isinstance(value, ResourceHandle):
        name = pb.ResourceName(kind=value.kind, container=value.container, name=value.name)
        return TensorMeta(dtype=_RESOURCE, encoding=pb.HANDLE, handle=name)
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
    else:
        array = _python_scalar(value)
    meta, own = _encode_array(array)
    buffers += own
    return meta


def _python_scalar(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (bytes, str)):
        array = np.empty((), object)
        array[()] = value
        return array
    if isinstance(value, (bool, complex)) and not isinstance(value, float):
        return np.asarray(value)
    if isinstance(value, float):
        return np.asarray(value, np.float32)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        small = -(2**31) <= value < 2**31
        return np.asarray(value, np.int32 if small else np.int64)
    raise InvalidArgumentError(
        None, None, f"A value of type {type(value).__name__} cannot be sent to another task."
    )


def _encode_list(value: TensorList, buffers: list[Buffer], depth: int) -> TensorMeta:
    if depth >= MAX_DEPTH:
        raise InvalidArgumentError(
            None, None, f"A tensor list is nested deeper than {MAX_DEPTH} lists."
        )
    before = len(buffers)
    meta = TensorMeta(dtype=_VARIANT)
    if value.items is not None:
        meta.encoding = pb.LIST_ITEMS
        children = value.items
    else:
        repeats = value.repeated is not None
        meta.encoding = pb.LIST_REPEATED if repeats else pb.LIST_STACKED
        children = (value.repeated if repeats else value.buffer,)
        if isinstance(value.size, int):
            meta.list_size = value.size
        else:
            children = (*children, value.size)
    meta.items.extend([_encode_any(child, buffers, depth + 1) for child in children])
    meta.buffers = len(buffers) - before
    return meta


# -- decoding -----------------------------------------------------------------------------------


class _Decoder:
    """Takes values from a row of buffers; ``next`` is the first buffer not taken yet."""

    __slots__ = ("buffers", "next")

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self.next = 0

    def value(self, meta: TensorMeta, depth: int, stacked: int) -> Any:
        """The next value; ``depth`` lists are around it, ``stacked`` of them in stacked form."""
        encoding = meta.encoding
        if encoding == pb.RAW:
            return self._raw(meta)
        start = self.next
        if encoding == pb.STRINGS:
            value: Any = self._strings(meta)
        elif encoding in (pb.LIST_ITEMS, pb.LIST_STACKED, pb.LIST_REPEATED):
            value = self._list(meta, depth, stacked)
        elif encoding in (pb.BFLOAT16_TRUNCATED, pb.FLOAT16, pb.INT8_BLOCKS):
            value = self._compressed(meta)
        elif encoding == pb.HANDLE:
            name = meta.handle
            value = ResourceHandle(name.kind, name.container, name.name)
        elif encoding == pb.NONE:
            value = None
        else:
            raise malformed(f"unknown encoding {encoding}")
        if self.next - start != meta.buffers:
            raise malformed(f"it takes {self.next - start} buffers but names {meta.buffers}")
        return value

    def _take(self) -> Buffer:
        if self.next >= len(self.buffers):
            raise damaged(f"it needs more than the {len(self.buffers)} buffers that came")
        self.next += 1
        return self.buffers[self.next - 1]

    def _raw(self, meta: TensorMeta) -> np.ndarray[Any, Any]:
        dtype = _NP_DTYPES.get(meta.dtype)
        if dtype is None:
            raise malformed(f"unknown element type {meta.dtype}")
        dims = tuple(meta.dims)
        count = _element_count(dims)
        if meta.buffers != (count > 0):
            raise malformed(f"{count} elements in {meta.buffers} buffers")
        if not count:
            return _empty(dims, dtype)
        buffer = self._take()
        if size_of(buffer) != count * dtype.itemsize:
            raise damaged(f"{dtype}{list(dims)} in {size_of(buffer)} bytes")
        array: np.ndarray[Any, Any] = np.ndarray(dims, dtype, buffer)
        if not array.flags.aligned:
            array = array.copy()
        array.flags.writeable = False
        if meta.dtype == _BOOL and array.view(np.uint8).max() > 1:
            raise damaged("a bool that is neither 0 nor 1")
        return array

    def _compressed(self, meta: TensorMeta) -> np.ndarray[Any, Any]:
        dims = tuple(meta.dims)
        count = _element_count(dims)
        if not count:
            raise malformed("compressed though it has no elements")
        if meta.dtype not in _NP_DTYPES:
            raise malformed(f"unknown element type {meta.dtype}")
        if not 1 <= meta.buffers <= 3:
            raise malformed(f"compressed elements in {meta.buffers} buffers")
        buffers = [self._take() for _ in range(meta.buffers)]
        array = expand(meta.encoding, _NP_DTYPES[meta.dtype], count, buffers).reshape(dims)
        array.flags.writeable = False
        return array

    def _strings(self, meta: TensorMeta) -> np.ndarray[Any, Any]:
        if meta.dtype != _STRING:
            raise malformed(f"strings of element type {meta.dtype}")
        dims = tuple(meta.dims)
        count = _element_count(dims)
        if not count:
            return _empty(dims, np.dtype(object))
        buffer = self._take()
        if size_of(buffer) != count * _OFFSETS.itemsize:
            raise damaged(f"offsets of {count} strings in {size_of(buffer)} bytes")
        ends = np.frombuffer(buffer, _OFFSETS)
        total = int(ends[-1])
        if ends[0] < 0 or (ends[1:] < ends[:-1]).any():
            raise damaged("the offsets of its strings are not in order")
        data = bytes(self._take()) if total else b""
        if len(data) != total:
            raise damaged(f"strings of {total} bytes in {len(data)} bytes")
        array = np.empty(count, object)
        places = ends.tolist()
        array[:] = [data[a:b] for a, b in zip([0, *places], places, strict=False)]
        return array.reshape(dims)

    def _list(self, meta: TensorMeta, depth: int, stacked: int) -> TensorList:
        if depth >= MAX_DEPTH:
            raise malformed(f"lists are nested deeper than {MAX_DEPTH}")
        if meta.encoding == pb.LIST_ITEMS:
            return TensorList(tuple([self.value(m, depth + 1, stacked) for m in meta.items]))
        repeats = meta.encoding == pb.LIST_REPEATED
        if len(meta.items) not in (1, 2):
            raise malformed(f"a list made of {len(meta.items)} items")
        content = self.value(meta.items[0], depth + 1, stacked + (not repeats))
        size: Any = meta.list_size
        if len(meta.items) == 2:
            size = self.value(meta.items[1], depth + 1, stacked)
            if not isinstance(size, np.ndarray) or size.dtype.kind not in "iu":
                raise malformed("the size of a list is no integer")
        if stacked == 0:
            _check_size(size, MAX_LIST_SIZE if repeats else _rows(content))
        elif isinstance(size, int) and not 0 <= size <= MAX_LIST_SIZE:
            raise malformed(f"a list of {size} elements")
        if content is None:
            raise malformed("a list of nothing")
        return (
            TensorList(repeated=content, size=size)
            if repeats
            else TensorList(buffer=content, size=size)
        )


def _element_count(dims: tuple[int, ...]) -> int:
    if len(dims) > MAX_RANK:
        raise malformed(f"{len(dims)} dimensions; there may be {MAX_RANK}")
    if dims and min(dims) < 0:
        raise malformed(f"negative dimension in {list(dims)}")
    return math.prod(dims)


def _empty(dims: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    try:
        array: np.ndarray[Any, Any] = np.empty(dims, dtype)
    except ValueError:  # NumPy refuses shapes whose other dimensions overflow
        raise malformed(f"dimensions {list(dims)} are too large") from None
    array.flags.writeable = False
    return array


def _rows(content: Any) -> int:
    """How many rows a stack has, which its leaves must agree on."""
    leaves = jax.tree.leaves(content)
    rows = {leaf.shape[0] if np.ndim(leaf) else -1 for leaf in leaves}
    if len(rows) != 1 or -1 in rows:
        raise malformed("a list whose stack has no common first dimension")
    return int(rows.pop())


def _check_size(size: Any, limit: int) -> None:
    if np.ndim(size) or not 0 <= int(size) <= limit:
        raise malformed(f"a list of size {size} where at most {limit} elements can be")
