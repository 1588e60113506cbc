"""Distinct integers and sums of rows: the same as NumPy's slower ways, to the last bit."""

import numpy as np
import pytest

from headrace.ops.core.distinct import distinct_integers, summed_rows

ENDS = {
    "few": np.array([5, 5, -3, 5, 0, -3]),
    "one": np.array([-(2**62)]),
    "zeros": np.zeros(100, np.int64),
    "none": np.zeros(0, np.int32),
    "small": np.array([-128, 127, -128, 0, 127], np.int8),
    "unsigned": np.array([2**64 - 1, 2**64 - 5, 2**64 - 1], np.uint64),
    "many": np.random.default_rng(0).zipf(1.3, 5000) % 10**7,
    "apart": np.array([2**55, 0, 2**55, 3]),
}


@pytest.mark.parametrize("case", ENDS)
def test_distinct_integers_come_in_the_order_of_their_first_place(case):
    values = ENDS[case]
    found = distinct_integers(values)
    expected, first, times = np.unique(values, return_index=True, return_counts=True)
    order = np.argsort(first)
    np.testing.assert_array_equal(found.values, expected[order])
    assert found.values.dtype == values.dtype
    np.testing.assert_array_equal(found.counts, times[order])
    np.testing.assert_array_equal(found.values[found.places], values)


@pytest.mark.parametrize(
    "values", [np.array([-(2**63), 2**63 - 1]), np.array([0, 2**64 - 1], np.uint64)]
)
def test_integers_that_lie_too_far_apart_are_left_to_others(values):
    assert distinct_integers(values) is None


@pytest.mark.parametrize("shape", [(500, 64), (500, 4, 8), (500,), (0, 64), (3, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.complex64])
def test_rows_are_summed_as_numpy_does(shape, dtype):
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal(shape) * 100).astype(dtype)
    places = rng.zipf(1.3, shape[0]) % 50
    expected = np.zeros((50, *shape[1:]), dtype)
    np.add.at(expected, places, rows)
    result = summed_rows(rows, places, 50)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


def test_a_row_that_is_no_number_spoils_its_own_sum_only():
    rows = np.ones((200, 64), np.float32)
    rows[7, 3], rows[9, 4] = np.nan, np.inf
    result = summed_rows(rows, np.arange(200) % 50, 50)
    assert np.isnan(result[7, 3])
    assert np.isinf(result[9, 4])
    assert np.isfinite(result).sum() == result.size - 2


def test_rows_without_elements():
    assert summed_rows(np.ones((9000, 0), np.float32), np.zeros(9000, np.int64), 3).shape == (3, 0)
