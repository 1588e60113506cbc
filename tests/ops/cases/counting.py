"""Histograms and counts."""

from __future__ import annotations

import numpy as np

from headrace.testing.op_cases import OpCase

CASES = [
    OpCase(
        "HistogramFixedWidth",
        (np.float32([-1, 0, 1.5, 2, 5, 15]), np.float32([0, 5]), np.array(5, np.int32)),
        {"dtype": np.int64},
        expected=lambda *_: np.array([2, 1, 1, 0, 2]),
    ),
]
