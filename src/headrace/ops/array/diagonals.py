"""Bands of diagonals of matrices: diagonal 0 is the main one, 1 the one above it.

A band is packed into rows, the uppermost diagonal first. Shorter diagonals are padded at the right
end ("LEFT" alignment) or at the left; ``align`` names that of the diagonals above, then below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import requirements
from headrace.ops.core.array_util import both, fail, static_int, static_ints
from headrace.ops.core.registry import define_op

__all__: list[str] = []


def _band(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal.

    Raises:
        InvalidArgumentError: if ``k`` is no number, and no pair in order.
    """
    ends = np.asarray(k).ravel().tolist()
    if len(ends) not in (1, 2) or ends[0] > ends[-1]:
        raise fail(f"k must be one diagonal, or the lowest and the highest one, got {ends}")
    return int(ends[0]), int(ends[-1])


def _length(rows: int, columns: int, diagonal: int) -> int:
    return min(rows + min(diagonal, 0), columns - max(diagonal, 0))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the diagonals of ``rows`` by ``columns`` matrices are in their packed form."""

    rows: int
    columns: int
    low: int
    high: int
    align: str

    @property
    def width(self) -> int:
        """The length of the longest diagonal."""
        return min(self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    def check(self) -> None:
        """Refuse diagonals outside of the matrix.

        Raises:
            InvalidArgumentError: if there is one.
        """
        for diagonal in (self.low, self.high):
            if diagonal and not -self.rows < diagonal < self.columns:
                raise fail(
                    f"diagonal {diagonal} is outside of a matrix of {self.rows} x {self.columns}"
                )

    def _offsets(self, diagonal: Any) -> Any:
        """How many places each diagonal is moved to the right."""
        above, below = self.align.split("_")
        length = np.minimum(
            self.rows + np.minimum(diagonal, 0), self.columns - np.maximum(diagonal, 0)
        )
        right = np.where(diagonal >= 0, above == "RIGHT", below == "RIGHT")
        return np.where(right, self.width - length, 0), length

    def to_packed(self) -> tuple[Any, Any, Any]:
        """For each element of a matrix: whether it is in the band, and its row and place there."""
        row, column = np.arange(self.rows)[:, None], np.arange(self.columns)
        diagonal = column - row
        inside = (diagonal >= self.low) & (diagonal <= self.high)
        diagonal = np.clip(diagonal, self.low, self.high)
        offset, _ = self._offsets(diagonal)
        place = np.minimum(row, column) + offset
        return inside, self.high - diagonal, np.clip(place, 0, max(self.width - 1, 0))

    def to_matrix(self) -> tuple[Any, Any, Any]:
        """For each packed place: whether it belongs to a diagonal, and its row and column."""
        diagonal = np.arange(self.high, self.low - 1, -1)[:, None]
        offset, length = self._offsets(diagonal)
        place = np.arange(self.width) - offset
        inside = (place >= 0) & (place < length)
        place = np.where(inside, place, 0)
        row, column = place - np.minimum(diagonal, 0), place + np.maximum(diagonal, 0)
        return inside, np.minimum(row, self.rows - 1), np.minimum(column, self.columns - 1)


def _sizes(width: int, low: int, high: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of matrices whose longest diagonal is ``width``; -1 leaves one open.

    Raises:
        InvalidArgumentError: if there is no such matrix.
    """
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    if rows == columns == -1:
        return (max(least_rows, least_columns),) * 2
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    fits = rows >= least_rows and columns >= least_columns
    if not fits or (rows != least_rows and columns != least_columns):
        raise fail(
            f"diagonals {low} to {high} of at most {width} elements are not those of matrices of "
            f"{rows} x {columns}"
        )
    return rows, columns


def _diag(
    xp: Any,
    diagonal: Any,
    k: Any,
    num_rows: Any,
    num_cols: Any,
    padding_value: Any,
    *,
    align: str = "LEFT_LEFT",
) -> Any:
    low, high = _band(k)
    packed = diagonal[..., None, :] if low == high else diagonal
    if packed.ndim < 2 or packed.shape[-2] != high - low + 1:
        raise fail(
            f"diagonal has shape {shape_text(diagonal.shape)}, but there are {high - low + 1} "
            f"diagonals from {low} to {high}"
        )
    rows, columns = _sizes(packed.shape[-1], low, high, int(num_rows), int(num_cols))
    layout = _Layout(rows, columns, low, high, align)
    layout.check()
    inside, row, place = layout.to_packed()
    return xp.where(inside, packed[..., row, place], padding_value)


def _part(xp: Any, x: Any, k: Any, padding_value: Any, *, align: str = "LEFT_LEFT") -> Any:
    low, high = _band(k)
    layout = _Layout(x.shape[-2], x.shape[-1], low, high, align)
    layout.check()
    inside, row, column = layout.to_matrix()
    packed = xp.where(inside, x[..., row, column], padding_value)
    return packed[..., 0, :] if low == high else packed


def _set(xp: Any, x: Any, diagonal: Any, k: Any, *, align: str = "LEFT_LEFT") -> Any:
    low, high = _band(k)
    layout = _Layout(x.shape[-2], x.shape[-1], low, high, align)
    layout.check()
    packed = diagonal[..., None, :] if low == high else diagonal
    wanted = (*x.shape[:-2], high - low + 1, layout.width)
    if tuple(packed.shape) != wanted:
        raise fail(
            f"diagonal has shape {shape_text(diagonal.shape)}, but diagonals {low} to {high} of "
            f"{shape_text(x.shape)} are packed as {wanted}"
        )
    inside, row, place = layout.to_packed()
    return xp.where(inside, packed[..., row, place], x)


# -- shapes -------------------------------------------------------------------------------------


def _ends(op: Operation, position: int) -> tuple[int, int] | None:
    known = static_ints(op.inputs[position])
    return None if known is None or len(known) not in (1, 2) else (known[0], known[-1])


def _diag_shape(op: Operation) -> list[Dims]:
    dims, band = op.inputs[0].dims, _ends(op, 1)
    rows, columns = static_int(op.inputs[2]), static_int(op.inputs[3])
    if dims is None or band is None:
        return [None]
    outer = dims[:-1] if band[0] == band[1] else dims[:-2]
    if dims[-1] is None or rows is None or columns is None:
        return [(*outer, None, None)]
    return [(*outer, *_sizes(dims[-1], *band, rows, columns))]


def _part_shape(op: Operation) -> list[Dims]:
    dims, band = op.inputs[0].dims, _ends(op, 1)
    if dims is None or band is None:
        return [None]
    low, high = band
    rows, columns = dims[-2:]
    known = rows is not None and columns is not None
    width = _Layout(rows, columns, low, high, "").width if known else None  # type: ignore[arg-type]
    return [(*dims[:-2], width) if low == high else (*dims[:-2], high - low + 1, width)]


_ALIGN = "'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'"
for _version, _attrs in (("V2", "T: type"), ("V3", f"T: type, align: {{{_ALIGN}}} = 'RIGHT_LEFT'")):
    define_op(
        f"MatrixDiag{_version}(diagonal: T, k: int32, num_rows: int32, num_cols: int32,"
        " padding_value: T) -> output: T",
        attrs=_attrs,
        shape=_diag_shape,
        requires=[requirements.rank_at_least(1, 0), requirements.scalar(4)],
        **both(_diag if _version == "V3" else lambda xp, *inputs: _diag(xp, *inputs)),
        static=(1, 2, 3),
    )
    define_op(
        f"MatrixDiagPart{_version}(input: T, k: int32, padding_value: T) -> diagonal: T",
        attrs=_attrs,
        shape=_part_shape,
        requires=[requirements.rank_at_least(2, 0), requirements.scalar(2)],
        **both(_part if _version == "V3" else lambda xp, *inputs: _part(xp, *inputs)),
        static=(1,),
    )
    define_op(
        f"MatrixSetDiag{_version}(input: T, diagonal: T, k: int32) -> output: T",
        attrs=_attrs,
        shape=lambda op: [op.inputs[0].dims],
        requires=[requirements.rank_at_least(2, 0), requirements.rank_at_least(1, 1)],
        **both(_set if _version == "V3" else lambda xp, *inputs: _set(xp, *inputs)),
        static=(2,),
    )
