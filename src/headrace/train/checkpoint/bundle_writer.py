"""Writing V2 checkpoints (`bundle`), such that one is there whole or not at all.

Data files are written first, under names that the checkpoint which is already there does not use;
then the index takes the place of the old one, at once (`saving`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import bundle, encoding, storage, table
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor, index_path
from headrace.train.checkpoint.pace import Pace
from headrace.train.checkpoint.saving import Saving
from headrace.train.checkpoint.slices import Box

if TYPE_CHECKING:
    from headrace.graph.proto import DataType

#: Data files grow to about this size; a larger tensor is split over several.
MAX_FILE_BYTES = 4 << 30

#: TensorFlow puts slices of these types together; tensors of others are split by nobody.
_SPLITTABLE = frozenset(
    {
        *(dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.float16, dtypes.bool),
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8),
        *(dtypes.complex64, dtypes.complex128),
    }
)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorSlice:
    """A tensor to save, or a box of one: ``array`` holds ``box`` of a tensor of ``shape``."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    box: Box
    array: Array

    @classmethod
    def whole(cls, name: str, dtype: DType, array: Array) -> TensorSlice:
        """All of a tensor."""
        return cls(name, dtype, array.shape, Box.whole(array.shape), array)


def write(
    prefix: str,
    slices: Iterable[TensorSlice],
    max_file_bytes: int | None = None,
    pace: Pace | None = None,
) -> None:
    """Write a checkpoint. When this returns it is on the disk; when it fails nothing has changed.

    Args:
        pace: rests after each piece of data.

    Raises:
        InvalidArgumentError: if a name comes twice with the same elements, or cannot be one.
        UnimplementedError: if a type cannot be saved.
        OpError: of the class that tells what the file system said.
    """
    items = list(slices)
    _check(items)
    plan = _plan(items, max_file_bytes or MAX_FILE_BYTES)
    system.make_directories(storage.directory_of(prefix))
    tensors = {s.name: StoredTensor(s.dtype, s.shape) for s in items}
    with Saving(prefix) as saving:
        files = saving.data_files(len(plan))
        for number, path in enumerate(files):
            content = plan[number] if number < len(plan) else []
            pieces = _write_file(path, number, content, pace)
            for part, piece in zip(content, pieces, strict=True):
                tensors[part.name].pieces.append(piece)
        saving.publish(_index(len(files), tensors))


def _check(items: Sequence[TensorSlice]) -> None:
    seen: dict[str, list[TensorSlice]] = {}
    for item in items:
        encoding.check_can_be_saved(item.dtype)
        if not item.name or item.name.startswith("\0"):
            raise InvalidArgumentError(
                None, None, f"A checkpoint cannot hold a tensor of the name {item.name!r}."
            )
        others = seen.setdefault(item.name, [])
        for other in others:
            if other.shape != item.shape or other.dtype is not item.dtype:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Parts of {item.name} do not belong together: {other.dtype.name} of shape "
                    f"{list(other.shape)}, and {item.dtype.name} of shape {list(item.shape)}.",
                )
            if other.box == item.box or other.box.common(item.box) is not None:
                raise InvalidArgumentError(
                    None, None, f"Tensor {item.name} would be saved twice: elements {item.box}."
                )
        others.append(item)


def _plan(items: Sequence[TensorSlice], limit: int) -> list[list[TensorSlice]]:
    """The pieces of each file: none larger than ``limit`` unless a single row is."""
    files: list[list[TensorSlice]] = [[]]
    filled = 0
    for part in (p for item in _with_elements(items) for p in _split(item, limit)):
        size = encoding.stored_bytes(part.dtype, part.array)
        if files[-1] and filled + size > limit:
            files.append([])
            filled = 0
        files[-1].append(part)
        filled += size
    return files


def _with_elements(items: Sequence[TensorSlice]) -> Iterator[TensorSlice]:
    """The slices, without empty ones, which the format does not know; an empty tensor is one."""
    seen = set()
    for item in items:
        if item.array.size:
            yield item
        elif 0 in item.shape and item.name not in seen:
            seen.add(item.name)
            yield TensorSlice.whole(item.name, item.dtype, np.empty(item.shape, item.array.dtype))


def _split(item: TensorSlice, limit: int) -> list[TensorSlice]:
    size = encoding.stored_bytes(item.dtype, item.array)
    axis = next((i for i, n in enumerate(item.box.shape) if n > 1), None)
    if size <= limit or axis is None or item.dtype not in _SPLITTABLE:
        return [item]
    rows = item.box.shape[axis]
    step = max(1, rows * limit // size)
    parts = []
    for begin in range(0, rows, step):
        count = min(step, rows - begin)
        offset, shape = list(item.box.offset), list(item.box.shape)
        offset[axis], shape[axis] = offset[axis] + begin, count
        index = (slice(None),) * axis + (slice(begin, begin + count),)
        box = Box(tuple(offset), tuple(shape))
        parts.append(TensorSlice(item.name, item.dtype, item.shape, box, item.array[index]))
    return parts


def _write_file(
    path: str, number: int, parts: Sequence[TensorSlice], pace: Pace | None = None
) -> list[Piece]:
    writer = storage.Writer(path, pace)
    try:
        pieces = []
        for part in parts:
            begin = writer.position
            if part.dtype is dtypes.string:
                content, crc = encoding.strings_to_bytes(part.array)
                writer.write(content)
            else:
                crc = table.masked(writer.write(encoding.to_bytes(part.array)))
            pieces.append(Piece(number, begin, writer.position - begin, crc, part.box))
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    return pieces


# -- the index ------------------------------------------------------------------------------------


def _index(files: int, tensors: dict[str, StoredTensor]) -> bytes:
    """The index of a checkpoint of so many data files."""
    from headrace.graph.proto import BundleHeaderProto

    header = BundleHeaderProto(num_shards=files)
    header.version.producer = bundle.VERSION
    entries = {b"": header.SerializeToString(deterministic=True)}
    for name, tensor in tensors.items():
        if tensor.pieces:
            entries.update(_entries(name, tensor))
    return table.build(sorted(entries.items()))


def _entries(name: str, tensor: StoredTensor) -> dict[bytes, bytes]:
    """The entry of a tensor, and those of its slices."""
    from headrace.graph.proto import BundleEntryProto

    kind = cast("DataType", tensor.dtype.as_datatype_enum)
    entry = BundleEntryProto(dtype=kind)
    _set_shape(entry, tensor.shape)
    key = name.encode("utf-8", "surrogateescape")
    first = tensor.pieces[0]
    if len(tensor.pieces) == 1 and first.box.shape == tensor.shape:
        _set_place(entry, first)
        return {key: entry.SerializeToString(deterministic=True)}
    found = {}
    for piece in tensor.pieces:
        extents = entry.slices.add().extent
        for offset, size in zip(piece.box.offset, piece.box.shape, strict=True):
            extents.add(start=offset, length=size)
        part = BundleEntryProto(dtype=kind)
        _set_shape(part, piece.box.shape)
        _set_place(part, piece)
        found[bundle.slice_key(name, extents)] = part.SerializeToString(deterministic=True)
    found[key] = entry.SerializeToString(deterministic=True)
    return found


def _set_shape(entry: Any, shape: Sequence[int]) -> None:
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)


def _set_place(entry: Any, piece: Piece) -> None:
    entry.shard_id = piece.file
    entry.offset = piece.begin
    entry.size = piece.size
    entry.crc32c = piece.crc


# -- merging --------------------------------------------------------------------------------------


def merge(prefixes: Sequence[str], destination: str) -> None:
    """Make one checkpoint of several that hold different tensors, by moving their data files.

    Raises:
        NotFoundError, DataLossError: if one of them is not there or damaged.
        InvalidArgumentError: if two of them hold the same elements.
    """
    layouts = [bundle.load(p, system.read_regular(index_path(p))) for p in prefixes]
    tensors = _merged(layouts)
    sources = [path for layout in layouts for path in layout.files.values()]
    system.make_directories(storage.directory_of(destination))
    with Saving(destination) as saving:
        files = saving.data_files(max(1, len(sources)))
        for source, target in zip(sources, files, strict=False):
            storage.move(source, target)
        for target in files[len(sources) :]:
            _write_file(target, 0, [])
        saving.publish(_index(len(files), tensors), prefixes)
        for prefix in prefixes:
            storage.discard(index_path(prefix))
            for path in storage.data_files_of(prefix):
                storage.discard(path)


def _merged(layouts: Sequence[Layout]) -> dict[str, StoredTensor]:
    """The tensors of all, with files counted through."""
    tensors: dict[str, StoredTensor] = {}
    first = 0
    for layout in layouts:
        numbers = {old: first + new for new, old in enumerate(layout.files)}
        for name, tensor in layout.tensors.items():
            merged = tensors.setdefault(name, StoredTensor(tensor.dtype, tensor.shape))
            for piece in tensor.pieces:
                fits = (merged.shape, merged.dtype) == (tensor.shape, tensor.dtype)
                if not fits or any(
                    p.box == piece.box or p.box.common(piece.box) for p in merged.pieces
                ):
                    raise InvalidArgumentError(
                        None, None, f"Tensor {name} is in two of the checkpoints to merge."
                    )
                merged.pieces.append(replace(piece, file=numbers[piece.file]))
        first += len(layout.files)
    return tensors
