"""Variables move between tasks of one process while steps run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import LocalCluster, with_cluster

PS = "/job:ps/replica:0/task:"
WORKER = "/job:worker/replica:0/task:"


class Record:
    """What tasks agree on, for tests: all of them know it at once."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.epoch = 0
        self.moved: dict[str, str] = {}
        for task in cluster.tasks.values():
            task.moves.record = self

    def begin(self) -> int:
        return self.epoch

    def settle(self) -> None:
        self.epoch += 1

    def commit(self, keys: Sequence[str], task: str, epoch: int) -> None:
        assert epoch == self.epoch
        self.epoch += 1
        self.moved.update(dict.fromkeys(keys, task))
        for other in self.cluster.tasks.values():
            other.master.moved.set(self.epoch, self.moved)


def move(cluster: LocalCluster, keys: Sequence[str], source: int, to: int, **kwargs: Any) -> Any:
    return cluster.tasks[f"{PS}{source}"].moves.move(keys, f"{PS}{to}", **kwargs)


def stored(cluster: LocalCluster, index: int) -> set[str]:
    return {key.name for key, _ in cluster.tasks[f"{PS}{index}"].store.items()}


class Trainers:
    """Threads that run a step again and again, until the end of the block."""

    def __init__(self) -> None:
        self.steps = 0
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._lock = threading.Condition()

    def run(self, step: Any) -> None:
        try:
            while not self._stop.is_set():
                step()
                with self._lock:
                    self.steps += 1
                    self._lock.notify_all()
        except BaseException as error:
            self.errors.append(error)
            with self._lock:
                self._lock.notify_all()

    def await_steps(self, count: int) -> None:
        """Wait until so many more steps have run."""
        with self._lock:
            until = self.steps + count
            assert self._lock.wait_for(lambda: self.steps >= until or self.errors, 30)

    @contextmanager
    def training(self, steps: Sequence[Any]) -> Iterator[Trainers]:
        threads = [threading.Thread(target=self.run, args=(s,)) for s in steps]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()


@contextmanager
def model(workers: int = 2) -> Iterator[tuple[LocalCluster, Record, Any, Any, Any]]:
    """A model with slots on the first server, rows that some steps change, and a counter."""
    with tf.Graph().as_default(), with_cluster(ps=3, worker=workers) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [64], initializer=tf.ones_initializer())
            table = tf.get_variable("table", [1000, 4], initializer=tf.zeros_initializer())
            count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
        steps = []
        for index in range(workers):
            with tf.device(f"/job:worker/task:{index}"):
                loss = tf.reduce_sum(tf.square(w - 3.0))
            train = tf.train.MomentumOptimizer(0.01, 0.5).minimize(loss)
            rows = tf.scatter_add(table, [index, 7], np.ones([2, 4], np.float32))
            counted = tf.assign_add(count, 1, use_locking=True)
            steps.append(tf.group(train, rows, counted))
        record = Record(cluster)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            yield cluster, record, session, steps, (w, table, count)


def test_variables_move_there_and_back_while_two_workers_train() -> None:
    with model() as (cluster, _, session, steps, (_, table, count)):
        other = tf.Session(cluster.target("worker", 1))
        with contextlib.closing(other):
            calls = [session.make_callable([steps[0]]), other.make_callable([steps[1]])]
            with Trainers().training(calls) as trainers:
                trainers.await_steps(20)
                report = move(cluster, ["w"], 0, 2)
                assert set(report.keys) == {"w", "w/Momentum", "w/Momentum_1"}
                trainers.await_steps(20)
                move(cluster, ["table", "count"], 0, 1)
                trainers.await_steps(20)
                assert stored(cluster, 0) == set()
                move(cluster, ["w"], 2, 0)
                move(cluster, ["count", "table"], 1, 0)
                trainers.await_steps(20)
            assert not trainers.errors
            assert session.run(count) == trainers.steps
            assert session.run(table)[7].tolist() == [trainers.steps] * 4
            assert stored(cluster, 0) >= {"w", "w/Momentum", "table", "count"}
            assert stored(cluster, 1) == stored(cluster, 2) == set()


def test_a_new_session_finds_what_has_moved() -> None:
    with model(1) as (cluster, _, session, _, (w, _, _)):
        session.run(w.assign(np.full(64, 5.0, np.float32)))
        move(cluster, ["w"], 0, 1)
        with tf.Session(cluster.target("worker")) as other:
            assert other.run(w)[0] == 5.0
            assert other.run(tf.is_variable_initialized(w))


def test_a_master_that_has_not_heard_of_it_is_told_when_it_makes_a_plan() -> None:
    with model() as (cluster, record, session, _, (w, _, count)):
        late = cluster.tasks[f"{WORKER}1"].master.moved
        session.run(w)
        move(cluster, ["w", "count"], 0, 1)
        late.tasks, late.epoch = {}, 0
        with tf.Session(cluster.target("worker", 1)) as other:
            assert other.run(count) == 0
        assert late.epoch == record.epoch


def test_a_stale_plan_is_refused_and_changes_nothing() -> None:
    with (
        model() as (cluster, _, session, _, (_, _, count)),
        tf.Session(cluster.target("worker", 1)) as other,
    ):
        add = other.make_callable([tf.assign_add(count, 1)])
        add()
        # It was cut off while the variable moved: its plan is as it was.
        held = cluster.tasks[f"{WORKER}1"].master
        now, held.moved.epoch = held.moved.epoch, 1 << 40
        (opened,) = held.sessions()
        for plan in opened.plans.values():
            plan._epoch = 1 << 40
        move(cluster, ["count"], 0, 1)
        with pytest.raises(tf.errors.AbortedError, match=r"has moved to /job:ps.*task:1"):
            add()
        # It stays so when the variable comes back.
        move(cluster, ["count"], 1, 0)
        with pytest.raises(tf.errors.AbortedError, match="has moved to"):
            add()
        held.moved.epoch = now
        assert session.run(count) == 1


def test_a_step_that_does_not_end_keeps_its_variable() -> None:
    with model(1) as (cluster, _, session, _, (w, _, count)):
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.int64, shapes=[[]], shared_name="q")
            waits = tf.assign_add(count, queue.dequeue())
        session.run([w, queue.size()])
        waiting = threading.Thread(target=session.run, args=(waits,))
        waiting.start()
        master = cluster.tasks[f"{WORKER}0"]
        while not master.steps.open():
            pass
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"waits for steps of .*worker"):
            move(cluster, ["count"], 0, 1, timeout=1.5)
        assert session.run(count) == 0
        session.run(queue.enqueue(5))
        waiting.join()
        assert session.run(count) == 5
        move(cluster, ["count"], 0, 1)
        assert session.run(count) == 5


def test_a_target_that_dies_changes_nothing() -> None:
    with model() as (cluster, record, session, steps, (_, _, count)):
        task = cluster.tasks[f"{PS}0"]
        step = session.make_callable([steps[0]])
        step()

        def copy_and_die(move: Any, is_last: bool = False) -> bool:
            if is_last:
                cluster.kill(f"{PS}1")
            return send(move, is_last)

        send, task.moves._send = task.moves._send, copy_and_die
        with pytest.raises(tf.errors.UnavailableError, match=r"stay at .*task:0"):
            move(cluster, ["w", "count"], 0, 1)
        assert record.epoch == 0
        step()
        assert session.run(count) == 2
        task.moves._send = send
        cluster.start(f"{PS}1").moves.record = record
        move(cluster, ["w", "count"], 0, 2)
        step()
        assert session.run(count) == 3


def test_a_record_that_cannot_be_changed_leaves_all_as_it_was() -> None:
    with model(1) as (cluster, _, session, steps, (_, _, count)):
        task = cluster.tasks[f"{PS}0"]

        def refuse(keys: Sequence[str], to: str, epoch: int) -> None:
            raise tf.errors.InvalidArgumentError(None, None, "no such change")

        task.moves.record.commit = refuse
        step = session.make_callable([steps[0]])
        step()
        with pytest.raises(tf.errors.InvalidArgumentError, match="no such change"):
            move(cluster, ["count"], 0, 1)
        step()
        assert session.run(count) == 2
        assert stored(cluster, 1) == set()


def test_what_cannot_move_is_refused() -> None:
    with model(1) as (cluster, _, _, _, _):
        moves = cluster.tasks[f"{PS}0"].moves
        with pytest.raises(tf.errors.NotFoundError, match="has no variable nothing"):
            moves.move(["nothing", "w"], f"{PS}1")
        for to in (f"{PS}0", f"{PS}9", "ps"):
            with pytest.raises(tf.errors.InvalidArgumentError, match="cannot move to"):
                moves.move(["w"], to)
        moves.record = None
        with pytest.raises(tf.errors.FailedPreconditionError, match="no record of this cluster"):
            moves.move(["w"], f"{PS}1")


def test_a_variable_of_the_same_name_is_not_written_over() -> None:
    with model(1) as (cluster, record, session, steps, (_, _, count)):
        with tf.Graph().as_default(), tf.device("/job:ps/task:1"):
            other = tf.get_variable("count", [], tf.int64, tf.constant_initializer(70))
            with tf.Session(session.sess_str) as another:
                another.run(other.initializer)
                with pytest.raises(
                    tf.errors.FailedPreconditionError,
                    match=r"ps/replica:0/task:1 has variables of the same names .*: count\. They",
                ):
                    move(cluster, ["count"], 0, 1)
                session.run(steps[0])
                assert (another.run(other), session.run(count)) == (70, 1)
        assert not record.moved
        assert stored(cluster, 1) == {"count"}


def _lose_the_end(cluster: LocalCluster, index: int) -> list[int]:
    """What a server tells the target of a move in the end goes with its link; gives the moves."""
    moves = cluster.tasks[f"{PS}{index}"].moves
    lost: list[int] = []

    def lose(made: Any, is_moved: bool) -> None:
        lost.append(made.number)
        made.link.fail("cut")

    moves._tell_target = lose  # type: ignore[method-assign]
    return lost


def _await_settled(cluster: LocalCluster, index: int) -> None:
    arrivals = cluster.tasks[f"{PS}{index}"].moves.arrivals
    end = time.monotonic() + 20
    while arrivals.keys:
        assert time.monotonic() < end


def test_a_target_whose_link_breaks_in_the_end_asks_what_became_of_its_copy() -> None:
    with model(1) as (cluster, record, session, steps, (_, _, count)):
        step = session.make_callable([steps[0]])
        step()
        lost = _lose_the_end(cluster, 0)
        move(cluster, ["count"], 0, 1)
        assert lost
        _await_settled(cluster, 1)
        assert stored(cluster, 1) == {"count"}
        assert session.run(count) == 1

        # The record was not changed: the copy is of no use.
        def refuse(keys: Sequence[str], to: str, epoch: int) -> None:
            raise tf.errors.InvalidArgumentError(None, None, "no such change")

        record.commit = refuse  # type: ignore[method-assign]
        with pytest.raises(tf.errors.InvalidArgumentError):
            move(cluster, ["table"], 0, 2)
        assert len(lost) == 2
        _await_settled(cluster, 2)
        assert stored(cluster, 2) == set()


def test_a_target_reads_the_record_when_its_source_has_ended() -> None:
    with model(1) as (cluster, record, _, _, _):
        target = cluster.tasks[f"{PS}1"]
        told = target.master.moved

        def commit_and_die(keys: Sequence[str], to: str, epoch: int) -> None:
            commit(keys, to, epoch)
            told.tasks, told.epoch = {}, 0  # it has not heard of that
            cluster.kill(f"{PS}0")
            raise tf.errors.UnavailableError(None, None, "killed")

        reads = []

        def read() -> None:
            reads.append(0)
            told.set(record.epoch, record.moved)

        commit = record.commit
        record.settle, record.commit = read, commit_and_die  # type: ignore[method-assign]
        with pytest.raises(tf.errors.OpError):
            move(cluster, ["count"], 0, 1)
        cluster.start(f"{PS}0")  # another start of it: so the one before has ended
        _await_settled(cluster, 1)
        assert reads
        assert stored(cluster, 1) == {"count"}
