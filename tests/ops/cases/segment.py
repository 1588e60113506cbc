"""Segment reductions with a given number of segments."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace.ops.math.segment
import headrace.ops.math.segment_sparse  # noqa: F401
from headrace.harness.op_cases import OpCase

DATA = np.random.RandomState(0).standard_normal((5, 2, 3))
IDS = np.int32([3, 0, 3, -1, 1])
MATRIX_IDS = np.int64([[0, 1], [1, 3], [0, -1], [2, 2], [0, 0]])
_UFUNCS = {
    "Sum": (np.add, 0),
    "Prod": (np.multiply, 1),
    "Max": (np.maximum, None),
    "Min": (np.minimum, None),
}


def _unsorted(kind: str) -> Any:
    ufunc, start = _UFUNCS[kind]

    def expected(data: Any, ids: Any, size: Any) -> Any:
        if start is None:
            limits = np.iinfo(data.dtype) if data.dtype.kind == "i" else np.finfo(data.dtype)
            empty = limits.min if kind == "Max" else limits.max
        else:
            empty = start
        out = np.full((int(size), *data.shape[ids.ndim :]), empty, data.dtype)
        for index in np.ndindex(ids.shape):
            if ids[index] >= 0:
                out[ids[index]] = ufunc(out[ids[index]], data[index])
        return out

    return expected


INDICES, SORTED = np.int32([4, 0, 2, 2]), np.int32([0, 0, 1, 3])


def _sparse(kind: str) -> Any:
    def expected(data: Any, indices: Any, ids: Any, size: Any) -> Any:
        out = np.zeros((int(size), *data.shape[1:]), data.dtype)
        counts = np.maximum(np.bincount(ids, minlength=int(size)), 1)
        np.add.at(out, ids, data[indices])
        scale = {"Sum": counts * 0 + 1.0, "Mean": counts, "SqrtN": np.sqrt(counts)}[kind]
        return (out / scale.reshape(-1, 1, 1)).astype(data.dtype)

    return expected


def _sparse_grad(kind: str) -> Any:
    def expected(grad: Any, indices: Any, ids: Any, size: Any) -> Any:
        counts = np.maximum(np.bincount(ids, minlength=len(grad)), 1).reshape(-1, 1, 1)
        scale = {"Sum": 1.0, "Mean": counts, "SqrtN": np.sqrt(counts)}[kind]
        out = np.zeros((int(size), *grad.shape[1:]), grad.dtype)
        np.add.at(out, indices, (grad / scale)[ids])
        return out

    return expected


CASES = [
    *[
        OpCase(
            f"UnsortedSegment{kind}",
            (data, ids, np.int32(5)),
            expected=_unsorted(kind),
            # JAX cannot differentiate the other scatters; math/test_segment.py checks them.
            grad=(0,) if kind == "Sum" and data.dtype == np.float64 else (),
        )
        for kind in _UFUNCS
        for data in (DATA, (DATA * 10).astype(np.int32), DATA.astype(np.float16))
        for ids in (IDS, MATRIX_IDS)
    ],
    OpCase("UnsortedSegmentSum", (DATA[:0], IDS[:0], np.int64(2)), grad=(), name="empty"),
    *[
        OpCase(
            f"SparseSegment{kind}WithNumSegments",
            (DATA, INDICES, SORTED, np.int32(6)),
            expected=_sparse(kind),
        )
        for kind in ("Sum", "Mean", "SqrtN")
    ],
    OpCase(
        "SparseSegmentSumWithNumSegments",
        ((DATA * 10).astype(np.int64), INDICES, SORTED, np.int32(4)),
        expected=_sparse("Sum"),
        name="integers",
    ),
    *[
        OpCase(
            f"SparseSegment{kind}Grad",
            (DATA, INDICES, SORTED, np.int32(7)),
            expected=_sparse_grad(kind),
        )
        for kind in ("Sum", "Mean", "SqrtN")
    ],
]
