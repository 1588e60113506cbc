"""Rows of sorted ids, against NumPy's own slow way."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from headrace.ops.core.sorted_rows import reduce_sorted_rows

#: Rows, width, ids: few long segments, many short ones, gaps, single numbers.
CASES = [
    (500, 16, 7),
    (300, 5, 200),
    (900, 1, 40),
    (64, 300, 50),
    (5000, 3, 4),
    (1, 4, 3),
    (0, 4, 3),
]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1", "c8", ml_dtypes.bfloat16])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
def test_the_same_as_one_after_the_other(ufunc, dtype):
    rng = np.random.RandomState(6)
    for count, width, size in CASES:
        signs = rng.choice([-1, 1], (count, width)) if np.dtype(dtype).kind not in "u" else 1
        rows = (signs * np.ones((count, width))).astype(dtype)
        ids = np.sort(rng.randint(0, size, count))
        start = 1 if ufunc is np.multiply else 0
        expected = np.full((size, width), start, dtype)
        ufunc.at(expected, ids, rows)
        out = np.full((size, width), start, dtype)
        reduce_sorted_rows(ufunc, rows, ids, out)
        np.testing.assert_array_equal(out, expected)


def test_nan_stays_in_its_segment():
    rows = np.zeros((100, 4), "f")
    rows[30, 2] = np.nan
    out = np.full((2, 4), -np.inf, "f")
    reduce_sorted_rows(np.maximum, rows, np.repeat([0, 1], 50), out)
    assert np.isnan(out).sum() == 1
    assert np.isnan(out[0, 2])


def test_rows_of_several_dimensions():
    rows = np.arange(24.0).reshape(4, 2, 3)
    out = np.zeros((3, 2, 3))
    reduce_sorted_rows(np.add, rows, np.array([0, 0, 2, 2]), out)
    np.testing.assert_array_equal(out, [rows[:2].sum(0), np.zeros((2, 3)), rows[2:].sum(0)])
