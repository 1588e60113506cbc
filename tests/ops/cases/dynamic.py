"""Choices by condition, positions, checks; host ops are listed with the tests that cover them."""

from __future__ import annotations

import numpy as np

from headrace.harness.op_cases import OpCase

X = (np.arange(6) * 0.5 - 1).reshape(3, 2).astype(np.float32)
FLAGS = np.array([[True, False], [False, False], [True, True]])

CASES = [
    OpCase("Select", (FLAGS, X, X * 3), {}, np.where),
    OpCase("Select", (FLAGS[:, 0], X, X * 3), {}, lambda c, t, e: np.where(c[:, None], t, e)),
    OpCase("Select", (np.bool_(True), X, X * 3), {}, lambda c, t, e: t),
    OpCase("SelectV2", (FLAGS[:, :1], X[:1], X * 3), {}, np.where),
    OpCase("SelectV2", (FLAGS, np.float32(2), X[0]), {}, np.where),
    OpCase(
        "UnravelIndex",
        (np.array([22, 5], np.int32), np.array([4, 6], np.int32)),
        {},
        lambda i, d: np.stack(np.unravel_index(i, d)).astype(np.int32),
        exact=False,
    ),
    OpCase("CheckNumerics", (X,), {"message": "bad"}, lambda x: x),
]
