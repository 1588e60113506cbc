"""The files with the data of a checkpoint, opened when they are needed."""

from __future__ import annotations

import contextlib
from typing import Any

from headrace.errors import DataLossError, NotFoundError
from headrace.files import system
from headrace.train.checkpoint.layout import Layout, Piece, StoredTensor


class DataFiles(dict[int, Any]):
    """Data files by number, opened when first needed.

    Args:
        stack: closes them.
    """

    def __init__(self, layout: Layout, stack: contextlib.ExitStack) -> None:
        super().__init__()
        self.paths = layout.files
        self._prefix = layout.prefix
        self._stack = stack
        self._lengths: dict[int, int] = {}

    def __missing__(self, number: int) -> Any:
        path = self.paths[number]
        try:
            file = self._stack.enter_context(system.open_binary(path, "rb"))
            self._lengths[number] = system.stat(path).length
        except NotFoundError as error:
            raise NotFoundError(
                None, None, f"{path} is missing; checkpoint {self._prefix} needs it."
            ) from error
        self[number] = file
        return file

    def check_holds(self, name: str, tensor: StoredTensor, pieces: list[Piece]) -> None:
        """Raise DataLossError unless the files are long enough for these pieces of a tensor.

        That is asked before memory is taken: an index can claim anything.
        """
        claimed: dict[int, int] = {}
        for piece in pieces:
            _ = self[piece.file]  # opens it
            length, path = self._lengths[piece.file], self.paths[piece.file]
            end = piece.begin + piece.size
            if end > length:
                raise DataLossError(
                    None,
                    None,
                    f"{path} is cut off or belongs to another checkpoint: it ends at byte "
                    f"{length}, and the data of tensor {name} goes on to byte {end}.",
                )
            claimed[piece.file] = claimed.get(piece.file, 0) + piece.size
            if claimed[piece.file] > length:
                raise DataLossError(
                    None, None, f"{path}: slices of tensor {name} lie upon each other."
                )
