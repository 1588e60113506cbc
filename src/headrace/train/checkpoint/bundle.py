"""V2 checkpoints (tensor bundles), TensorFlow's format and that of Headrace: what they hold.

``prefix.index`` is a table: under the empty key a header, under each name an entry with type,
shape, and place in the data files ``prefix.data-00000-of-00001``... A tensor saved in parts has an
entry that lists the slices, and one more entry for each slice, under an ordered encoding of both.

`bundle_writer` writes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from headrace.errors import DataLossError, UnimplementedError
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import encoding, storage, table
from headrace.train.checkpoint.data_files import DataFiles
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor, data_path, index_path
from headrace.train.checkpoint.slices import Box, box_of

Array = np.ndarray[Any, Any]


class BundleFormat:
    """How pieces of data files are checked and decoded."""

    name = "TensorFlow V2 bundle"

    def value(
        self, name: str, dtype: DType, piece: Piece, files: DataFiles, target: Array | None = None
    ) -> Array:
        """The elements of a piece, as `layout.Format` says."""
        path = files.paths[piece.file]
        where = f"{path}: tensor {name}"
        if not dtype.is_numpy_compatible:
            raise UnimplementedError(None, None, f"{where} is of type {dtype.name}.")
        if dtype is dtypes.string:
            data = np.empty(piece.size, np.uint8)
            storage.read_into(files[piece.file], path, piece.begin, data)
            try:
                array = encoding.strings_from(data.tobytes(), piece.box.shape, piece.crc)
            except ValueError as error:
                raise DataLossError(None, None, f"{where} is damaged: {error}.") from error
            if array is None:
                raise _does_not_fit(where, piece)
            return array
        result = encoding.allocate(dtype, piece.box.shape) if target is None else target
        data = encoding.bytes_of(result)
        if data.size != piece.size:
            raise DataLossError(None, None, f"{where} takes {piece.size} bytes, not as said.")
        crc = storage.read_into(files[piece.file], path, piece.begin, data)
        if table.masked(crc) != piece.crc:
            raise _does_not_fit(where, piece)
        return result


def _does_not_fit(where: str, piece: Piece) -> DataLossError:
    return DataLossError(
        None,
        None,
        f"{where} is damaged: the checksum of bytes {piece.begin} to {piece.begin + piece.size} "
        "does not fit.",
    )


def load(prefix: str, data: bytes) -> Layout:
    """What a bundle holds; ``data`` is its index file.

    Raises:
        DataLossError: if it is damaged.
        UnimplementedError: if it was written on a big-endian machine, or has unknown types.
    """
    from headrace.graph.proto import BundleEntryProto

    path = index_path(prefix)
    found = dict(table.entries(data, path))
    shards = _shards(found.pop(b"", None), path)
    try:
        parsed = {key: BundleEntryProto.FromString(value) for key, value in found.items()}
    except DecodeError as error:
        raise DataLossError(None, None, f"{path} is no checkpoint index: {error}") from error
    tensors = {}
    for key, entry in parsed.items():
        if key.startswith(_SLICE_MARK):
            continue
        name = key.decode("utf-8", "surrogateescape")
        try:
            tensors[name] = _tensor(path, name, entry, parsed, shards)
        except ValueError as error:
            raise DataLossError(
                None, None, f"{path}: the entry of tensor {printable(name)} is damaged: {error}."
            ) from error
    used = {piece.file for tensor in tensors.values() for piece in tensor.pieces}
    files = {number: data_path(prefix, number, shards) for number in sorted(used)}
    return Layout(prefix, BundleFormat(), files, tensors)


def shard_count(prefix: str) -> int:
    """How many data files the index of a checkpoint counts.

    Raises:
        NotFoundError: if there is no index.
        DataLossError, UnimplementedError: as `load`.
    """
    path = index_path(prefix)
    for key, value in table.entries(system.read_regular(path), path):
        return _shards(value if key == b"" else None, path)
    return _shards(None, path)


def _shards(header: bytes | None, path: str) -> int:
    """The number of data files that a header states."""
    from headrace.graph.proto import BundleHeaderProto

    if header is None:
        raise DataLossError(None, None, f"{path} has no header: it is no checkpoint index.")
    try:
        parsed = BundleHeaderProto.FromString(header)
    except DecodeError as error:
        raise DataLossError(None, None, f"{path} is no checkpoint index: {error}") from error
    if parsed.endianness != BundleHeaderProto.LITTLE:
        raise UnimplementedError(None, None, f"{path} was written on a big-endian machine.")
    if parsed.version.min_consumer > VERSION:
        raise UnimplementedError(
            None,
            None,
            f"{path} asks for readers of version {parsed.version.min_consumer} of its format; this "
            f"one knows version {VERSION}.",
        )
    if parsed.num_shards < 0:
        raise DataLossError(None, None, f"{path} is damaged: it counts {parsed.num_shards} files.")
    return int(parsed.num_shards)


def _tensor(
    path: str, name: str, entry: Any, entries: dict[bytes, Any], shards: int
) -> StoredTensor:
    """One tensor of the index. Raises ValueError if what is said of it cannot be."""
    try:
        dtype = dtypes.DType(entry.dtype)
    except TypeError:
        raise UnimplementedError(
            None,
            None,
            f"{path}: tensor {printable(name)} has a type unknown here, number {entry.dtype}.",
        ) from None
    shape = tuple(d.size for d in entry.shape.dim)
    whole = Box.whole(shape)
    tensor = StoredTensor(dtype, shape)
    places = [(entry, whole)]
    if entry.slices:
        places = []
        for piece in entry.slices:
            place = entries.get(slice_key(name, piece.extent))
            if place is None:
                raise ValueError("a slice of it is missing")
            places.append((place, box_of(piece.extent, shape)))
    for place, box in places:
        if not box.fits(shape):
            raise ValueError(f"elements {box} lie outside of its shape, {list(shape)}")
        size_fits = dtype is dtypes.string or place.size == box.elements * dtype.size
        if dtype.is_numpy_compatible and not size_fits:
            raise ValueError(f"{place.size} bytes do not hold {box.elements} of {dtype.name}")
        if place.offset < 0 or place.size < 0 or not 0 <= place.shard_id < shards:
            raise ValueError(
                f"its place is byte {place.offset} of file {place.shard_id} of {shards}"
            )
        tensor.pieces.append(Piece(place.shard_id, place.offset, place.size, place.crc32c, box))
    return tensor


def printable(name: str) -> str:
    """A name as messages can hold it, whatever bytes it has."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


#: The version of the format, as headers have it.
VERSION = 1

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
