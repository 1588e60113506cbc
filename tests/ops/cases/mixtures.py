"""The expectation of a mixture, against SciPy's densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from headrace.harness.op_cases import OpCase

_RNG = np.random.RandomState(0)
POINTS, MEANS = _RNG.standard_normal((7, 2)), _RNG.standard_normal((3, 2))
WEIGHTS = np.array([0.2, 0.3, 0.5])
COVARIANCES = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0], [0, 3.0]], [[0.5, -0.1], [-0.1, 0.7]]])


def _expected(points: Any, weights: Any, means: Any, covariances: Any) -> Any:
    full = covariances if covariances.ndim == 3 else np.stack([np.diag(c) for c in covariances])
    models = zip(means, full, strict=True)
    densities = np.stack([multivariate_normal(m, c).pdf(points) for m, c in models], 1) * weights
    total = densities.sum(1)
    shares = densities / total[:, None]
    diff = points[:, None] - means
    spreads = np.einsum("bk,bki,bkj->kij", shares, diff, diff)
    if covariances.ndim == 2:
        spreads = np.diagonal(spreads, axis1=1, axis2=2)
    moves = np.einsum("bk,bki->ki", shares, diff)
    return densities.argmax(1), np.log(total), shares.sum(0), moves, spreads


CASES = [
    OpCase(
        "HeadraceMixtureExpectation",
        (POINTS, WEIGHTS, MEANS, COVARIANCES),
        expected=_expected,
        name="full",
    ),
    OpCase(
        "HeadraceMixtureExpectation",
        (POINTS, WEIGHTS, MEANS, np.abs(COVARIANCES[:, 0]) + 0.1),
        expected=_expected,
        name="diag",
    ),
]
