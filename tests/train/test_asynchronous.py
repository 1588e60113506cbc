"""Asynchronous training: no update is lost, staleness is told and bounded, and made up for."""

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.contrib import opt as contrib_opt
from headrace.errors import InvalidArgumentError
from headrace.harness.cluster import with_cluster

THREADS, STEPS = 6, 25


@pytest.mark.parametrize("use_locking", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        tf.train.GradientDescentOptimizer,
        lambda rate, use_locking: tf.train.MomentumOptimizer(rate, 0.0, use_locking),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_lose_no_update(use_locking, make, sparse):
    """Hogwild: all threads update the same variable, whose order does not matter here."""
    w = tf.get_variable("w", initializer=np.zeros([50, 4], np.float32))
    loss = tf.reduce_sum(tf.gather(w, [3, 7]) if sparse else w)
    step = tf.train.get_or_create_global_step()
    train = make(1.0, use_locking=use_locking).minimize(loss, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        run = sess.make_callable(train)

        def work():
            for _ in range(STEPS):
                run()

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = np.zeros([50, 4], np.float32)
        expected[[3, 7] if sparse else slice(None)] = -THREADS * STEPS
        np.testing.assert_array_equal(sess.run(w), expected)
        assert sess.run(step) == THREADS * STEPS


class Delayed:
    """A model whose gradients wait between their computation and their application."""

    def __init__(self, wrap):
        self.w = tf.get_variable("w", initializer=1.0)
        self.step = tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(0.5)
        self.quick = sgd.minimize(self.w * 1.0, global_step=self.step)
        self.optimizer = wrap(sgd)
        reached = tf.FIFOQueue(1, tf.bool, [[]])
        go_on = tf.FIFOQueue(1, tf.bool, [[]])
        [(grad, _)] = self.optimizer.compute_gradients(self.w * 4.0)
        with tf.control_dependencies([self.optimizer.local_step, grad]):
            here = reached.enqueue(True)
        with tf.control_dependencies([here]):
            passed = go_on.dequeue()
        with tf.control_dependencies([passed]):
            pairs = [(tf.identity(grad), self.w)]
        self.slow = self.optimizer.apply_gradients(pairs, global_step=self.step)
        self.reached, self.go_on = reached.dequeue(), go_on.enqueue(True)

    def run(self, sess, between, *more):
        """A slow step, with so many quick ones between its two halves: staleness, applied?"""
        found = []
        fetches = [self.slow, self.optimizer.staleness, self.optimizer.is_applied, *more]
        thread = threading.Thread(target=lambda: found.extend(sess.run(fetches)))
        thread.start()
        sess.run(self.reached)
        for _ in range(between):
            sess.run(self.quick)
        sess.run(self.go_on)
        thread.join()
        return found


def test_staleness_is_how_many_updates_came_between():
    model = Delayed(contrib_opt.StalenessOptimizer)
    summary = tf.summary.merge_all()
    assert summary is not None
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for between in (0, 3, 1):
            assert model.run(sess, between)[1:] == [between, True]
        assert sess.run(model.step) == 3 + 4
        assert sess.run(model.w) == 1.0 - 0.5 * (4 * 1.0 + 3 * 4.0)


def test_staleness_is_a_summary_of_each_step(tmp_path):
    model = Delayed(contrib_opt.StalenessOptimizer)
    summary = tf.summary.merge_all()
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        sess.run(tf.global_variables_initializer())
        for step, between in enumerate((0, 3, 1)):
            found = model.run(sess, between, summary)
            writer.add_summary(found[-1], step)
    events = [e for path in tmp_path.iterdir() for e in tf.train.summary_iterator(str(path))]
    told = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]
    assert told == [(i, "gradient_staleness", n) for i, n in enumerate((0.0, 3.0, 1.0))]


def test_too_stale_gradients_are_dropped():
    model = Delayed(lambda sgd: contrib_opt.StalenessOptimizer(sgd, max_delay=2))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert model.run(sess, 2)[1:] == [2, True]
        assert model.run(sess, 3)[1:] == [3, False]
        assert sess.run(model.step) == 1 + 5  # a dropped one is no step
        assert sess.run(model.w) == 1.0 - 0.5 * (5 * 1.0 + 4.0)


def test_drop_stale_gradient_counts_what_it_drops():
    model = Delayed(lambda sgd: contrib_opt.DropStaleGradientOptimizer(sgd, 1))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [model.run(sess, n)[0] for n in (0, 2, 1, 5)] == [0.0, 1.0, 1.0, 2.0]
        names = [v.name for v in tf.global_variables()]
        assert "stale_counter:0" in names


def test_staleness_needs_a_global_step():
    x = tf.Variable(1.0)
    wrapped = contrib_opt.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0))
    with pytest.raises(ValueError, match=r"call tf.train.get_or_create_global_step\(\) first"):
        wrapped.minimize(x)
    tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="StalenessOptimizer needs global_step"):
        wrapped.minimize(x)
    with pytest.raises(ValueError, match="max_delay must not be negative: -1"):
        contrib_opt.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0), -1)
    with pytest.raises(TypeError, match=r"opt must be a tf.train.Optimizer, not None"):
        contrib_opt.StalenessOptimizer(None)


def compensated(gradients, rate, variance, workers, schedule, start):
    """The algorithm of the paper in NumPy."""
    w, back = start.copy(), [start.copy() for _ in range(workers)]
    for worker, batch in schedule:
        g = gradients[batch]
        w = w - rate * (g + variance * g * g * (w - back[worker]))
        back[worker] = w.copy()
    return w


@pytest.mark.parametrize("sparse", [False, True])
def test_delay_compensation_is_that_of_the_paper(sparse):
    rng = np.random.RandomState(0)
    start, factors = rng.normal(size=[5, 3]), rng.normal(size=[4, 2 if sparse else 5, 3])
    rows = [1, 4] if sparse else list(range(5))
    w = tf.get_variable("w", initializer=start)
    factor = tf.placeholder(tf.float64, factors.shape[1:])
    loss = tf.reduce_sum((tf.gather(w, rows) if sparse else w) * factor)
    opt = contrib_opt.DelayCompensatedGradientDescentOptimizer(0.125, 2.0, num_workers=2)
    train = [opt.minimize(loss, worker_index=i) for i in range(2)]
    schedule = [(0, 0), (1, 1), (1, 2), (0, 3), (0, 0), (1, 1)]
    gradients = np.zeros([4, 5, 3])
    gradients[:, rows] = factors
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for worker, batch in schedule:
            sess.run(train[worker], {factor: factors[batch]})
        expected = compensated(gradients, 0.125, 2.0, 2, schedule, start)
        np.testing.assert_allclose(sess.run(w), expected, rtol=1e-12)
    assert opt.get_slot_names() == ["shadow_0", "shadow_1"]


def test_delay_compensation_checks_its_workers():
    with pytest.raises(ValueError, match="num_workers must be a positive value, not 0"):
        contrib_opt.DelayCompensatedGradientDescentOptimizer(0.1, 1.0, 0)
    opt = contrib_opt.DelayCompensatedGradientDescentOptimizer(0.1, 1.0, 2)
    with pytest.raises(ValueError, match="below num_workers=2, not 2"):
        opt.minimize(tf.Variable(1.0), worker_index=2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_guard_against_gradients_that_are_no_numbers(bad, sparse):
    a, b = tf.get_variable("a", initializer=[1.0, 2.0]), tf.get_variable("b", initializer=1.0)
    step = tf.train.get_or_create_global_step()
    factor = tf.placeholder(tf.float32, [])
    loss = tf.reduce_sum(tf.gather(a, [1]) if sparse else a) * factor + b
    sgd = tf.train.GradientDescentOptimizer(0.5)
    train, guards = {}, {}
    for action in ("skip", "stop", "report"):
        guards[action] = contrib_opt.GuardedOptimizer(sgd, action)
        train[action] = guards[action].minimize(loss, global_step=step)
    with tf.Session() as sess:

        def state():
            return [sess.run(a)[1], sess.run(b), sess.run(step)]

        sess.run(tf.global_variables_initializer())
        _, has_nan = sess.run([train["skip"], guards["skip"].has_nan], {factor: bad})
        assert has_nan
        assert state() == [2.0, 1.0, 1]
        with pytest.raises(InvalidArgumentError, match="Gradient of a:0 is not finite"):
            sess.run(train["stop"], {factor: bad})
        assert state() == [2.0, 1.0, 1]
        for number, action in enumerate(train, start=2):
            _, has_nan = sess.run([train[action], guards[action].has_nan], {factor: 0.0})
            assert not has_nan
            assert state() == [2.0, 1.0 - 0.5 * (number - 1), number]
        sess.run(train["report"], {factor: bad})
        assert not np.isfinite(state()[0])
    with pytest.raises(ValueError, match="must be 'skip', 'stop' or 'report', not 'ignore'"):
        contrib_opt.GuardedOptimizer(sgd, "ignore")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda opt: contrib_opt.GuardedOptimizer(opt, "skip"),
        lambda opt: contrib_opt.StalenessOptimizer(opt, max_delay=2),
    ],
)
def test_conditional_updates_are_made_beside_variables_of_servers(wrap):
    """Updates in a branch go where the variable is, not where the worker builds its graph."""
    with with_cluster(ps=1, worker=1) as cluster:
        place = tf.train.replica_device_setter(worker_device="/job:worker/task:0", ps_tasks=1)
        with tf.device(place):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=[4.0, 2.0])
            opt = wrap(tf.train.MomentumOptimizer(0.5, 0.5))
            train = opt.minimize(tf.reduce_sum(w), global_step=step)
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            assert sess.run([w, step])[0].tolist() == [3.5, 1.5]
            assert sess.run(step) == 1
