"""The files with the data of a checkpoint, and how a piece is read from one and checked."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataLossError, NotFoundError, UnimplementedError
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.train.checkpoint import encoding, storage
from headrace.train.checkpoint.layout import Layout, Piece

Array = np.ndarray[Any, Any]


class DataFiles(dict[int, Any]):
    """Data files by number, opened when first needed and checked for their size.

    Args:
        stack: closes them.
    """

    def __init__(self, layout: Layout, stack: contextlib.ExitStack) -> None:
        super().__init__()
        self.paths = layout.files
        self._layout = layout
        self._stack = stack

    def __missing__(self, number: int) -> Any:
        path, said = self.paths[number], self._layout.sizes[number]
        try:
            file = self._stack.enter_context(system.open_binary(path, "rb"))
            if said is not None and (there := system.stat(path).length) != said:
                raise DataLossError(
                    None,
                    None,
                    f"{path} has {there} bytes; checkpoint {self._layout.prefix} was saved with "
                    f"{said}: the file is cut off or belongs to another one.",
                )
        except NotFoundError as error:
            raise NotFoundError(
                None,
                None,
                f"{path} is missing; checkpoint {self._layout.prefix} needs it.",
            ) from error
        self[number] = file
        return file


class FileFormat(abc.ABC):
    """A format whose pieces are stretches of bytes with a checksum: numbers as they lie in memory.

    A subclass says how its checksums are made and how it stores strings.
    """

    name: str

    @abc.abstractmethod
    def crc_of(self, piece: Piece, dtype: DType, data: Array, crc: int) -> int:
        """The checksum to compare with the piece's; ``crc`` is the plain crc32c of the data."""

    @abc.abstractmethod
    def strings(self, data: Array, shape: Sequence[int], where: str) -> Array:
        """The strings in the data of a piece. Raises DataLossError."""

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
            self._read(dtype, piece, files, data, where)
            return self.strings(data, piece.box.shape, where)
        result = encoding.allocate(dtype, piece.box.shape) if target is None else target
        data = encoding.bytes_of(result)
        if data.size != piece.size:
            raise DataLossError(None, None, f"{where} takes {piece.size} bytes, not as said.")
        self._read(dtype, piece, files, data, where)
        return result

    def _read(self, dtype: DType, piece: Piece, files: DataFiles, data: Array, where: str) -> None:
        """Fill ``data`` with the bytes of a piece, and check them."""
        crc = storage.read_into(files[piece.file], files.paths[piece.file], piece.begin, data)
        if self.crc_of(piece, dtype, data, crc) != piece.crc:
            raise DataLossError(
                None,
                None,
                f"{where} is damaged: the checksum of bytes {piece.begin} to "
                f"{piece.begin + piece.size} does not fit.",
            )
