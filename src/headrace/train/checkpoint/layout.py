"""What a checkpoint holds and where: the form in which both file formats are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from headrace.graph.dtypes import DType
from headrace.train.checkpoint.slices import Box

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one data file that hold one box of a tensor; ``crc`` is masked, as it is stored."""

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
    """How the pieces of one file format are read."""

    name: str

    def value(
        self, name: str, dtype: DType, piece: Piece, files: Any, target: Array | None = None
    ) -> Array:
        """The elements of a piece of the tensor ``name``, of the shape of its box.

        Args:
            files: the data files of the checkpoint (`data_files.DataFiles`).
            target: memory of contiguous numbers to put them into.

        Raises:
            DataLossError: if the data is cut off or damaged.
            UnimplementedError: if there is no such type here.
        """


@dataclass(slots=True)
class Layout:
    """The tensors of a checkpoint and the files that hold their data, by number.

    There are files only for the numbers that pieces have: a count that an index merely claims
    takes no memory.
    """

    prefix: str
    format: Format
    files: dict[int, str]
    tensors: dict[str, StoredTensor]


def index_path(prefix: str) -> str:
    """The file that says what a checkpoint holds."""
    return f"{prefix}.index"


def data_path(prefix: str, number: int, count: int) -> str:
    """A file with data, one of ``count``."""
    return f"{prefix}.data-{number:05d}-of-{count:05d}"


#: What follows the prefix in the names of data files; the group is their count.
DATA_SUFFIX = re.compile(r"\.data-\d{5,}-of-(\d{5,})")
