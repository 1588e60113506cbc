"""The variables of a copy: in memory of their own, whatever happens to that which they came in."""

from __future__ import annotations

import mmap
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace.distributed.standby.kept_values import KeptValues
from headrace.executor.resources import ResourceHandle

V, W = (ResourceHandle("variable", "", name) for name in "vw")
#: Bytes of a variable that goes to XLA's memory at once.
_LARGE = 2 << 20


def _lent(dtype: Any) -> np.ndarray[Any, Any]:
    """A large array at the begin of a page, as transports lend them."""
    array = np.frombuffer(mmap.mmap(-1, _LARGE), dtype).reshape(-1, 4)
    array[:] = np.arange(array.size).reshape(array.shape)
    return array


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ml_dtypes.bfloat16, np.bool_])
def test_a_large_value_has_memory_of_its_own(dtype: Any) -> None:
    kept, lent = KeptValues(), _lent(dtype)
    expected = lent.copy()
    kept.put(V, lent)
    lent[:] = 0
    kept.put_rows(V, np.array([1, 3]), np.ones([2, 4], dtype))
    expected[[1, 3]] = 1
    value = kept.hand_over()[V]
    np.testing.assert_array_equal(np.asarray(value), expected)
    assert value.dtype == dtype
    # Programs change it in place then; elements of one byte are moved there when they are used.
    assert isinstance(value, jax.Array) == (np.dtype(dtype).itemsize > 1)
    assert kept.hand_over() == {}


def test_a_later_value_takes_the_place_of_the_one_before() -> None:
    kept = KeptValues()
    for shape in ([3], [3], [2, 2]):
        kept.put(V, np.full(shape, len(shape)))
    kept.put(W, np.array([b"a", b"bc"], object))
    kept.put(W, np.array([b"d", b"e"], object))
    values = kept.hand_over()
    np.testing.assert_array_equal(values[V], [[2, 2], [2, 2]])
    assert values[W].tolist() == [b"d", b"e"]


def test_rows_of_what_is_not_there_are_refused() -> None:
    kept = KeptValues()
    rows = np.ones([1, 4])
    with pytest.raises(tf.errors.DataLossError, match="of which there is none"):
        kept.put_rows(V, np.array([0]), rows)
    kept.put(V, np.zeros([3, 5]))
    with pytest.raises(tf.errors.DataLossError, match="of which there is none"):
        kept.put_rows(V, np.array([0]), rows)
    kept.drop(V)
    assert kept.hand_over() == {}
