"""Reading checkpoints of either format, V2 or V1, recognised by what the files hold."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from headrace.errors import (
    AbortedError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    suggest,
)
from headrace.files import system
from headrace.files.paths import as_path
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import bundle, encoding, table, v1
from headrace.train.checkpoint.data_files import DataFiles
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor, index_path
from headrace.train.checkpoint.slices import Box, copy_common, covers
from headrace.train.checkpoint.slots import SlotsOfParts

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")

#: So often a checkpoint is read again because it was saved again meanwhile.
ATTEMPTS = 10


@dataclass(frozen=True)
class Request:
    """A tensor to read, or a box of it."""

    name: str
    box: Box | None = None


class CheckpointReader:
    """The content of a checkpoint: names, types, shapes, and the tensors.

    Args:
        prefix: path of the checkpoint, as `Saver.save` returned it (no ``.index`` at its end).

    Raises:
        NotFoundError: if there is no such checkpoint.
        DataLossError: if its index is cut off, damaged, or no checkpoint at all.
    """

    def __init__(self, prefix: Any) -> None:
        self._layout, self._index = _load(as_path(prefix))
        self._has_read = False
        self._slots: SlotsOfParts | None = None

    @property
    def format(self) -> str:
        """The name of the file format."""
        return self._layout.format.name

    @property
    def prefix(self) -> str:
        return self._layout.prefix

    def missing_files(self) -> list[str]:
        """The files with data that the checkpoint needs and that are not there."""
        return [path for path in self._layout.files.values() if not system.exists(path)]

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint holds a tensor of this name."""
        return tensor_str in self._layout.tensors

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shapes of all tensors, by name."""
        return {name: list(t.shape) for name, t in self._layout.tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Types of all tensors, by name."""
        return {name: t.dtype for name, t in self._layout.tensors.items()}

    def debug_string(self) -> bytes:
        """One line for each tensor: name, type and shape, as ``w (DT_FLOAT) [3,2]``."""
        from headrace.graph.proto import DataType  # proto is imported on first use

        lines = [
            f"{name} ({DataType.Name(t.dtype.as_datatype_enum)}) [{','.join(map(str, t.shape))}]"
            for name, t in sorted(self._layout.tensors.items())
        ]
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor: a NumPy array or scalar; bytes, or an array of them, for strings.

        Raises:
            NotFoundError: if there is no tensor of this name.
            DataLossError: if its data is cut off or damaged.
        """
        array = self.read([Request(tensor_str)])[0]
        return array[()] if array.ndim == 0 else array

    # -- for restoring ----------------------------------------------------------------------

    def entry(self, name: str, *, of_part: bool = False) -> StoredTensor:
        """Type and shape of a tensor. Raises NotFoundError, with the names that are there.

        Args:
            of_part: the tensor may be a slot of a part of a variable that was saved in other parts.
        """
        found = self._find(name, of_part)
        if found is None:
            raise NotFoundError(
                None,
                None,
                f"Key {name} not found in checkpoint {self.prefix}.{suggest(name, self.names)} "
                f"{self.described_names()}",
            )
        return found

    def holds(self, name: str, *, of_part: bool) -> bool:
        """Whether `entry` finds a tensor."""
        return self._find(name, of_part) is not None

    def _find(self, name: str, of_part: bool) -> StoredTensor | None:
        found = self._layout.tensors.get(name)
        if not of_part or (found and covers([p.box for p in found.pieces], Box.whole(found.shape))):
            return found
        if self._slots is None:
            self._slots = SlotsOfParts(self._layout.tensors)
        return self._slots.find(name) or found

    @property
    def names(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._layout.tensors)

    def described_names(self) -> str:
        """A sentence with the names of the first tensors, for messages."""
        names = self.names
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return f"The checkpoint holds: {', '.join(names[:20]) or 'nothing'}{more}."

    def read(self, requests: Sequence[Request]) -> list[Array]:
        """The values of several tensors or boxes, read in the order in which files hold them.

        All come from one save, also when the checkpoint is saved again meanwhile: then they are
        read once more from the new one.

        Raises:
            NotFoundError: if a tensor, or a part of it, is not there.
            DataLossError: if data is cut off or damaged.
            AbortedError: if the checkpoint was saved again since an earlier read.
        """

        def all_of_them(files: DataFiles) -> list[Array]:
            order = sorted(range(len(requests)), key=lambda i: self._place(requests[i]))
            results = {i: self._read(requests[i], files) for i in order}
            return [results[i] for i in range(len(requests))]

        return self._from_one_save(all_of_them)

    def verify(self, requests: Sequence[Request]) -> None:
        """Read and check the data of tensors, keeping none. Raises as `read` does."""

        def each(files: DataFiles) -> None:
            for request in sorted(requests, key=self._place):
                self._read(request, files)

        self._from_one_save(each)

    def is_current(self) -> bool:
        """Whether the checkpoint is still the one that was opened."""
        path = index_path(self.prefix)
        try:
            return self._index is None or system.read_regular(path) == self._index
        except NotFoundError:
            return False

    def _from_one_save(self, read: Callable[[DataFiles], _T]) -> _T:
        for _ in range(ATTEMPTS):
            try:
                with contextlib.ExitStack() as stack:
                    result = read(DataFiles(self._layout, stack))
            except (NotFoundError, DataLossError):
                # A save under the same name removes the data of the one before.
                if self.is_current():
                    raise
            else:
                self._has_read = True
                return result
            if self._has_read:
                break  # what was read before would not go with what is there now
            self._layout, self._index = _load(self.prefix)
            self._slots = None
        raise AbortedError(
            None,
            None,
            f"Checkpoint {self.prefix} was saved again, or removed, while it was read. Open it "
            "again.",
        )

    def _place(self, request: Request) -> tuple[int, int]:
        pieces = self.entry(request.name, of_part=request.box is not None).pieces
        return (pieces[0].file, pieces[0].begin) if pieces else (0, 0)

    def _read(self, request: Request, files: DataFiles) -> Array:
        tensor = self.entry(request.name, of_part=request.box is not None)
        wanted = request.box or Box.whole(tensor.shape)
        if not wanted.fits(tensor.shape):
            raise InvalidArgumentError(
                None,
                None,
                f"Slice {wanted} of {request.name} lies outside its shape in checkpoint "
                f"{self.prefix}, {list(tensor.shape)}.",
            )
        if not covers([p.box for p in tensor.pieces], wanted):
            raise NotFoundError(
                None, None, f"Checkpoint {self.prefix} holds only a part of {request.name}."
            )

        def value(piece: Piece, target: Array | None = None) -> Array:
            form = self._layout.format
            return form.value(request.name, tensor.dtype, piece, files, target)

        exact = [p for p in tensor.pieces if p.box == wanted]
        if exact:
            files.check_holds(request.name, tensor, exact[:1])
            return value(exact[0])
        parts = [p for p in tensor.pieces if p.box.common(wanted) is not None]
        files.check_holds(request.name, tensor, parts)
        result = encoding.allocate(tensor.dtype, wanted.shape)
        for piece in parts:
            inner = _rows_of(result, piece.box, wanted)
            if inner is not None and tensor.dtype is not dtypes.string:
                value(piece, inner)
            else:
                copy_common(value(piece), piece.box, result, wanted)
        return result


def _rows_of(result: Array, piece: Box, wanted: Box) -> Array | None:
    """The part of ``result`` that a piece fills, when it lies in one stretch of memory."""
    if piece.common(wanted) != piece:
        return None
    part = result[piece.inside(wanted)]
    return part if part.flags.c_contiguous else None


# -- finding -----------------------------------------------------------------------------------


def _load(prefix: str) -> tuple[Layout, bytes | None]:
    """What a checkpoint holds, and its index if it has one."""
    path = index_path(prefix)
    if not system.exists(path):
        part = re.fullmatch(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})", prefix)
        whole = part[1] if part is not None and system.exists(index_path(part[1])) else ""
        files = [] if whole else v1.find(prefix)
        if files:
            return v1.load(prefix, files), None
        hint = f" Use the path without the last part: {whole}" if whole else ""
        raise NotFoundError(
            None,
            None,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
            f"{prefix}.{hint}",
        )
    data = system.read_regular(path)
    if table.is_table(data):
        return bundle.load(prefix, data), data
    raise DataLossError(
        None,
        None,
        f"{path} is no checkpoint index: it is not the table of a V2 checkpoint, or it is cut off.",
    )
