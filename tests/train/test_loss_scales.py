"""Loss scales of `tf.contrib`, mixed precision by one call, and workers that decide together."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster
from headrace.session.rewrites import mixed_precision
from headrace.settings import flags

experimental = tf.train.experimental


@pytest.fixture
def rewrite():
    """Mixed precision as it was before, after the test."""
    before = dict(vars(mixed_precision))
    yield
    vars(mixed_precision).update(before)


def exponential(scale, good, bad, finite, every, down_every, up, down):
    """A step of the rule of `ExponentialUpdateLossScaleManager`, as its documentation says it."""
    scale = np.float32(scale)
    if finite:
        if good + 1 < every:
            return scale, good + 1, bad
        with np.errstate(over="ignore"):
            grown = scale * np.float32(up)
        return (grown if np.isfinite(grown) else scale), 0, 0
    if bad + 1 < down_every:
        return scale, 0, bad + 1
    return max(np.float32(1), scale * np.float32(down)), 0, 0


@pytest.mark.parametrize("arguments", [(8.0, 3, 2, 2, 0.8), (1.5, 1, 1, 4, 0.5), (2.0**126, 1, 2)])
def test_the_exponential_manager_follows_its_rule(arguments):
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(*arguments)
    start, every, down_every, up, down = (*arguments, 2, 0.8)[:5]
    finite = tf.placeholder(tf.bool, [])
    update = manager.update_loss_scale(finite)
    names = ["loss_scale", "good_steps", "bad_steps"]
    state = [v for n in names for v in tf.global_variables() if v.op.name == n]
    expected = (np.float32(start), 0, 0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in np.random.RandomState(0).rand(30) < 0.6:
            session.run(update, {finite: value})
            expected = exponential(*expected, value, every, down_every, up, down)
            assert tuple(session.run(state)) == expected


@pytest.mark.parametrize("factor", [1.0, float("inf")])
def test_the_optimiser_of_contrib_leaves_out_what_is_not_finite_under_any_manager(factor):
    x = tf.Variable(4.0)
    step = tf.train.get_or_create_global_step()
    manager = tf.contrib.mixed_precision.FixedLossScaleManager(16.0)
    sgd = tf.train.GradientDescentOptimizer(0.25)
    train = tf.contrib.mixed_precision.LossScaleOptimizer(sgd, manager).minimize(
        x * x * tf.constant(factor), global_step=step
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([x, step]) == ([2.0, 1] if factor == 1 else [4.0, 0])


def test_one_call_switches_mixed_precision_on_for_later_sessions(rewrite):
    x = tf.placeholder(tf.float32, [1, 2])
    w = tf.Variable([[1.0 + 2.0**-12], [0.0]])
    y = tf.identity(tf.nn.relu(tf.matmul(x, w)))
    fed = {x: [[1.0, 0.0]]}

    def result(session):
        session.run(w.initializer)
        value = session.run(y, fed)
        assert value.dtype == np.float32
        return float(value[0, 0])

    with tf.Session() as before:
        opt = experimental.enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer())
        assert isinstance(opt, experimental.MixedPrecisionLossScaleOptimizer)
        off = tf.ConfigProto()
        off.graph_options.rewrite_options.auto_mixed_precision = 2
        with tf.Session() as during, tf.Session(config=off) as without:
            experimental.disable_mixed_precision_graph_rewrite()
            with tf.Session() as after:
                found = [result(s) for s in (before, during, without, after)]
    exact = 1.0 + 2.0**-12
    assert found == [exact, 1.0, exact, exact]


def test_what_cannot_be_wrapped_is_refused(rewrite):
    sgd = tf.train.GradientDescentOptimizer(0.1)
    wrapped = experimental.MixedPrecisionLossScaleOptimizer(sgd, 8)
    with pytest.raises(ValueError, match=r'"opt" must not already be an instance of a Mixed'):
        experimental.enable_mixed_precision_graph_rewrite(wrapped)
    with pytest.raises(ValueError, match=r'"opt" must be an instance of a tf'):
        experimental.enable_mixed_precision_graph_rewrite("sgd")
    with pytest.raises(ValueError, match="loss_scale cannot be None"):
        experimental.enable_mixed_precision_graph_rewrite(sgd, None)
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier: 'auto'"):
        experimental.enable_mixed_precision_graph_rewrite(sgd, "auto")
    with pytest.raises(ValueError, match="must be at least 1"):
        experimental.FixedLossScale(0.5)
    with pytest.raises(ValueError, match="Put the loss scale inside: SyncReplicasOptimizer"):
        experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.SyncReplicasOptimizer(sgd, 1), "dynamic"
        )
    assert not mixed_precision.is_enabled


def test_a_scale_is_made_again_from_its_config():
    scale = experimental.DynamicLossScale(4.0, 10, 3.0)
    with tf.Graph().as_default():
        again = experimental.DynamicLossScale.from_config(scale.get_config())
    assert repr(again) == repr(scale)
    assert "increment_period=10" in repr(again)
    fixed = experimental.FixedLossScale(7)
    assert repr(experimental.FixedLossScale.from_config(fixed.get_config())) == repr(fixed)


def test_replicas_that_step_together_go_on_after_a_skipped_update():
    factor = tf.placeholder(tf.float32, [])
    x = tf.Variable(4.0)
    step = tf.train.get_or_create_global_step()
    sgd = tf.train.GradientDescentOptimizer(0.25)
    inner = experimental.MixedPrecisionLossScaleOptimizer(sgd, "dynamic")
    opt = tf.train.SyncReplicasOptimizer(inner, 1)
    train = opt.minimize(x * x * factor, global_step=step)
    found = []
    hook = opt.make_session_run_hook(is_chief=True, num_tokens=0)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        for value in (1.0, float("nan"), 1.0):
            session.run(train, {factor: value})
            found.append(float(session.run(x)))
    assert found == [2.0, 2.0, 1.0]


def test_workers_of_an_all_reduce_decide_together():
    found = {}

    def worker(i):
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
            factor = tf.placeholder(tf.float32, [])
            x = tf.Variable(4.0)
            scale = experimental.DynamicLossScale(8.0)
            inner = experimental.MixedPrecisionLossScaleOptimizer(
                tf.train.GradientDescentOptimizer(0.25), scale
            )
            train = tf.train.AllReduceOptimizer(inner, 2).minimize(x * x * factor)
            with tf.Session(cluster.target("worker", i)) as session:
                session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                found[i] = []
                for value in (1.0, float("nan") if i else 1.0, 1.0):
                    session.run(train, {factor: value})
                    found[i].append([float(v) for v in session.run([x, scale()])])

    with with_cluster(worker=2) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {i: [[2.0, 8.0], [2.0, 4.0], [1.0, 4.0]] for i in range(2)}


def test_parameter_servers_keep_float32(rewrite, tmp_path):
    with with_cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=np.eye(4, dtype=np.float32) + 1 / 3)
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [None, 4])
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), w)))
            opt = experimental.enable_mixed_precision_graph_rewrite(
                tf.train.GradientDescentOptimizer(0.01)
            )
            train = opt.minimize(loss)
        saver = tf.train.Saver()
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            first = session.run(w)
            losses = [session.run([loss, train], {x: np.eye(4)})[0] for _ in range(3)]
            path = saver.save(session, str(tmp_path / "model"))
            last = session.run(w)
    assert losses[0] > losses[1] > losses[2]
    assert last.dtype == np.float32
    assert not np.array_equal(first, last)
    np.testing.assert_array_equal(tf.train.load_variable(path, "w"), last)


def test_tf32_is_a_choice_of_the_program(monkeypatch):
    monkeypatch.setattr(flags, "tf32", False)
    config = tf.config.experimental
    config.enable_tensor_float_32_execution(True)
    assert flags.tf32
    assert config.tensor_float_32_execution_enabled()
    with pytest.raises(TypeError, match="enabled must be a bool, not 1"):
        config.enable_tensor_float_32_execution(1)
