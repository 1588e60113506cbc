"""What a checkpoint holds and where: the form in which both file formats are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from headrace.graph.dtypes import DType
from headrace.train.checkpoint.slices import Box


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one data file that hold one box of a tensor."""

    file: int
    begin: int
    size: int
    crc: int
    box: Box


@dataclass(slots=True)
class StoredTensor:
    """One tensor of a checkpoint. Its pieces share no element."""

    dtype: DType
    shape: tuple[int, ...]
    pieces: list[Piece] = field(default_factory=list)


class Format(Protocol):
    """What differs between formats when a piece is read."""

    name: str

    def crc_of(self, piece: Piece, dtype: DType, data: np.ndarray[Any, Any], crc: int) -> int:
        """The checksum to compare with the piece's; ``crc`` is the plain crc32c of the data."""

    def strings(
        self, data: np.ndarray[Any, Any], shape: Sequence[int], where: str
    ) -> np.ndarray[Any, Any]:
        """The strings in the data of a piece."""


@dataclass(slots=True)
class Layout:
    """The tensors of a checkpoint and the files that hold their data."""

    prefix: str
    format: Format
    files: list[str]
    #: Sizes of the files, where the checkpoint says them.
    sizes: list[int | None]
    tensors: dict[str, StoredTensor]


def index_path(prefix: str) -> str:
    """The file that says what a checkpoint holds."""
    return f"{prefix}.index"


def data_path(prefix: str, number: int, count: int, generation: int = 0) -> str:
    """A file with data; a later generation replaces one whose names are in use."""
    suffix = f".{generation}" if generation else ""
    return f"{prefix}.data-{number:05d}-of-{count:05d}{suffix}"
