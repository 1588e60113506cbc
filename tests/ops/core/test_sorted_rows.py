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
    (5000, 2, 600),
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
        out = np.full((size, width), 7, dtype)
        expected = out.copy()
        for number in set(ids.tolist()):
            expected[number] = rows[ids == number][0]
            ufunc.at(expected, ids[ids == number][1:], rows[ids == number][1:])
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


def test_one_segment_much_longer_than_many_others():
    ids = np.concatenate([np.arange(40), np.full(5000, 40), np.arange(41, 80)])
    rows = np.random.RandomState(2).randint(-9, 9, (len(ids), 6)).astype("f")
    expected = np.zeros((80, 6), "f")
    np.add.at(expected, ids, rows)
    out = np.zeros((80, 6), "f")
    reduce_sorted_rows(np.add, rows, ids, out)
    np.testing.assert_array_equal(out, expected)


def test_rows_of_other_numbers_stay():
    out = np.full((4, 2), 7, np.int32)
    reduce_sorted_rows(np.add, np.ones((3, 2), np.int32), np.array([1, 1, 3]), out)
    np.testing.assert_array_equal(out, [[7, 7], [2, 2], [7, 7], [1, 1]])
