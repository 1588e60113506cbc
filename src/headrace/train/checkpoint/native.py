"""The checkpoint format of Headrace: data in safetensors files, and a JSON manifest.

A checkpoint ``prefix`` consists of

- ``prefix.data-00000-of-00002`` ...: safetensors files, readable by any program that knows these;
- ``prefix.index``: the manifest. It names the files and says for each tensor its type, its shape,
  and its pieces: file, first byte, number of bytes, crc32c, and the box of the tensor they hold.

The manifest is published last, at once, and holds a checksum of itself: a checkpoint is there when
its manifest is. Saving under a prefix that is in use writes data files of other names, so that the
old checkpoint is whole until the manifest of the new one takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import google_crc32c
import numpy as np

from headrace.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import encoding, storage
from headrace.train.checkpoint.data_files import FileFormat
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor, data_path, index_path
from headrace.train.checkpoint.slices import Box

FORMAT = "headrace-checkpoint"
VERSION = 1

#: Data files grow to about this size; a larger tensor is split over several.
MAX_FILE_BYTES = 4 << 30

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Slice:
    """A tensor to save, or a box of one: ``array`` holds ``box`` of a tensor of ``shape``."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    box: Box
    array: Array

    @classmethod
    def whole(cls, name: str, dtype: DType, array: Array) -> Slice:
        """All of a tensor."""
        return cls(name, dtype, array.shape, Box.whole(array.shape), array)


# -- writing --------------------------------------------------------------------------------------


def write(prefix: str, slices: Iterable[Slice], max_file_bytes: int | None = None) -> None:
    """Write a checkpoint. When this returns it is on the disk; when it fails nothing has changed.

    Raises:
        InvalidArgumentError: if a name comes twice with the same elements.
        UnimplementedError: if a type cannot be saved.
        OpError: of the class that tells what the file system said.
    """
    items = list(slices)
    _check(items)
    plan = _plan(items, max_file_bytes or MAX_FILE_BYTES)
    storage.make_directories(storage.directory_of(prefix))
    files = _free_names(prefix, len(plan))
    sizes, tensors = [], {s.name: StoredTensor(s.dtype, s.shape) for s in items}
    started: list[str] = []
    try:
        for number, (path, content) in enumerate(zip(files, plan, strict=True)):
            started.append(path)
            pieces, size = _write_file(path, number, content)
            sizes.append(size)
            for part, piece in zip(content, pieces, strict=True):
                tensors[part.name].pieces.append(piece)
        storage.sync_name(prefix)
        storage.publish(index_path(prefix), _manifest(files, sizes, tensors))
    except BaseException:
        for path in started:
            storage.discard(path)
        raise
    _remove_others(prefix, files)


def _check(items: Sequence[Slice]) -> None:
    seen: dict[str, list[Slice]] = {}
    for item in items:
        encoding.stored_type(item.dtype)
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


def _plan(items: Sequence[Slice], limit: int) -> list[list[Slice]]:
    """The pieces of each file: none larger than ``limit`` unless a single row is."""
    parts = [p for item in items for p in _split(item, limit)]
    # Wide types first: then every piece begins at a multiple of its element size.
    parts.sort(key=lambda p: 0 if p.dtype is dtypes.string else -_unit(p.dtype))
    files: list[list[Slice]] = [[]]
    filled = 0
    for part in parts:
        size = encoding.stored_bytes(part.dtype, part.array)
        if files[-1] and filled + size > limit:
            files.append([])
            filled = 0
        files[-1].append(part)
        filled += size
    return files


def _unit(dtype: DType) -> int:
    return dtype.size // 2 if dtype.is_complex else dtype.size


def _split(item: Slice, limit: int) -> list[Slice]:
    size = encoding.stored_bytes(item.dtype, item.array)
    axis = next((i for i, n in enumerate(item.box.shape) if n > 1), None)
    if size <= limit or axis is None:
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
        parts.append(Slice(item.name, item.dtype, item.shape, box, item.array[index]))
    return parts


def _free_names(prefix: str, count: int) -> list[str]:
    """Names of data files that no checkpoint under this prefix uses."""
    taken = set(_published_files(prefix))
    generation = 0
    while True:
        names = [data_path(prefix, i, count, generation) for i in range(count)]
        if not taken.intersection(names):
            return names
        generation += 1


def _published_files(prefix: str) -> list[str]:
    if not system.exists(index_path(prefix)):
        return []
    try:
        return load(prefix).files
    except OpError:  # not ours, or damaged: keep whatever may belong to it
        return storage.siblings(f"{prefix}.data-")


def _remove_others(prefix: str, files: Sequence[str]) -> None:
    """Remove data files that the published manifest does not name, and forgotten manifests."""
    for path in storage.siblings(f"{prefix}.data-"):
        if path not in files:
            storage.discard(path)
    for path in storage.siblings(f"{index_path(prefix)}.tmp-"):
        storage.discard(path)


def _write_file(path: str, number: int, parts: Sequence[Slice]) -> tuple[list[Piece], int]:
    sizes = [encoding.stored_bytes(p.dtype, p.array) for p in parts]
    header = _header(parts, sizes)
    writer = storage.Writer(path)
    try:
        writer.write(header)
        pieces = []
        for part, size in zip(parts, sizes, strict=True):
            begin = writer.position
            crc = writer.write(encoding.to_bytes(part.dtype, part.array))
            pieces.append(Piece(number, begin, size, crc, part.box))
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    return pieces, writer.position


def _header(parts: Sequence[Slice], sizes: Sequence[int]) -> bytes:
    """The head of a safetensors file: eight bytes of length, and JSON."""
    entries: dict[str, Any] = {"__metadata__": {"producer": FORMAT}}
    begin = 0
    for part, size in zip(parts, sizes, strict=True):
        key = part.name if part.box.shape == part.shape else f"{part.name}[{part.box}]"
        while key in entries:
            key += "'"
        entries[key] = {
            "dtype": encoding.stored_type(part.dtype),
            "shape": encoding.stored_shape(part.dtype, part.box.shape, size),
            "data_offsets": [begin, begin + size],
        }
        begin += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _manifest(
    files: Sequence[str], sizes: Sequence[int], tensors: dict[str, StoredTensor]
) -> bytes:
    content = {
        "files": [
            {"name": f.rpartition("/")[2], "bytes": n} for f, n in zip(files, sizes, strict=True)
        ],
        "tensors": {
            name: {
                "dtype": tensor.dtype.name,
                "shape": list(tensor.shape),
                "pieces": [
                    {
                        "file": p.file,
                        "begin": p.begin,
                        "bytes": p.size,
                        "crc32c": p.crc,
                        "offset": list(p.box.offset),
                        "shape": list(p.box.shape),
                    }
                    for p in tensor.pieces
                ],
            }
            for name, tensor in tensors.items()
        },
    }
    whole = {"format": FORMAT, "version": VERSION, "crc32c": _crc(content), "content": content}
    return json.dumps(whole, separators=(",", ":"), sort_keys=True).encode()


def _crc(content: Any) -> int:
    """The checksum of a manifest's content, however it is spaced or ordered."""
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return int(google_crc32c.value(text.encode()))


def merge(prefixes: Sequence[str], destination: str) -> None:
    """Make one checkpoint of several that hold different tensors, by moving their data files.

    Raises:
        NotFoundError, DataLossError: if one of them is not there or damaged.
        InvalidArgumentError: if two of them hold the same elements.
    """
    layouts = [load(p) for p in prefixes]
    sources = [f for layout in layouts for f in layout.files]
    storage.make_directories(storage.directory_of(destination))
    files = _free_names(destination, len(sources))
    tensors: dict[str, StoredTensor] = {}
    first = 0
    for layout in layouts:
        for name, tensor in layout.tensors.items():
            merged = tensors.setdefault(name, StoredTensor(tensor.dtype, tensor.shape))
            for piece in tensor.pieces:
                twice = any(p.box.common(piece.box) for p in merged.pieces)
                if twice or (merged.shape, merged.dtype) != (tensor.shape, tensor.dtype):
                    raise InvalidArgumentError(
                        None, None, f"Tensor {name} is in two of the checkpoints to merge."
                    )
                merged.pieces.append(replace(piece, file=piece.file + first))
        first += len(layout.files)
    for source, target in zip(sources, files, strict=True):
        storage.move(source, target)
    sizes = [n for layout in layouts for n in layout.sizes if n is not None]
    storage.publish(index_path(destination), _manifest(files, sizes, tensors))
    for prefix in prefixes:
        storage.discard(index_path(prefix))
    _remove_others(destination, files)


# -- reading --------------------------------------------------------------------------------------


class NativeFormat(FileFormat):
    """How pieces of our own files are checked and decoded."""

    name = FORMAT

    def crc_of(self, piece: Piece, dtype: DType, data: Array, crc: int) -> int:
        return crc

    def strings(self, data: Array, shape: Sequence[int], where: str) -> Array:
        return encoding.strings_from(data, shape, where)


def load(prefix: str, text: bytes | None = None) -> Layout:
    """What a checkpoint in this format holds; ``text`` is its manifest if that was read already.

    Raises:
        NotFoundError: if there is no manifest.
        DataLossError: if the manifest is damaged.
        UnimplementedError: if a newer version of Headrace wrote it.
    """
    path = index_path(prefix)
    try:
        whole = json.loads(system.read_bytes(path) if text is None else text)
        if whole["format"] != FORMAT:
            raise ValueError(f"its format is {whole['format']!r}")
        version = whole["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, error) from error
    if version != VERSION:
        raise UnimplementedError(
            None,
            None,
            f"{path} has version {version} of the checkpoint format; this Headrace knows version "
            f"{VERSION}.",
        )
    try:
        if _crc(whole["content"]) != whole["crc32c"]:
            raise ValueError("its checksum does not fit")
        return _layout(prefix, whole["content"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> DataLossError:
    return DataLossError(None, None, f"{path} is no whole checkpoint manifest: {error}")


def _layout(prefix: str, content: Any) -> Layout:
    directory = storage.directory_of(prefix)
    files = [system.join(directory, f["name"]) for f in content["files"]]
    tensors = {}
    for name, entry in content["tensors"].items():
        shape = tuple(entry["shape"])
        tensor = StoredTensor(dtypes.as_dtype(entry["dtype"]), shape)
        for p in entry["pieces"]:
            box = Box(tuple(p["offset"]), tuple(p["shape"]))
            if not (box.fits(shape) and 0 <= p["file"] < len(files)):
                raise ValueError(f"a piece of {name} lies outside")
            tensor.pieces.append(Piece(p["file"], p["begin"], p["bytes"], p["crc32c"], box))
        tensors[name] = tensor
    sizes: list[int | None] = [f["bytes"] for f in content["files"]]
    return Layout(prefix, NativeFormat(), files, sizes, tensors)
