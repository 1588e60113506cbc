"""Reading TensorFlow's V2 checkpoints (tensor bundles).

``prefix.index`` is a table: under the empty key a header, under each name an entry with type,
shape, and place in the data files ``prefix.data-00000-of-00001``... A tensor saved in parts has an
entry that lists the slices, and one more entry for each slice, under an ordered encoding of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import google_crc32c
import numpy as np
from google.protobuf.message import DecodeError

from headrace.errors import DataLossError, UnimplementedError
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import table
from headrace.train.checkpoint.data_files import FileFormat
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor, data_path, index_path
from headrace.train.checkpoint.slices import Box, box_of

Array = np.ndarray[Any, Any]


class BundleFormat(FileFormat):
    """How pieces of TensorFlow's files are checked and decoded."""

    name = "TensorFlow V2 bundle"

    def crc_of(self, piece: Piece, dtype: DType, data: Array, crc: int) -> int:
        if dtype is not dtypes.string:
            return table.masked(crc)
        # The checksum of strings covers their lengths as fixed-size numbers, then the rest.
        content = data.tobytes()
        try:
            lengths, at = _lengths(content, piece.box.elements)
        except ValueError:
            return -1
        over = 0
        for length in lengths:
            over = google_crc32c.extend(
                over, length.to_bytes(4 if length < 1 << 32 else 8, "little")
            )
        return table.masked(google_crc32c.extend(over, content[at:]))

    def strings(self, data: Array, shape: Sequence[int], where: str) -> Array:
        array = np.empty(shape, object)
        content = data.tobytes()
        try:
            lengths, at = _lengths(content, array.size)
        except ValueError as error:
            raise DataLossError(None, None, f"{where}: {error}") from error
        at += 4  # the checksum of the lengths
        if at + sum(lengths) != len(content):
            raise DataLossError(None, None, f"{where}: the string lengths do not fit the data.")
        items = []
        for length in lengths:
            items.append(content[at : at + length])
            at += length
        array.reshape(-1)[:] = items
        return array


def _lengths(content: bytes, count: int) -> tuple[list[int], int]:
    lengths, at = [], 0
    for _ in range(count):
        length, at = table.varint(content, at)
        lengths.append(length)
    return lengths, at


def load(prefix: str, data: bytes | None = None) -> Layout:
    """What a bundle holds; ``data`` is its index file if that was read already.

    Raises:
        NotFoundError: if there is no index file.
        DataLossError: if it is damaged.
        UnimplementedError: if it was written on a big-endian machine, or has unknown types.
    """
    from headrace.graph.proto import BundleEntryProto, BundleHeaderProto

    path = index_path(prefix)
    data = system.read_bytes(path) if data is None else data
    try:
        found = dict(table.entries(data, path))
        if b"" not in found:
            raise DataLossError(None, None, f"{path} has no header: it is no checkpoint index.")
        header = BundleHeaderProto.FromString(found.pop(b""))
        parsed = {key: BundleEntryProto.FromString(value) for key, value in found.items()}
    except DecodeError as error:
        raise DataLossError(None, None, f"{path} is no checkpoint index: {error}") from error
    if header.endianness != BundleHeaderProto.LITTLE:
        raise UnimplementedError(None, None, f"{path} was written on a big-endian machine.")
    tensors = {}
    for key, entry in parsed.items():
        if key.startswith(_SLICE_MARK):
            continue
        name = key.decode("utf-8", "surrogateescape")
        tensors[name] = _tensor(path, name, entry, parsed, header.num_shards)
    count = header.num_shards
    files = [data_path(prefix, i, count) for i in range(count)]
    return Layout(prefix, BundleFormat(), files, [None] * count, tensors)


def _tensor(
    path: str, name: str, entry: Any, entries: dict[bytes, Any], shards: int
) -> StoredTensor:
    try:
        dtype = dtypes.DType(entry.dtype)
    except TypeError:
        raise UnimplementedError(
            None, None, f"{path}: tensor {name} has a type unknown here, number {entry.dtype}."
        ) from None
    shape = tuple(d.size for d in entry.shape.dim)
    tensor = StoredTensor(dtype, shape)
    places = [(entry, Box.whole(shape))]
    if entry.slices:
        places = []
        for piece in entry.slices:
            place = entries.get(slice_key(name, piece.extent))
            if place is None:
                raise DataLossError(None, None, f"{path}: a slice of tensor {name} is missing.")
            places.append((place, box_of(piece.extent, shape)))
    for place, box in places:
        size_fits = dtype is dtypes.string or place.size == box.elements * dtype.size
        known = dtype.is_numpy_compatible and not size_fits
        if known or not box.fits(shape) or not 0 <= place.shard_id < shards:
            raise DataLossError(
                None, None, f"{path}: the entry of tensor {name} contradicts itself."
            )
        tensor.pieces.append(Piece(place.shard_id, place.offset, place.size, place.crc32c, box))
    return tensor


# -- keys of slices: an encoding whose byte order is the order of the values ----------------------

_SLICE_MARK = b"\x00"  # an unsigned zero, before the name
_ESCAPES = {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}


def slice_key(name: str, extents: Any) -> bytes:
    """The key of a slice of a tensor."""
    text = b"".join(_ESCAPES.get(b, bytes([b])) for b in name.encode("utf-8", "surrogateescape"))
    key = _SLICE_MARK + text + b"\x00\x01" + _unsigned(len(extents))
    for extent in extents:
        # A whole axis is start 0 and length -1.
        key += _signed(extent.start) + _signed(extent.length if extent.HasField("length") else -1)
    return key


def _unsigned(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """Seven bits of value per byte; the ones at the front of the result count the bytes."""
    bits = (~value if value < 0 else value).bit_length()
    size = bits // 7 + 1
    ones = ((1 << size) - 1) << (8 * size - size)
    return ((value & ((1 << (8 * size)) - 1)) ^ ones).to_bytes(size, "big")
