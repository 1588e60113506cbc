"""The gradient of a gather along any axis is what NumPy adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((5, 6), [1, 1, 4], 1),
        ((3, 4, 5), [[0, 2], [2, 2]], 1),
        ((3, 4, 5), [[0, 2], [2, 2]], 2),
        ((3, 4, 5), 3, -1),
        ((3, 4, 0), [1, 2], 1),
        ((3, 4, 5), np.zeros((0,), np.int32), 1),
        ((2, 3, 4, 5), [[[3]]], -2),
    ],
)
def test_elements_that_were_taken_twice_are_added(
    shape: tuple[int, ...], indices: Any, axis: int
) -> None:
    rng, ids = np.random.default_rng(0), np.asarray(indices, np.int32)
    x = tf.constant(rng.standard_normal(shape).astype(np.float32))
    y = tf.gather(x, ids, axis=axis)
    dy = rng.standard_normal(y.shape.as_list()).astype(np.float32)
    with tf.Session() as session:
        (got,) = session.run(tf.gradients(y, x, grad_ys=tf.constant(dy)))
    want = np.zeros(shape, np.float32)
    at = axis % len(shape)
    rows = np.moveaxis(dy, range(at, at + ids.ndim), range(ids.ndim))
    np.add.at(np.moveaxis(want, axis, 0), ids, rows)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)
