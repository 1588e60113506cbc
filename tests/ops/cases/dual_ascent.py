"""A pass of dual coordinate ascent against a loop over examples in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.RandomState(0)
DENSE = _RNG.standard_normal((4, 2)).astype(np.float32)
#: Entry 3 has the place of entry 1: they are one feature of an example.
OWNERS, COLUMNS = np.int64([0, 1, 3, 1]), np.int64([0, 2, 1, 2])
VALUES = np.float32([1.0, 0.5, 2.0, 1.5])
LABELS, WEIGHTS = np.float32([0.3, -1.0, 2.0, 0.5]), np.float32([1.0, 2.0, 0.0, 0.5])
SLOTS, ORDER = np.int32([1, 0, 2, 1]), np.int32([2, 0, 3, 1])
DUALS = np.float32([0.1, -0.2, 0.3])
DENSE_WEIGHTS, SPARSE_WEIGHTS = np.float32([0.5, -0.5]), np.float32([0.1, 0.2, -0.3])
L1, L2, PARTITIONS = 0.2, 2.0, 2


def _expected(*given: Any) -> Any:
    dense, owners, columns, values, labels, weights, slots, order, duals, wd, ws = given
    whole = np.zeros((4, 5))
    whole[:, :2] = dense
    np.add.at(whole, (owners, 2 + columns), values)
    first = np.concatenate([wd, ws]).astype(np.float64)
    w, alphas = first.copy(), duals.astype(np.float64)

    def shrunk() -> Any:
        return np.sign(w) * np.maximum(np.abs(w) - L1 / L2, 0)

    for i in order:
        if weights[i] == 0:
            continue
        q = PARTITIONS * weights[i] * (whole[i] @ whole[i]) / L2
        delta = (labels[i] - whole[i] @ shrunk() - alphas[slots[i]]) / (1 + q)
        alphas[slots[i]] += delta
        w += weights[i] * delta / L2 * whole[i]
    states = np.zeros((3, 4))
    for i in range(4):
        alpha = alphas[slots[i]]
        loss = (whole[i] @ shrunk() - labels[i]) ** 2 / 2
        dual = alpha**2 / 2 - alpha * labels[i]
        states[slots[i]] = alpha, weights[i] * loss, weights[i] * dual, weights[i]
    return states, (w - first)[:2], (w - first)[2:]


CASES = [
    OpCase(
        "HeadraceDualAscent",
        (
            *(DENSE, OWNERS, COLUMNS, VALUES, LABELS, WEIGHTS, SLOTS, ORDER),
            *(DUALS, DENSE_WEIGHTS, SPARSE_WEIGHTS),
        ),
        {"loss": "squared_loss", "l1": L1, "l2": L2, "partitions": PARTITIONS},
        expected=_expected,
    ),
]
