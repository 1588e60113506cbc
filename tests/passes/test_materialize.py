"""Barriers: where they go, that values stay, and that XLA heeds them."""

from __future__ import annotations

import jax
import numpy as np

import headrace as tf
from headrace.executor.region_options import CPU_OPTIONS
from headrace.passes import materialize
from headrace.passes.ir import build_step
from headrace.passes.pipeline import optimize


def barriers(*fetches):
    step = build_step(list(fetches), [], [])
    changed = optimize(step)["keep what has many users"]
    assert [n.type for n in step.nodes].count("_Materialize") == changed
    return changed


def recurrence(x, steps):
    """Two users of each value: the next step and the sum."""
    y, total = x, []
    for i in range(steps):
        y = y * x - 0.1 * i
        total.append(tf.tanh(y))
    return tf.add_n(total)


def test_a_long_recurrence_is_kept_now_and_then():
    x = tf.placeholder(tf.float32, [3])
    per_barrier = materialize.LIMIT // 2 + 1
    assert barriers(recurrence(x, 4 * per_barrier + 1)) == 4


def test_short_chains_and_single_users_are_left_to_fusion():
    x = tf.placeholder(tf.float32, [3])
    assert barriers(recurrence(x, materialize.LIMIT // 2)) == 0
    y = x
    for i in range(10 * materialize.LIMIT):
        y = y * x - 0.1 * i
    assert barriers(y) == 0


def test_costly_ops_are_no_part_of_a_chain():
    x = tf.placeholder(tf.float32, [3])
    y, total = x, []
    for _ in range(4 * materialize.LIMIT):
        y = tf.tanh(y * x)
        total.append(y)
    assert barriers(*total) == 0


def test_values_fetched_fed_and_waited_for_stay():
    x = tf.placeholder(tf.float32, [3])
    y = recurrence(x, 40)
    dx = tf.gradients(y, x)[0]
    with tf.control_dependencies([dx]):
        z = tf.identity(y)
    feed = {x: np.array([0.5, -0.25, 0.125], np.float32)}
    results = []
    for level in (-1, 0):
        options = tf.OptimizerOptions(opt_level=level)
        config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
        with tf.Session(config=config) as sess:
            step = [sess.run([y, dx, z], feed) for _ in range(3)]
        np.testing.assert_array_equal(step[1][0], step[2][0])
        results.append(step)
    assert barriers(y, dx, z) > 4
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_xla_repeats_nothing_behind_a_barrier():
    def program(x):
        y, total = x, []
        for _ in range(6):
            y = jax.lax.optimization_barrier(y * x - 0.1)
            total.append(jax.numpy.tanh(y))
        return total

    x = np.ones(3, np.float32)
    compiled = jax.jit(program, compiler_options=CPU_OPTIONS).lower(x).compile()
    # One product for each step; without barriers step n would repeat those of all before it.
    assert compiled.as_text().count(" multiply(") == 6
