"""Random graphs: optimised or not, on one device or several, compiled or not, the values agree."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import headrace as tf

SHAPE = [3, 4]
UNARY = [tf.tanh, tf.sigmoid, tf.square, tf.negative, tf.identity, tf.abs, tf.stop_gradient]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum]


def _device(rng, placed):
    return tf.device(f"/cpu:{rng.randrange(3)}") if placed else tf.device(None)


def _random_graph(seed, placed=False):
    """A graph of 25 ops over constants, feeds, a variable and its updates."""
    rng = random.Random(seed)
    x = tf.placeholder(tf.float32, SHAPE)
    with _device(rng, placed):
        v = tf.Variable(np.full(SHAPE, 0.5, np.float32))
    pool = [x, v.read_value(), tf.constant(0.25, shape=SHAPE), tf.zeros(SHAPE), tf.ones(SHAPE)]
    updates = []
    for _ in range(25):
        choice = rng.random()
        with _device(rng, placed):
            if choice < 0.4:
                pool.append(rng.choice(UNARY)(rng.choice(pool)))
            elif choice < 0.85:
                pool.append(rng.choice(BINARY)(rng.choice(pool), rng.choice(pool)))
            elif choice < 0.92:
                with tf.control_dependencies([rng.choice(pool), *updates[-1:]]):
                    pool.append(tf.identity(rng.choice(pool)))
            else:
                # updates in a fixed order, after everything read so far
                with tf.control_dependencies([*pool, *updates]):
                    updates.append(v.assign_add(tf.tanh(rng.choice(pool))).op)
    return x, v, rng.sample(pool, 5), updates


def _steps(x, v, fetches, updates, config=None, count=3):
    feed = {x: np.linspace(-1, 1, 12, dtype=np.float32).reshape(SHAPE)}
    with tf.Session(graph=tf.get_default_graph(), config=config) as sess:
        sess.run(v.initializer)
        results = []
        for _ in range(count):
            results.append(sess.run([*fetches, *updates], feed)[: len(fetches)])
            results.append([sess.run(v)])
        return results


def _compare(one, other):
    for left, right in zip(one, other, strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_optimised_equals_not_optimised(seed, interpret):
    graph = _random_graph(seed)
    options = tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
    plain = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
    _compare(_steps(*graph), _steps(*graph, config=plain))


@pytest.mark.parametrize("seed", range(12))
def test_any_placement_equals_one_device(seed):
    graph = _random_graph(100 + seed, placed=True)
    three = tf.ConfigProto(device_count={"CPU": 3})
    one = tf.ConfigProto(allow_soft_placement=True)
    _compare(_steps(*graph, config=one), _steps(*graph, config=three))


@pytest.mark.parametrize("seed", range(6))
def test_concurrent_steps_equal_some_serial_order(seed):
    """Each step replaces v by a*v + b with its own (a, b), which do not commute."""
    rng = random.Random(seed)
    v = tf.Variable(1.0, dtype=tf.float64)
    a, b = tf.placeholder(tf.float64, []), tf.placeholder(tf.float64, [])
    step = v.assign(v * a + b)
    pairs = [(rng.uniform(0.5, 2), rng.uniform(-1, 1)) for _ in range(4)]
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(step, {a: 1.0, b: 0.0})
        sess.run(step, {a: 1.0, b: 0.0})
        threads = [threading.Thread(target=sess.run, args=(step, {a: p, b: q})) for p, q in pairs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got = sess.run(v)
    assert any(abs(got - value) < 1e-9 for value in _serial_outcomes(1.0, pairs))


def _serial_outcomes(value, pairs):
    if not pairs:
        return [value]
    found = []
    for i, (a, b) in enumerate(pairs):
        found += _serial_outcomes(value * a + b, pairs[:i] + pairs[i + 1 :])
    return found
