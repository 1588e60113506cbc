"""A thousand simulated workers on a virtual clock against the rules of asynchronous training."""

import heapq

import numpy as np
import pytest

import headrace as tf
from headrace.contrib import opt as contrib_opt

WORKERS, EVENTS = 1000, 400


def schedule(seed, workers, events):
    """Who ends a step, in the order of a virtual clock, and whether it dies in that step."""
    random = np.random.default_rng(seed)
    speed = random.exponential(1.0, workers) + 0.1
    due = [(float(speed[i] * random.exponential()), i) for i in range(workers)]
    heapq.heapify(due)
    for _ in range(events):
        now, worker = heapq.heappop(due)
        dies = bool(random.random() < 0.05)
        yield worker, dies
        heapq.heappush(due, (now + float(speed[worker] * random.exponential()), worker))


@pytest.fixture(scope="module")
def bounded():
    """A step whose gradient was begun at a step that is fed."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", initializer=np.float64(0.0))
        sgd = tf.train.GradientDescentOptimizer(1.0)
        opt = contrib_opt.StalenessOptimizer(sgd, max_delay=30)
        train = opt.minimize(-w, global_step=step)
        with tf.Session() as sess:
            init = tf.global_variables_initializer()
            state = sess.make_callable([step, w])
            run = sess.make_callable(
                [opt.staleness, opt.is_applied, train], feed_list=[opt.local_step]
            )
            yield lambda: sess.run(init), run, state


@pytest.mark.parametrize("workers", [1, 7, 40, WORKERS])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 250))]
)
def test_the_bound_drops_exactly_what_is_too_stale(bounded, workers, seed):
    """No gradient older than the bound counts, none younger is lost, nobody waits for the dead."""
    init, run, state = bounded
    init()
    begun, done, dropped = np.zeros(workers, np.int64), 0, 0
    for worker, dies in schedule(seed, workers, EVENTS // (1 if workers > 7 else 4)):
        if not dies:
            staleness, applied, _ = run(begun[worker])
            assert staleness == done - begun[worker]
            assert applied == (staleness <= 30)
            done += bool(applied)
            dropped += not applied
        begun[worker] = done  # it reads the variables, or another one in its place does
    assert state() == [done, float(done)]
    assert (dropped > 0) or workers < 40


def test_elastic_averaging_with_a_thousand_workers():
    """What copies give the center gets: nothing is lost, and all come together."""
    random = np.random.default_rng(0)
    copies = random.normal(size=WORKERS)
    getter = contrib_opt.ElasticAverageCustomGetter("/cpu:0")
    with tf.variable_scope("", custom_getter=getter):
        w = tf.get_variable("w", initializer=np.float64(0.0))
    sgd = tf.train.GradientDescentOptimizer(0.0)
    opt = contrib_opt.ElasticAverageOptimizer(sgd, WORKERS, getter, 1, moving_rate=0.25, rho=0.0)
    step = tf.train.get_or_create_global_step()
    train = opt.minimize(w, global_step=step)
    center = next(v for v in tf.global_variables() if v.op.name.startswith("global_center"))
    value = tf.placeholder(tf.float64, [])
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        take = sess.make_callable(w.assign(value).op, feed_list=[value])
        meet, state = sess.make_callable(train), sess.make_callable([w, center])
        total, expected = copies.sum(), 0.0
        met = 0
        for worker, dies in schedule(1, WORKERS, EVENTS):
            if dies:
                continue
            take(copies[worker])
            meet()
            moved = 0.25 * (copies[worker] - expected)
            expected += moved
            found, there = state()
            np.testing.assert_allclose([found, there], [copies[worker] - moved, expected])
            copies[worker] = found
            met += 1
        np.testing.assert_allclose(copies.sum() + expected, total)
        assert sess.run(step) == met
