"""Matrix products, einsum, running sums, top_k, ranges."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(5)
CASES: list[OpCase] = []


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


A, B = _normal(2, 3), _normal(3, 4)


def _t(x: np.ndarray, flip: bool) -> np.ndarray:
    return np.swapaxes(x, -1, -2).copy() if flip else x


for _fa in (False, True):
    for _fb in (False, True):
        _flags = {"transpose_a": _fa, "transpose_b": _fb}
        _inputs = (_t(A, _fa), _t(B, _fb))
        _want = A @ B
        _name = f"{int(_fa)}{int(_fb)}"
        CASES.append(
            OpCase("MatMul", _inputs, _flags, expected=lambda a, b, w=_want: w, name=_name)
        )
        CASES.append(
            OpCase("SparseMatMul", _inputs, _flags, expected=lambda a, b, w=_want: w, name=_name)
        )
        _x, _y = _normal(5, 1, 2, 3), _normal(6, 3, 4)
        _batch = (_t(_x, _fa), _t(_y, _fb))
        _flags = {"adj_x": _fa, "adj_y": _fb}
        for _op in ("BatchMatMul", "BatchMatMulV2"):
            CASES.append(
                OpCase(_op, _batch, _flags, expected=lambda a, b, w=_x @ _y: w, name=_name)
            )
_C, _D = _normal(2, 3) + 1j * _normal(2, 3), _normal(4, 3) + 1j * _normal(4, 3)
_C, _D = _C.astype(np.complex64), _D.astype(np.complex64)
_INTS = np.array([[1, 2], [3, 4]], np.int32)
_SMALL = (_INTS.astype(ml_dtypes.bfloat16), _INTS.astype(ml_dtypes.bfloat16))
CASES += [
    OpCase(
        "MatMul", (_C, _D), {"transpose_b": True}, expected=lambda c, d: c @ d.T, name="complex"
    ),
    OpCase("MatMul", (_INTS, _INTS), expected=lambda a, b: a @ b, name="int"),
    OpCase("MatMul", _SMALL, expected=lambda a, b: _INTS @ _INTS, grad=(), name="bfloat16"),
    OpCase("MatMul", (A[:, :0], B[:0]), expected=lambda a, b: a @ b, grad=(), name="empty"),
    OpCase(
        "BatchMatMulV2",
        (_C[None], _D[None]),
        {"adj_y": True},
        expected=lambda c, d: c @ np.conj(np.swapaxes(d, 1, 2)),
        name="complex",
    ),
    OpCase("BatchMatMulV2", (_normal(5, 2, 3), _normal(5, 3, 4)), expected=np.matmul, name="same"),
    OpCase("BatchMatMulV3", (A, B), {"Tout": np.float32}, expected=np.matmul),
    OpCase(
        "BatchMatMulV3",
        (_INTS.astype(np.int8), _INTS.astype(np.int8)),
        {"Tout": np.int32},
        expected=lambda a, b: a.astype(np.int32) @ b.astype(np.int32),
        name="int8",
    ),
]

# -- einsum -------------------------------------------------------------------------------------

_X, _Y, _SQUARE = _normal(2, 3, 4), _normal(2, 4, 5), _normal(3, 3)
for _equation, _operands in {
    "bij,bjk->bik": [_X, _Y],
    "ijk->kij": [_X],
    "ijk->j": [_X],
    "ii->": [_SQUARE],
    "ii->i": [_SQUARE],
    "...ij,...jk->...ik": [_X, _Y],
    "i...,j->j...": [_X, _SQUARE[0]],
    "i,j->ij": [_SQUARE[0], _X[0, 0]],
    "bij,bjk,i->bk": [_X, _Y, _SQUARE[0]],
    "ij,jk->ki": [A, B],
    "ij,jk->k": [A, B],
}.items():
    CASES.append(
        OpCase(
            "Einsum",
            (_operands,),
            {"equation": _equation},
            expected=lambda xs, e=_equation: np.einsum(e, *xs),
            name=_equation.replace(".", "_"),
        )
    )

# -- running sums -------------------------------------------------------------------------------

_ROWS = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]], np.float32)


def _scan(function: Any, start: float, exclusive: bool, reverse: bool) -> Any:
    def reference(x: np.ndarray, axis: Any) -> np.ndarray:
        x = np.flip(x, 1) if reverse else x
        if exclusive:
            x = np.concatenate([np.full_like(x[:, :1], start), x[:, :-1]], 1)
        result = function(x, 1)
        return np.flip(result, 1) if reverse else result

    return reference


_ONE = np.array(1, np.int32)
for _exclusive in (False, True):
    for _reverse in (False, True):
        _attrs = {"exclusive": _exclusive, "reverse": _reverse}
        _name = f"{'exclusive' if _exclusive else 'plain'} {'back' if _reverse else 'on'}"
        for _op, _function, _start in (
            ("Cumsum", np.cumsum, 0),
            ("Cumprod", np.cumprod, 1),
            ("CumulativeLogsumexp", np.logaddexp.accumulate, -np.inf),
        ):
            _want = _scan(_function, _start, _exclusive, _reverse)
            # Minus infinity has no finite difference.
            _grad = () if _op == "CumulativeLogsumexp" and _exclusive else None
            CASES.append(OpCase(_op, (_ROWS, _ONE), _attrs, _want, _grad, name=_name))
CASES += [
    OpCase("Cumsum", (np.array([1, 2, 3]), np.array(-1)), expected=lambda x, a: np.cumsum(x)),
    OpCase("Cumsum", (_SMALL[0], _ONE), grad=(), name="bfloat16"),
    OpCase("Cumprod", (_ROWS[:0], _ONE), expected=lambda x, a: x, grad=(), name="empty"),
]

# -- top_k and ranges ---------------------------------------------------------------------------

_TIES = np.array([[1.0, 5.0, 5.0, 2.0, 5.0], [0.0, -1.0, 0.5, -1.0, -3.0]], np.float32)


def _top(values: Any, indices: Any) -> Any:
    return lambda *inputs: (np.array(values, inputs[0].dtype), np.array(indices, np.int32))


_DISTINCT = np.array([[3.0, 1.0, 4.0, 1.5], [9.0, 2.0, 6.0, 5.0]], np.float32)
CASES += [
    OpCase("TopKV2", (_TIES, np.array(3, np.int32)), grad=(), name="ties",
           expected=_top([[5, 5, 5], [0.5, 0, -1]], [[1, 2, 4], [2, 0, 1]])),
    OpCase("TopKV2", (np.array([-0.0, 0.0, -1.0, 0.0], np.float32), np.array(4, np.int32)),
           grad=(), name="zeros",
           expected=lambda x, k: (np.float32([0, 0, 0, -1]), np.int32([0, 1, 3, 2]))),
    OpCase("TopKV2", (_DISTINCT, np.array(2, np.int32)),
           expected=_top([[4, 3], [9, 6]], [[2, 0], [0, 2]])),
    OpCase("TopKV2", (np.array([4, 9, 4, 9, 1], np.int32), np.array(4, np.int32)), name="int",
           expected=_top([9, 9, 4, 4], [1, 3, 0, 2])),
    OpCase("TopK", (_DISTINCT,), {"k": 2}, expected=_top([[4, 3], [9, 6]], [[2, 0], [0, 2]])),
]  # fmt: skip


def _range(start: Any, limit: Any, delta: Any, want: Any, dtype: Any, name: str) -> OpCase:
    inputs = tuple(np.array(v, dtype) for v in (start, limit, delta))
    return OpCase("Range", inputs, expected=lambda *_: np.array(want, dtype), name=name)


CASES += [
    _range(3, 18, 5, [3, 8, 13], np.int32, "up"),
    _range(3, 19, 5, [3, 8, 13, 18], np.int64, "inexact"),
    _range(3, -3, -2, [3, 1, -1], np.int32, "down"),
    _range(4, 4, 1, [], np.int32, "empty"),
    _range(0.5, 3.0, 0.5, [0.5, 1.0, 1.5, 2.0, 2.5], np.float32, "float"),
    _range(1.0, -0.3, -0.5, [1.0, 0.5, 0.0], np.float64, "float down"),
    OpCase("LinSpace", (np.float32(10), np.float32(12), np.array(3, np.int32)),
           expected=lambda *_: np.float32([10, 11, 12])),
    OpCase("LinSpace", (np.float64(3), np.float64(5), np.array(1)), grad=(0,), name="one",
           expected=lambda *_: np.array([3.0])),
]  # fmt: skip
