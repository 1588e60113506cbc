"""The values of ragged tensors, as ``Session.run`` takes and gives them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from headrace.ops.core.public import public


@public("ragged.RaggedTensorValue")
class RaggedTensorValue:
    """A RaggedTensor's value: NumPy ``values`` (or such a value again) and ``row_splits``.

    >>> value = tf.Session().run(tf.ragged.constant([[1, 2, 3], [], [4]]))
    >>> value.to_list(), value.row_splits.tolist()
    ([[1, 2, 3], [], [4]], [0, 3, 3, 4])
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        row_splits = np.asarray(row_splits)
        if row_splits.dtype not in (np.int32, np.int64) or row_splits.ndim != 1:
            raise TypeError(
                f"row_splits must be a 1D int32 or int64 numpy array; got {row_splits!r}"
            )
        if not isinstance(values, RaggedTensorValue):
            values = np.asarray(values)
        self._values = values
        self._row_splits = row_splits

    @property
    def values(self) -> Any:
        """The values of all rows, one row after the other."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin and end: row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``."""
        return self._row_splits

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        value = self._values
        while isinstance(value, RaggedTensorValue):
            value = value._values
        return value

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values
        rest = inner.nested_row_splits if isinstance(inner, RaggedTensorValue) else ()
        return (self._row_splits, *rest)

    @property
    def dtype(self) -> Any:
        return self._values.dtype

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged (or lie outside such a one)."""
        inner = self._values
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedTensorValue) else 0)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Sizes; None for ragged dimensions."""
        return (self._row_splits.shape[0] - 1, None, *self._values.shape[1:])

    def check(self) -> None:
        """Require the row splits of all dimensions to fit the values.

        Raises:
            ValueError: if they do not.
        """
        splits, count = self._row_splits, (*self._values.shape[:1], None)[0]
        if not splits.size or splits[0] != 0 or splits[-1] != count or np.any(np.diff(splits) < 0):
            raise ValueError(
                f"The row splits of a RaggedTensorValue must go from 0 to the number of its values "
                f"({count}) without decreasing, but are {splits}."
            )
        if isinstance(self._values, RaggedTensorValue):
            self._values.check()

    def to_list(self) -> list[Any]:
        """Nested lists of the rows."""
        inner = self._values
        rows: list[Any] = (
            inner.to_list() if isinstance(inner, RaggedTensorValue) else inner.tolist()
        )
        ends = self._row_splits.tolist()
        return [rows[b:e] for b, e in pairwise(ends)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"


def positive_axis(axis: int, rank: int | None) -> int:
    """``axis`` counted from the front.

    Raises:
        TypeError: if it is no int.
        ValueError: if it is not an axis, or negative where the rank is unknown.
    """
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an int; got {axis!r}")
    if rank is None and axis < 0:
        raise ValueError(f"axis={axis} may only be negative if rank is statically known.")
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return int(axis + rank if axis < 0 and rank is not None else axis)
