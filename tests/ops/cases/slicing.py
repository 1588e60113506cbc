"""Slice and the strided-slice family (indexing syntax: tests/ops/array/test_slicing.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase


def _iota(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) * 0.5 - 1).reshape(shape).astype(np.float32)


def _ints(*values: int, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


X = _iota(4, 5, 6)

#: (begin, end, strides, masks, the same in NumPy)
SPECS: list[tuple[Any, Any, Any, dict[str, int], Any]] = [
    ((1, 0, 2), (3, 5, 6), (1, 2, 3), {}, np.s_[1:3, 0:5:2, 2:6:3]),
    ((0, 0), (0, 0), (-1, 1), {"begin_mask": 3, "end_mask": 3}, np.s_[::-1]),
    ((-1, 1), (-4, 9), (-2, 3), {}, np.s_[-1:-4:-2, 1:9:3]),
    ((2, 0), (0, 2), (1, 1), {"shrink_axis_mask": 1}, np.s_[2, 0:2]),
    ((-1, 0), (0, 2), (1, 1), {"shrink_axis_mask": 1}, np.s_[-1, 0:2]),
    (
        (0, 0, 1),
        (0, 0, 4),
        (1, 1, 2),
        {"ellipsis_mask": 2, "new_axis_mask": 1},
        np.s_[None, ..., 1:4:2],
    ),
    ((3,), (1,), (1,), {}, np.s_[3:1]),
    ((1, 2, 3), (2, 3, 4), (1, 1, 1), {"shrink_axis_mask": 7}, np.s_[1, 2, 3]),
]


def _grad_of(where: Any) -> Any:
    def reference(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        result = np.zeros(tuple(shape), dy.dtype)
        result[where] = dy
        return result

    return reference


def _update(where: Any) -> Any:
    def reference(x: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        result = x.copy()
        result[where] = value
        return result

    return reference


CASES: list[OpCase] = []
for _begin, _end, _strides, _masks, _where in SPECS:
    _vectors = (_ints(*_begin), _ints(*_end), _ints(*_strides))
    _known = (1, 2, 3)
    CASES += [
        OpCase(
            "StridedSlice",
            (X, *_vectors),
            _masks,
            lambda x, b, e, s, where=_where: np.asarray(x[where]),
            static=_known,
        ),
        OpCase(
            "StridedSliceGrad",
            (_ints(4, 5, 6), *_vectors, np.asarray(X[_where]) * 2),
            _masks,
            _grad_of(_where),
            static=(0, 1, 2, 3),
        ),
        OpCase(
            "TensorStridedSliceUpdate",
            (X, *_vectors, np.float32([9.0]).reshape((1,) * min(1, X[_where].ndim))),
            _masks,
            _update(_where),
            static=_known,
        ),
    ]
_moving = (_ints(-1, 0, 2), _ints(0, 0, 3), _ints(1, 1, 1))
_moving_masks = {"begin_mask": 2, "end_mask": 2, "shrink_axis_mask": 5}
CASES += [
    OpCase(
        "StridedSlice",
        (X, *_moving),
        _moving_masks,
        lambda x, b, e, s: x[-1, :, 2],
        name="positions known at run time",
    ),
    OpCase(
        "StridedSliceGrad",
        (_ints(4, 5, 6), *_moving, _iota(5)),
        _moving_masks,
        _grad_of(np.s_[-1, :, 2]),
        name="positions known at run time",
    ),
    OpCase(
        "TensorStridedSliceUpdate",
        (X, *_moving, _iota(5)),
        _moving_masks,
        _update(np.s_[-1, :, 2]),
        name="positions known at run time",
    ),
    OpCase(
        "Slice",
        (X, _ints(1, 0, 2), _ints(2, -1, 3)),
        {},
        lambda x, b, s: x[1:3, :, 2:5],
        static=(1, 2),
    ),
    OpCase(
        "Slice",
        (X, _ints(1, 0, 2, dtype=np.int64), _ints(2, 5, 3, dtype=np.int64)),
        {},
        lambda x, b, s: x[1:3, :, 2:5],
        name="begin known at run time",
    ),
    OpCase(
        "Slice",
        (X, _ints(4, 0, 2), _ints(0, 5, 3)),
        {},
        lambda x, b, s: x[4:, :, 2:5],
        name="empty",
    ),
    OpCase(
        "SliceGrad",
        (_ints(4, 5), _ints(1, 2), _iota(2, 3)),
        {},
        lambda n, b, dy: np.pad(dy, ((1, 1), (2, 0))),
    ),
]
