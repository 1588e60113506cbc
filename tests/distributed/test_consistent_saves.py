"""Checkpoints that have all of each step of any worker, or nothing of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from server_clusters import Cluster

import headrace as tf
from headrace.distributed.master import alone, held_steps, plans
from headrace.train.asynchronous_saver import AsynchronousSaver


class Counting:
    """Workers of a cluster of servers, each step of which adds one to a counter on each server."""

    def __init__(self, cluster: Cluster, workers: int) -> None:
        self.cluster = cluster
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.counters = []
            for i in range(2):
                with tf.device(f"/job:ps/task:{i}"):
                    self.counters.append(
                        tf.get_variable(f"c{i}", [], tf.int64, tf.zeros_initializer())
                    )
            self.steps = []
            for i in range(workers):
                with tf.device(f"/job:worker/task:{i}"):
                    first = tf.assign_add(self.counters[0], 1, use_locking=True)
                    # The second follows the first, with a way through the worker between them.
                    with tf.control_dependencies([tf.identity(first)]):
                        one = tf.identity(tf.constant(1, tf.int64))
                    self.steps.append(tf.assign_add(self.counters[1], one, use_locking=True).op)
            self.saver = tf.train.Saver(sharded=True, max_to_keep=3)
            self.init = tf.global_variables_initializer()
        self.sessions = [
            tf.Session(cluster.target("worker", i), graph=self.graph) for i in range(workers)
        ]

    def saver_of(self, consistent: bool) -> AsynchronousSaver:
        return AsynchronousSaver(self.saver, self.graph, consistent)

    @contextlib.contextmanager
    def training(self) -> Iterator[None]:
        """A thread for each worker but the first, which saves."""
        stop, errors = threading.Event(), list[BaseException]()
        self.made = 0

        def run(step: Callable[[], Any]) -> None:
            try:
                while not stop.is_set():
                    step()
                    self.made += 1
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=run, args=(s.make_callable([step]),))
            for s, step in zip(self.sessions[1:], self.steps[1:], strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not errors, errors[0]

    def close(self) -> None:
        for session in self.sessions:
            session.close()


@pytest.fixture
def counting() -> Iterator[Counting]:
    cluster = Cluster(ps=2, worker=3).start_all()
    made = Counting(cluster, 3)
    made.sessions[0].run(made.init)
    yield made
    made.close()
    cluster.stop()


def gap(path: str) -> int:
    """By how much the counters of a checkpoint differ."""
    reader = tf.train.load_checkpoint(path)
    return abs(int(reader.get_tensor("c0")) - int(reader.get_tensor("c1")))


def test_consistent_checkpoints_have_whole_steps_while_others_train(counting, tmp_path):
    saver, torn = counting.saver_of(True), counting.saver_of(False)
    session, gaps, most = counting.sessions[0], {True: [], False: []}, 0
    with counting.training():
        while len(gaps[True]) < 8 or (not any(gaps[False]) and most < 300):
            most += 1
            for kind, one in ((True, saver), (False, torn)):
                before = counting.made
                one.begin(session, str(tmp_path / f"m{kind}"), global_step=most)
                gaps[kind].append(gap(one.result()))
                session.run(counting.steps[0])
        assert counting.made > before
    assert not any(gaps[True])
    assert any(gaps[False])


def test_steps_that_do_not_end_cost_the_save_and_not_the_training(counting, tmp_path, monkeypatch):
    """One step waits for what another step brings; the next save waits for longer."""
    monkeypatch.setattr(plans, "FIRST_SECONDS", 0.05)
    with counting.graph.as_default():
        with tf.device("/job:worker/task:1"):
            queue = tf.FIFOQueue(1, tf.int64, shared_name="q")
            with tf.control_dependencies([queue.dequeue()]):
                waits = tf.assign_add(counting.counters[0], 0)
            goes = queue.enqueue(1)
        saver = counting.saver_of(True)
    session, other = counting.sessions[:2]
    thread = threading.Thread(target=other.run, args=(waits.op,))
    thread.start()
    step = counting.cluster["worker", 1].task.master
    while not any(p.gate.is_busy for s in step.sessions() for p in s.plans.values()):
        pass
    message = r"Steps that use c0 at /job:ps/.*0 did not end within .* those of /job:worker.*task:1"
    for _ in range(2):
        with pytest.raises(tf.errors.DeadlineExceededError, match=message):
            saver.begin(session, str(tmp_path / "m"), global_step=1)
        counting.sessions[2].run(counting.steps[2])  # all others go on
    session.run(goes)
    thread.join()
    saver.begin(session, str(tmp_path / "m"), global_step=1)
    assert gap(saver.result()) == 0


def test_steps_go_on_when_who_saves_is_gone(counting, monkeypatch):
    """The servers let them go when the link is lost."""
    held, go = threading.Event(), threading.Event()
    master = counting.cluster["worker", 0].task.master

    def save() -> None:
        keys = {f"/job:ps/replica:0/task:{i}": [f"c{i}"] for i in range(2)}
        with contextlib.suppress(tf.errors.OpError), master.alone.alone(keys, 5.0):
            held.set()
            go.wait(20)

    counting.sessions[1].run(counting.steps[1])
    thread = threading.Thread(target=save)
    thread.start()
    assert held.wait(20)
    step = threading.Thread(target=counting.sessions[1].run, args=(counting.steps[1],))
    step.start()
    counting.cluster["worker", 0].stop()
    step.join(8)
    assert not step.is_alive()
    go.set()
    thread.join()


def test_a_hold_that_was_not_kept_is_told(counting):
    """A server let steps go before the time: what was read counts for nothing."""
    master = counting.cluster["worker", 0].task.master
    counting.sessions[1].run(counting.steps[1])

    def run_alone() -> None:
        keys = {f"/job:ps/replica:0/task:{i}": [f"c{i}"] for i in range(2)}
        with master.alone.alone(keys, 5.0):
            moves = counting.cluster["ps", 1].task.moves
            moves._end_hold(moves._now.asked)

    with pytest.raises(tf.errors.AbortedError, match=r"were not held at .*ps.*1 for all of the"):
        run_alone()
    assert alone.MOST_SECONDS < held_steps._HOLD_SECONDS
    counting.sessions[1].run(counting.steps[1])


def test_hooks_save_whole_steps(counting, tmp_path):
    with counting.graph.as_default():
        step = tf.train.get_or_create_global_step()
        train = tf.group(counting.steps[0], step.assign_add(1))
        counting.sessions[0].run(step.initializer)
        hook = tf.train.CheckpointSaverHook(
            str(tmp_path), save_steps=2, saver=tf.train.Saver(sharded=True), consistent=True
        )
        creator = tf.train.ChiefSessionCreator(
            tf.train.Scaffold(init_op=tf.no_op(), ready_op=tf.constant([], tf.string)),
            counting.cluster.target("worker", 0),
        )
        with (
            counting.training(),
            tf.train.MonitoredSession(creator, [hook]) as session,
        ):
            for _ in range(5):
                session.run(train)
    found = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert len(found) == 4
    assert not any(map(gap, found))
