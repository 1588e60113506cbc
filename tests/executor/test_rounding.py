"""Constants in sums and products: every run rounds in the order of the program."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import headrace as tf
from headrace.executor import region_options
from headrace.executor.region_options import scope_on
from headrace.settings import flags

VALUES = np.float32([1.0, 1e-9, 0.3, 0.0])


@pytest.mark.parametrize(
    "build",
    [
        lambda x: 1.0 - x + 1e-8,
        lambda x: x - 1.0 + 1e-8,
        lambda x: (x + 1.0) + 1e-8 - 1.0,
        lambda x: x + 1e8 - 1e8,
        lambda x: tf.reshape(1.0 - x, [2, 2]) + 1e-8,
        lambda x: x * 1e-30 * 1e-20 * 1e30,
        lambda x: tf.cast(x, tf.float64) + 1e16 - 1e16,
    ],
)
def test_the_order_of_the_program_holds(build, interpret):
    x = tf.placeholder(tf.float32, [4])
    y = build(x)
    with tf.Session() as sess:
        got = sess.run(y, {x: VALUES})
    with np.errstate(all="ignore"):
        first, *rest = _plain(build)
        for other in rest:
            first = other(first)
    np.testing.assert_array_equal(got.ravel(), first.ravel())


def _plain(build):
    """The same in NumPy, step by step."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4])
        y = build(x)
        op, steps = y.op, []
        while op is not x.op:
            steps.append(_numpy_step(op))
            op = next(t.op for t in op.inputs if t.op.type != "Const")
    return [VALUES, *reversed(steps)]


def _numpy_step(op):
    kinds = {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply}
    if op.type not in kinds:
        return {
            "Reshape": lambda v: v,
            "Cast": lambda v: v.astype(np.float64),
        }[op.type]
    constants = [t.op.get_attr("value") if t.op.type == "Const" else None for t in op.inputs]
    values = [None if c is None else np.asarray(tf.make_ndarray(c)) for c in constants]
    return lambda v: kinds[op.type](*[v if c is None else c for c in values])


def test_the_logarithm_of_a_saturated_probability_is_finite(interpret):
    p = tf.placeholder(tf.float32, [2])
    loss = -tf.reduce_mean(tf.log(1.0 - p + 1e-8))
    (gradient,) = tf.gradients(loss, [p])
    with tf.Session() as sess:
        for _ in range(3):
            value, slope = sess.run([loss, gradient], {p: [1.0, 0.5]})
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def test_the_order_holds_in_loops(interpret):
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, 1.0 - (1.0 - a + 1e-8)), [0, x])
    with tf.Session() as sess:
        got = sess.run(y, {x: 1.0})
    want = np.float32(1.0)
    for _ in range(3):
        want = np.float32(1) - ((np.float32(1) - want) + np.float32(1e-8))
    assert got == want


@pytest.mark.parametrize(("platform", "tf32"), [("cpu", False), ("gpu", False), ("gpu", True)])
def test_products_on_gpus_are_not_rounded_to_tf32(platform, tf32, monkeypatch):
    monkeypatch.setattr(region_options, "_gpu_is_default", lambda: platform == "gpu")
    monkeypatch.setattr(flags, "tf32", tf32)
    with scope_on(None):
        program = jax.jit(lambda a: a @ a).lower(np.ones([2, 2], np.float32)).as_text()
    assert ("HIGHEST" in program) == (platform == "gpu" and not tf32)
