"""Sparse tensors: ops of known sizes; tests/ops/sparse/test_sparse.py has those on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_PLACES = np.array([[0, 1], [0, 3], [2, 0], [2, 2]], np.int64)
_VALUES = np.array([1.5, -2.0, 0.25, 3.0])
_SHAPE = np.array([3, 5], np.int64)
_DENSE = np.arange(15.0).reshape(3, 5) + 1


def _scattered(indices: Any, shape: Any, values: Any, default: Any = 0) -> np.ndarray[Any, Any]:
    out = np.full(tuple(shape), default, np.asarray(values).dtype)
    for place, value in zip(indices, np.broadcast_to(values, len(indices)), strict=True):
        out[tuple(np.atleast_1d(place))] = value
    return out


def _dense_of(values: Any = _VALUES) -> np.ndarray[Any, Any]:
    return _scattered(_PLACES, _SHAPE, values)


def _softmax(indices: Any, values: Any, shape: Any) -> np.ndarray[Any, Any]:
    rows = indices[:, 0]
    powers = np.exp(values)
    return powers / np.array([powers[rows == r].sum() for r in rows])


_UNORDERED = _PLACES[[2, 0, 3, 1]]
_B = np.arange(10.0).reshape(5, 2) - 4

CASES = [
    OpCase(
        "SparseToDense",
        (_PLACES, _SHAPE, _VALUES, np.float64(9)),
        expected=lambda i, s, v, d: _scattered(i, s, v, d),
    ),
    OpCase(
        "SparseToDense",
        (np.array([1, 4]), np.array([6]), np.int32(7), np.int32(-1)),
        expected=lambda i, s, v, d: _scattered(i, s, v, d),
        name="vector",
    ),
    OpCase(
        "SparseToDense",
        (_UNORDERED, _SHAPE, _VALUES, np.float64(0)),
        attrs={"validate_indices": False},
        expected=lambda i, s, v, d: _scattered(i, s, v, d),
        name="unordered",
    ),
    OpCase(
        "SparseTensorDenseMatMul",
        (_PLACES, _VALUES, _SHAPE, _B),
        expected=lambda i, v, s, b: _dense_of() @ b,
    ),
    OpCase(
        "SparseTensorDenseMatMul",
        (_PLACES.astype(np.int32), _VALUES, _SHAPE, np.arange(6.0).reshape(2, 3)),
        attrs={"adjoint_a": True, "adjoint_b": True},
        expected=lambda i, v, s, b: _dense_of().T @ b.T,
        name="adjoint",
    ),
    OpCase(
        "SparseTensorDenseMatMul",
        (_PLACES, _VALUES * 1j, _SHAPE, np.arange(3.0)[:, None] * (1 + 1j)),
        attrs={"adjoint_a": True},
        expected=lambda i, v, s, b: np.conj(_dense_of(v)).T @ b,
        grad=(),
        name="complex",
    ),
    OpCase(
        "SparseTensorDenseAdd",
        (_PLACES, _VALUES, _SHAPE, _DENSE),
        expected=lambda i, v, s, b: b + _dense_of(),
    ),
    *[
        OpCase(
            f"SparseDenseCwise{kind}",
            (_PLACES, _VALUES, _SHAPE, dense),
            expected=lambda i, v, s, d, f=function: f(v, np.broadcast_to(d, s)[tuple(i.T)]),
            name=name,
        )
        for kind, function in (("Add", np.add), ("Mul", np.multiply), ("Div", np.divide))
        for name, dense in (
            ("full", _DENSE),
            ("column", _DENSE[:, :1]),
            ("row", _DENSE[0]),
            ("scalar", np.float64(3)),
        )
    ],
    OpCase(
        "SparseDenseCwiseDiv",
        (_PLACES, np.array([7, -7, 9, 4]), _SHAPE, np.int64(2)),
        expected=lambda i, v, s, d: np.array([3, -3, 4, 2]),
        name="integers",
    ),
    OpCase("SparseSoftmax", (_PLACES, _VALUES, _SHAPE), expected=_softmax),
    OpCase("SparseSoftmax", (_UNORDERED, _VALUES, _SHAPE), expected=_softmax, name="unordered"),
    *[
        OpCase(
            "SparseReduceSum",
            (_PLACES, _VALUES, _SHAPE, np.array(axes, np.int32)),
            attrs={"keep_dims": keep},
            expected=lambda i, v, s, a, k=keep: np.sum(
                _dense_of(), tuple(np.atleast_1d(a)), keepdims=k
            ),
            name=name,
        )
        for name, axes, keep in (
            ("rows", [0], False),
            ("columns", -1, True),
            ("all", [0, 1], False),
            ("none", [], False),
        )
    ],
    OpCase(
        "SparseReduceMax",
        (_PLACES, -np.abs(_VALUES), _SHAPE, np.array([1], np.int32)),
        expected=lambda i, v, s, a: np.array([-1.5, 0.0, -0.25]),
    ),
    OpCase(
        "SparseReduceMax",
        (_PLACES, np.array([4, -9, 3, 2], np.int32), _SHAPE, np.array([0], np.int32)),
        attrs={"keep_dims": True},
        expected=lambda i, v, s, a: np.array([[3, 4, 2, -9, 0]], np.int32),
        name="keep",
    ),
    OpCase(
        "SparseReorder",
        (_UNORDERED, _VALUES, _SHAPE),
        expected=lambda i, v, s: (_PLACES, v[[1, 3, 0, 2]]),
    ),
    OpCase(
        "SparseReshape",
        (_PLACES, _SHAPE, np.array([5, 3], np.int64)),
        expected=lambda i, s, n: (
            np.array([[0, 1], [1, 0], [3, 1], [4, 0]]),
            np.array([5, 3]),
        ),
    ),
    OpCase(
        "SparseReshape",
        (_PLACES, _SHAPE, np.array([-1, 1, 5], np.int64)),
        expected=lambda i, s, n: (
            np.stack([i[:, 0], i[:, 0] * 0, i[:, 1]], 1),
            np.array([3, 1, 5]),
        ),
        name="inferred",
    ),
    OpCase(
        "SparseAddGrad",
        (np.array([5.0, 6.0, 7.0]), _PLACES[[0, 3]], _PLACES[[1, 3]], _PLACES[[0, 1, 3]]),
        expected=lambda g, a, b, s: (np.array([5.0, 7.0]), np.array([6.0, 7.0])),
    ),
    OpCase(
        "SparseSliceGrad",
        (np.array([5.0, 6.0]), _PLACES, np.array([0, 1]), np.array([[0, 0], [2, 1]])),
        expected=lambda g, i, start, o: np.array([5.0, 0.0, 0.0, 6.0]),
    ),
    OpCase(
        "SparseFillEmptyRowsGrad",
        (np.array([0, 1, 3]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])),
        expected=lambda r, g: (np.array([1.0, 2.0, 8.0]), np.float64(20)),
    ),
]
