"""Histograms and counts."""

from __future__ import annotations

import numpy as np

from headrace.harness.op_cases import OpCase

CASES = [
    OpCase(
        "HistogramFixedWidth",
        (np.float32([-1, 0, 1.5, 2, 5, 15]), np.float32([0, 5]), np.array(5, np.int32)),
        {"dtype": np.int64},
        expected=lambda *_: np.array([2, 1, 1, 0, 2]),
    ),
    OpCase(
        "DenseBincount",
        (np.array([1, 3, 3, 7], np.int32), np.array(5, np.int32), np.array([], np.int64)),
        expected=lambda *_: np.array([0, 1, 0, 2, 0]),
        grad=(),
    ),
    OpCase(
        "DenseBincount",
        (
            np.array([[1, 1], [0, 9]], np.int64),
            np.array(3, np.int64),
            np.float32([[0.5, 2], [4, 8]]),
        ),
        expected=lambda *_: np.float32([[0, 2.5, 0], [4, 0, 0]]),
        grad=(),
        name="rows and weights",
    ),
    OpCase(
        "DenseBincount",
        (np.array([[1, 1], [0, 9]], np.int64), np.array(3, np.int64), np.zeros(0, np.float32)),
        {"binary_output": True},
        expected=lambda *_: np.float32([[0, 1, 0], [1, 0, 0]]),
        grad=(),
        name="binary",
    ),
]
