"""Gather and scatter ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.harness.op_cases import OpCase


def _iota(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) * 0.5 - 1).reshape(shape).astype(np.float32)


def _ints(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


X = _iota(4, 3, 5)
IDS = _ints((3, 0), (3, 1))
PAIRS = _ints((0, 1), (3, 2), (1, 0))
AXIS = {a: np.int32(a) for a in (-1, 0, 1, 2)}


def _nd(indices: np.ndarray) -> Any:
    return tuple(np.moveaxis(indices, -1, 0))


def _scatter(how: Any) -> Any:
    def reference(base: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        result = base.copy()
        how(result, _nd(indices), updates)
        return result

    return reference


def _set(base: np.ndarray, index: Any, updates: np.ndarray) -> None:
    base[index] = updates


def _batched(x: np.ndarray, ids: np.ndarray, *_: Any) -> np.ndarray:
    return np.stack([a[:, i] for a, i in zip(x, ids, strict=True)])


CASES = [
    OpCase("Gather", (X, IDS), {}, lambda x, i: x[i]),
    OpCase("Gather", (X, _ints(2, dtype=np.int64)), {}, lambda x, i: x[i]),
    OpCase("GatherV2", (X, IDS, AXIS[0]), {}, lambda x, i, a: x[i]),
    OpCase("GatherV2", (X, np.int32(2), AXIS[0]), {}, lambda x, i, a: x[2], name="scalar"),
    OpCase("GatherV2", (X, _ints(2, 2, 0), AXIS[1]), {}, lambda x, i, a: x[:, i]),
    OpCase("GatherV2", (X, IDS, AXIS[-1]), {}, lambda x, i, a: x[..., i]),
    OpCase("GatherV2", (X, _ints().reshape(2, 0), AXIS[0]), {}, lambda x, i, a: x[i], name="empty"),
    OpCase(
        "GatherV2",
        (_iota(2, 3, 5), _ints((4, 0, 1, 1), (2, 2, 3, 0)), AXIS[2]),
        {"batch_dims": 1},
        _batched,
    ),
    OpCase(
        "GatherGrad",
        (_ints(4, 3, 5), _ints(2, 2, 0), AXIS[1], _iota(4, 3, 5)),
        {},
        lambda s, i, a, dy: np.stack([dy[:, 2], 0 * dy[:, 0], dy[:, 0] + dy[:, 1]], 1),
    ),
    OpCase("GatherNd", (X, PAIRS), {}, lambda x, i: x[_nd(i)]),
    OpCase("GatherNd", (X, IDS[..., None]), {}, lambda x, i: x[IDS]),
    OpCase("GatherNd", (X, _ints((3,), (1,))), {}, lambda x, i: x[[3, 1]], name="rows"),
    OpCase("GatherNd", (X, _ints().reshape(2, 0)), {}, lambda x, i: np.stack([x, x])),
    OpCase(
        "ScatterNd",
        (_ints((1,), (3,), (1,)), _iota(3, 2), _ints(4, 2)),
        {},
        lambda i, u, s: np.stack([0 * u[0], u[0] + u[2], 0 * u[0], u[1]]),
    ),
    OpCase(
        "ScatterNd",
        (PAIRS, _ints(1, 2, 3), _ints(4, 3)),
        {},
        lambda i, u, s: _scatter(_set)(np.zeros((4, 3), np.int32), i, u),
    ),
    OpCase("TensorScatterUpdate", (X, PAIRS, _iota(3, 5) * 9), {}, _scatter(_set)),
    OpCase("TensorScatterAdd", (X, PAIRS[[0, 1, 0]], _iota(3, 5) * 9), {}, _scatter(np.add.at)),
    OpCase("TensorScatterSub", (X, PAIRS, _iota(3, 5) * 9), {}, _scatter(np.subtract.at)),
    OpCase("TensorScatterMin", (X, PAIRS, _iota(3, 5) * 9), {}, _scatter(np.minimum.at), grad=()),
    OpCase("TensorScatterMax", (X, PAIRS, _iota(3, 5) * 9), {}, _scatter(np.maximum.at), grad=()),
    OpCase("ScatterNdNonAliasingAdd", (X, PAIRS, _iota(3, 5)), {}, _scatter(np.add.at)),
    *[
        OpCase(
            op,
            (np.float32([[1, 3, 3, 9], [0, 1, 2, 3]]), np.float32([[3, 0, 10], [-1, 1, 2.5]])),
            {"out_type": dtypes.int64},
            lambda s, v, side=side: np.stack(
                [np.searchsorted(a, b, side) for a, b in zip(s, v, strict=True)]
            ),
        )
        for op, side in (("LowerBound", "left"), ("UpperBound", "right"))
    ],
]
