"""Systems of alternating least squares against NumPy's solutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.RandomState(0)
OWNERS = np.int32([0, 1, 0, 2, 0])
FACTORS, VALUES, WEIGHTS = _RNG.standard_normal((5, 2)), _RNG.standard_normal(5), _RNG.random(5)
_ALL = _RNG.standard_normal((6, 2))


def _expected(ids: Any, owners: Any, factors: Any, weights: Any, values: Any, gramian: Any) -> Any:
    found = []
    for i in range(len(ids)):
        left = 0.1 * gramian + 0.5 * np.eye(2)
        right = np.zeros(2)
        for e in np.flatnonzero(owners == i):
            left = left + weights[e] * np.outer(factors[e], factors[e])
            right = right + (0.1 + weights[e]) * values[e] * factors[e]
        found.append(np.linalg.solve(left, right))
    return np.array(found)


CASES = [
    OpCase(
        "HeadraceWeightedSolve",
        (np.int64([7, 3, 9, 4]), OWNERS, FACTORS, WEIGHTS, VALUES, _ALL.T @ _ALL),
        {"unobserved_weight": 0.1, "regularization": 0.5},
        expected=_expected,
    ),
]
