"""Reading TensorFlow's V1 checkpoints: one table file, or one for each shard.

Under the empty key stands a list of the tensors and their slices, under the other keys the slices
themselves, as TensorProto messages. Such a file is read whole.
"""

from __future__ import annotations

import fnmatch
import os
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from headrace.errors import DataLossError, UnimplementedError
from headrace.files import system
from headrace.graph import dtypes
from headrace.train.checkpoint import storage, table
from headrace.train.checkpoint.data_files import DataFiles
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor
from headrace.train.checkpoint.slices import Box, box_of

Array = np.ndarray[Any, Any]
_FOOTER = 48


class V1Format:
    """The values of the slices, by tensor and box: nothing is read from files later."""

    name = "TensorFlow V1"

    def __init__(self) -> None:
        self.values: dict[tuple[str, Box], Any] = {}

    def value(
        self,
        name: str,
        dtype: dtypes.DType,
        piece: Piece,
        files: DataFiles,
        target: Array | None = None,
    ) -> Array:
        """The elements of a piece, as `layout.Format` says."""
        from headrace.graph.tensor_proto import MakeNdarray

        proto = self.values[name, piece.box]
        proto.dtype = dtype.as_datatype_enum
        proto.tensor_shape.Clear()
        for size in piece.box.shape:
            proto.tensor_shape.dim.add(size=size)
        proto.tensor_shape.SetInParent()
        try:
            value = MakeNdarray(proto)
        except (TypeError, ValueError) as error:
            path = files.paths[piece.file]
            raise DataLossError(None, None, f"{path}: tensor {name} is damaged: {error}") from error
        if target is None:
            return value
        target[...] = value
        return target


def find(prefix: str) -> list[str]:
    """The files of a V1 checkpoint: ``prefix`` itself, or its shards; none if there is none.

    A sharded checkpoint is named by its files' names with ``?`` for each digit, or without that
    part.
    """
    if system.exists(prefix) and not system.is_directory(prefix):
        return [prefix] if _ends_as_table(prefix) else []
    pattern = prefix if "?" in prefix else f"{prefix}-?????-of-?????"
    found = [
        path
        for path in storage.siblings(pattern.partition("?")[0])
        if fnmatch.fnmatchcase(os.path.basename(path), os.path.basename(pattern))
    ]
    return [path for path in found if _ends_as_table(path)]


def _ends_as_table(path: str) -> bool:
    length = system.stat(path).length
    if length < _FOOTER:
        return False
    tail = np.empty(_FOOTER, np.uint8)
    with system.open_binary(path, "rb") as file:
        storage.read_into(file, path, length - _FOOTER, tail)
    return table.is_table(tail.tobytes())


def load(prefix: str, files: list[str]) -> Layout:
    """What the files of a V1 checkpoint hold.

    Raises:
        DataLossError: if one is damaged, or no checkpoint.
        UnimplementedError: if a tensor is of an unknown type.
    """
    form = V1Format()
    layout = Layout(prefix, form, dict(enumerate(files)), {})
    for number, path in enumerate(files):
        try:
            _read(layout, form, number, path)
        except DecodeError as error:
            raise DataLossError(None, None, f"{path} is no V1 checkpoint: {error}") from error
    return layout


def _read(layout: Layout, form: V1Format, number: int, path: str) -> None:
    from headrace.graph.proto import SavedTensorSlices

    shapes: dict[str, tuple[int, ...]] = {}
    for key, value in table.entries(system.read_regular(path, None), path):
        entry = SavedTensorSlices.FromString(value)
        if key == b"":
            for meta in entry.meta.tensor:
                shapes[meta.name] = _list_tensor(layout, path, meta)
            continue
        name = entry.data.name
        if name not in shapes:
            raise DataLossError(
                None, None, f"{path} is no V1 checkpoint: '{name}' is not in its list."
            )
        try:
            box = _checked_box(entry.data, layout.tensors[name].dtype, shapes[name])
        except ValueError as error:
            raise DataLossError(
                None, None, f"{path}: a slice of tensor {name} is damaged: {error}."
            ) from error
        if (name, box) in form.values:
            raise DataLossError(None, None, f"{path}: tensor {name} is there twice: {box}.")
        form.values[name, box] = entry.data.data
        layout.tensors[name].pieces.append(Piece(number, 0, 0, 0, box))


def _list_tensor(layout: Layout, path: str, meta: Any) -> tuple[int, ...]:
    """Take a tensor of the list at the beginning of a file; returns its shape."""
    shape = tuple(d.size for d in meta.shape.dim)
    try:
        dtype = dtypes.DType(meta.type)
    except TypeError:
        raise UnimplementedError(
            None,
            None,
            f"{path}: tensor {meta.name} has a type unknown here, number {meta.type}.",
        ) from None
    if min(shape, default=0) < 0:
        raise DataLossError(
            None, None, f"{path} is damaged: tensor {meta.name} has the shape {list(shape)}."
        )
    listed = layout.tensors.setdefault(meta.name, StoredTensor(dtype, shape))
    if (listed.dtype, listed.shape) != (dtype, shape):
        raise DataLossError(
            None, None, f"{path} is damaged: it lists tensor {meta.name} in two ways."
        )
    return shape


def _checked_box(data: Any, dtype: dtypes.DType, shape: tuple[int, ...]) -> Box:
    """The place of a slice. Raises ValueError if it is outside, or its values do not fill it."""
    from headrace.graph.tensor_proto import stored_elements

    box = box_of(data.slice.extent, shape)
    if not box.fits(shape):
        raise ValueError(f"elements {box} lie outside of its shape, {list(shape)}")
    count = stored_elements(data.data, dtype)
    if count != box.elements:
        raise ValueError(f"it holds {count} elements, and its place is {box}")
    return box
