"""The largest elements by NumPy: the order of a stable sort, for every type and length."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from headrace.ops.core.sorting import largest

SHAPES = [(3, 50), (2, 3, 17), (7,), (60, 3000), (1, 20_000), (5, 1), (0, 4), (4, 0)]


def _stable(x, k):
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
    return x.shape[-1] - 1 - order


@pytest.mark.parametrize(
    "dtype", ["f4", "f2", "f8", "i4", "i8", "u4", "u1", "i2", ml_dtypes.bfloat16]
)
def test_equal_elements_stay_in_order(dtype):
    rng = np.random.RandomState(7)
    for shape in SHAPES:
        low = 0 if np.dtype(dtype).kind == "u" else -20
        x = rng.randint(low, 20, shape).astype(dtype)
        is_float = np.dtype(dtype).kind in "fV"
        if is_float and x.size > 10:
            x.flat[[3, 4, 6, 8]] = [np.inf, -np.inf, -0.0, 0.0]
        if x.size and not is_float:
            x.flat[0], x.flat[-1] = np.iinfo(dtype).max, np.iinfo(dtype).min
        for k in {0, min(1, shape[-1]), min(5, shape[-1]), shape[-1]}:
            np.testing.assert_array_equal(largest(x, k), _stable(x, k))


def test_any_nan_comes_first():
    x = np.array([[np.nan, 1.0, np.nan, np.inf, -np.inf]], "f")
    x.view("u4")[0, 2] |= 0x80000000  # one of the other sign
    assert largest(x, 5).tolist() == [[0, 2, 3, 1, 4]]
