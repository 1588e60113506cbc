"""Matching of rows and columns by distance. The public function is in `headrace.contrib.image`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import fail
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.nn.windows import checked_rank

__all__: list[str] = []


def _match_shape(op: Operation) -> list[Dims]:
    rows, columns = checked_rank(op.inputs[0].dims, 2, "distance_mat")
    return [(rows,), (columns,)]


def _match(context: Any, distance_mat: Any, num_valid_rows: Any, *, top_k: int) -> Any:
    """Greedily: the closest free pair first; among equals the one that comes first."""
    if np.size(num_valid_rows) != 1:
        raise fail(f"num_valid_rows must be one number, not {num_valid_rows}")
    rows, columns = distance_mat.shape
    given = float(np.ravel(num_valid_rows)[0])
    valid = rows if given < 0 else math.floor(given + 0.1)
    if valid > rows:
        raise fail(f"num_valid_rows is {valid}, but distance_mat has {rows} rows")
    to_columns, to_rows = np.full(rows, -1, np.int32), np.full(columns, -1, np.int32)
    wanted = min(valid, columns) if top_k <= 0 else min(top_k, valid, columns)
    for place in np.argsort(distance_mat[:valid], axis=None, kind="stable"):
        if wanted == 0:
            break
        row, column = divmod(int(place), columns)
        if to_columns[row] < 0 and to_rows[column] < 0:
            to_columns[row], to_rows[column] = column, row
            wanted -= 1
    return to_columns, to_rows


define_op(
    "BipartiteMatch(distance_mat: float32, num_valid_rows: float32) -> "
    "(row_to_col_match_indices: int32, col_to_row_match_indices: int32)",
    attrs="top_k: int = -1",
    shape=_match_shape,
    host=_match,
    gradient=NotDifferentiable("positions are whole numbers"),
    traits=Traits(library="tf.contrib.image"),
)
