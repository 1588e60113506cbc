"""Sessions that wait for tasks: which ones, for how long, and what they say meanwhile."""

import logging
import threading
import time
from itertools import pairwise

import pytest
from server_clusters import eventually

import headrace as tf
from headrace import settings as config
from headrace.distributed.links import peers
from headrace.distributed.services.client import OwnMasterEngine
from headrace.settings import flags

PS0, PS1 = "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(flags, "connect_timeout", 0.1)


def test_only_tasks_that_the_step_needs_are_waited_for(cluster, either, monkeypatch):
    c = cluster(start=False, ps=2, worker=2)
    c.start("ps", 0)
    c.start("worker", 0)
    with tf.device("/job:ps/task:0"):
        near = tf.Variable(1.0)
    with tf.device("/job:ps/task:1"):
        far = tf.Variable(2.0)
    with tf.Session(c.target()) as session:
        monkeypatch.setattr(flags, "connect_timeout", 10.0)
        session.run(near.initializer)
        assert session.run(near) == 1.0
        monkeypatch.setattr(flags, "connect_timeout", 0.1)
        with pytest.raises(tf.errors.UnavailableError) as caught:
            session.run(far.initializer)
        assert f"Task {PS1} cannot be reached: no answer at" in caught.value.message
        assert c.spec.task_address("ps", 1) in caught.value.message
        assert session.run(near) == 1.0
        c.start("ps", 1)
        monkeypatch.setattr(flags, "connect_timeout", 10.0)
        session.run(far.initializer)
        assert session.run(near + far) == 3.0


def test_waiting_is_logged_with_the_tasks_name(cluster, either, caplog, monkeypatch):
    monkeypatch.setattr(peers, "FIRST_NOTICE_SECONDS", 0.0)
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    session = tf.Session(c.target())
    with caplog.at_level(logging.WARNING, "headrace.distributed"):
        starting = threading.Thread(
            target=lambda: eventually(lambda: "Waiting" in caplog.text) and c.start("ps")
        )
        starting.start()
        session.run(v.initializer)
        starting.join()
    assert f"Waiting for task {PS0} at {c.spec.task_address('ps', 0)}" in caplog.text
    assert session.run(v) == 1.0
    session.close()


def test_a_session_waits_for_its_master(cluster, remote, caplog, impatient, monkeypatch):
    c = cluster(start=False, worker=1)
    address = c.spec.task_address("worker", 0)
    v = tf.Variable(1.0)
    session = tf.Session(c.target())
    with (
        caplog.at_level(logging.WARNING, "headrace.distributed"),
        pytest.raises(tf.errors.UnavailableError, match=f"Task at {address} cannot be reached"),
    ):
        session.run(v.initializer)
    assert f"Waiting for the server at {address}" in caplog.text
    c.start("worker")
    monkeypatch.setattr(flags, "connect_timeout", 10.0)
    session.run(v.initializer)
    assert session.run(v) == 1.0
    session.close()


def test_the_sessions_own_limits(cluster, either):
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    config = tf.ConfigProto(operation_timeout_in_ms=400)
    began = time.monotonic()
    with (
        tf.Session(c.target(), config=config) as session,
        pytest.raises((tf.errors.UnavailableError, tf.errors.DeadlineExceededError), match=PS0),
    ):
        session.run(v.initializer)
    with (
        tf.Session(c.target()) as session,
        pytest.raises((tf.errors.UnavailableError, tf.errors.DeadlineExceededError), match=PS0),
    ):
        session.run(v.initializer, options=tf.RunOptions(timeout_in_ms=400))
    assert time.monotonic() - began < 20


def test_a_limit_that_ends_first_names_the_task(cluster, monkeypatch):
    monkeypatch.setattr(OwnMasterEngine, "grace", -0.2)  # before whoever connects gives up
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with tf.Session(c.target()) as session, pytest.raises(tf.errors.DeadlineExceededError) as error:
        session.run(v.initializer, options=tf.RunOptions(timeout_in_ms=600))
    address = c.spec.task_address("ps", 0)
    assert "the step did not finish within timeout_in_ms=600." in error.value.message
    assert error.value.message.endswith(f"There was no answer yet from {PS0} at {address}.")


@pytest.mark.parametrize("limit", ["config", "options"])
def test_a_step_that_takes_too_long(cluster, either, limit):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32, shared_name="q")
        got, put = queue.dequeue(), queue.enqueue(5)
    config = tf.ConfigProto(operation_timeout_in_ms=300 if limit == "config" else 0)
    options = tf.RunOptions(timeout_in_ms=300 if limit == "options" else 0)
    with tf.Session(c.target(), config=config) as session:
        # Planned and compiled before: it is to be too late while it waits, and not before.
        ample = tf.RunOptions(timeout_in_ms=20_000)
        session.run(put, options=ample)
        assert session.run(got, options=ample) == 5
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            session.run(got, options=options)
        assert "did not finish within" in caught.value.message
        assert PS0 in caught.value.message
        assert eventually(lambda: not c["ps", 0].task.worker.running())
        session.run(put)
        assert session.run(got) == 5


def test_the_time_to_wait_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("HEADRACE_CONNECT_TIMEOUT", "2.5")
    assert config._from_environment().connect_timeout == 2.5
    monkeypatch.delenv("HEADRACE_CONNECT_TIMEOUT")
    assert config._from_environment().connect_timeout == 60.0


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CONNECT_TIMEOUT", "abc", "must be a number, but is 'abc'"),
        ("DATA_PORT", "1.5", "must be an integer, but is '1.5'"),
        ("SHARED_MEMORY", "true", "can be 1 or 0, but is 'true'"),
        ("INTERPRET", "sometimes", "can be auto or always or never, but is 'sometimes'"),
        ("DATA_PARALLEL", "sync:x", "can be async, sync, sync:N or all-reduce, but is 'sync:x'"),
    ],
)
def test_a_setting_that_cannot_be_is_named(monkeypatch, variable, value, message):
    monkeypatch.setenv(f"HEADRACE_{variable}", value)
    with pytest.raises(ValueError, match=f"HEADRACE_{variable} {message}"):
        config._from_environment()


def test_a_step_that_waits_for_a_task_does_not_stop_others(cluster, either):
    """One thread waits for a task that is not there; another makes a new kind of step."""
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    with tf.device("/job:ps/task:0"):
        far = tf.random_uniform([]) + 1.0
    near = tf.random_uniform([]) - 1.0
    seen = []
    with tf.Session(c.target()) as session:
        waiting = threading.Thread(target=lambda: seen.append(session.run(far)))
        waiting.start()
        peers = c["worker", 0].task.peers
        assert eventually(lambda: any(lock.locked() for lock in peers._dialling.values()))
        assert session.run(near) <= 0.0
        assert not seen
        c.start("ps")
        waiting.join(10)
    assert len(seen) == 1


def test_a_task_does_not_wait_for_a_queue_that_it_fills(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queues = [tf.FIFOQueue(1, tf.float32, shapes=[[]], shared_name=f"q{i}") for i in range(3)]

    def between(value):
        with tf.device("/job:worker/task:0"):
            return value * 2.0 + 1.0

    ops = [queues[0].enqueue(between(tf.sqrt(tf.placeholder_with_default(1.0, []))))]
    for source, target in pairwise(queues):
        ops.append(target.enqueue(between(source.dequeue())))
    end = between(queues[-1].dequeue())
    with tf.Session(c.target()) as session:
        options = tf.RunOptions(timeout_in_ms=20_000)
        for fetches in ([end, *ops], [end, *ops[::-1]]):
            assert session.run(fetches, options=options)[0] == 31.0
