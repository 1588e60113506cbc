"""Workers whose graphs differ from the chief's are told which variables do, and do not wait."""

from __future__ import annotations

import threading

import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster
from headrace.train import session_manager


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(session_manager, "PATIENCE_WITH_OTHER_GRAPHS", 0.0)
    monkeypatch.setattr(session_manager.SessionManager, "sleep", staticmethod(lambda seconds: None))


def model(width=3, name="w", extra=False, momentum=False, sync=False):
    """A training op and its hooks in the default graph."""
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable(name, [2, width], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(w * w)
    if extra:
        loss += tf.reduce_sum(tf.get_variable("extra", [2], initializer=tf.ones_initializer()))
    opt = tf.train.GradientDescentOptimizer(0.1)
    if momentum:
        opt = tf.train.MomentumOptimizer(0.1, 0.9)
    if not sync:
        return opt.minimize(loss, global_step=step), []
    opt = tf.train.SyncReplicasOptimizer(opt, 2)
    return opt.minimize(loss, global_step=step), [opt.make_session_run_hook(False)]


def session(cluster, index, **options):
    """A monitored session of one worker; the first is the chief."""
    setter = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{index}")
    with tf.Graph().as_default(), tf.device(setter):
        _, hooks = model(**options)
        return tf.train.MonitoredTrainingSession(
            cluster.target("worker", index),
            is_chief=index == 0,
            hooks=hooks if index else [],
            max_wait_secs=5,
            log_step_count_steps=None,
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"extra": True}, r"the chief has no extra \(float32 \(2,\)\)"),
        ({"name": "v"}, r"the chief has no v \(float32 \(2, 3\)\)"),
        ({"momentum": True}, r"the chief has no w/Momentum \(float32 \(2, 3\)\)"),
        ({"name": "v", "width": 5}, r"the chief has no v \(float32 \(2, 5\)\)"),
    ],
)
def test_variables_that_the_chief_has_not(options, said):
    with (
        with_cluster(ps=1, worker=2) as cluster,
        session(cluster, 0),
        pytest.raises(ValueError, match=said),
    ):
        session(cluster, 1, **options)


def test_other_shapes_are_told_while_values_are_waited_for():
    said = r"w is float32 \(2, 5\) here, float32 \(2, 3\) there"
    with (
        with_cluster(ps=1, worker=2) as cluster,
        session(cluster, 0),
        pytest.raises(ValueError, match=said),
    ):
        session(cluster, 1, width=5, extra=True)


def test_a_variable_that_only_the_chief_trains():
    """Others may have less, unless they train in step."""
    with with_cluster(ps=1, worker=2) as cluster, session(cluster, 0, extra=True):
        session(cluster, 1).close()
        with pytest.raises(ValueError, match=r"only the chief trains \['extra'\]"):
            session(cluster, 1, sync=True)


def test_what_an_earlier_chief_has_told_counts_for_a_while_only(monkeypatch):
    monkeypatch.setattr(session_manager, "PATIENCE_WITH_OTHER_GRAPHS", 1e6)
    with with_cluster(ps=1, worker=2) as cluster:
        session(cluster, 0).close()
        opened = threading.Event()
        waits = threading.Event()

        def sleep(seconds):
            waits.set()

        monkeypatch.setattr(session_manager.SessionManager, "sleep", staticmethod(sleep))
        monkeypatch.setattr(session_manager.SessionManager, "clock", staticmethod(lambda: 0.0))

        def work():
            session(cluster, 1, extra=True).close()
            opened.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert waits.wait(30)
        session(cluster, 0, extra=True).close()
        thread.join(30)
        assert opened.is_set()
