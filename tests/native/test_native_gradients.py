"""Gradients that JAX takes of kernels, with the native library."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import native
from headrace.ops.core.build import raw
from headrace.settings import flags

pytestmark = pytest.mark.skipif(
    native.library() is None, reason="the native library is not built (make native)"
)


def test_kernels_with_calls_of_the_library_are_differentiated(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    rng = np.random.RandomState(0)
    x, y = (rng.standard_normal((3, 64, 64)).astype(np.float32) for _ in range(2))
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.constant(x), tf.constant(y)
        product = raw.BatchMatMulV3(a, b, Tout=tf.float32)  # an op without a rule of its own
        got = session.run(tf.gradients(product, [a, b]))
    ones = np.ones((3, 64, 64), np.float32)
    np.testing.assert_allclose(got[0], ones @ y.swapaxes(1, 2), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got[1], x.swapaxes(1, 2) @ ones, rtol=1e-4, atol=1e-4)
