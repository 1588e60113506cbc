"""Histograms and counts."""

from __future__ import annotations

import numpy as np

from headrace.testing.op_cases import OpCase

_ARR = np.array([1, 1, 3, 0, 5], np.int32)
_SIZE = np.array(4, np.int32)
CASES = [
    OpCase(
        "Bincount",
        (_ARR, _SIZE, np.zeros(0, np.int32)),
        expected=lambda a, n, w: np.int32([1, 2, 0, 1]),
    ),
    OpCase(
        "Bincount",
        (_ARR, _SIZE, np.float32([0.5, 1.5, 2.0, 4.0, 8.0])),
        expected=lambda a, n, w: np.float32([4.0, 2.0, 0.0, 2.0]),
        name="weights",
    ),
    OpCase(
        "HistogramFixedWidth",
        (np.float32([-1, 0, 1.5, 2, 5, 15]), np.float32([0, 5]), np.array(5, np.int32)),
        {"dtype": np.int64},
        expected=lambda *_: np.array([2, 1, 1, 0, 2]),
    ),
]
