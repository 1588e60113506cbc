"""Plans are made again, in their places, when variables have moved."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from server_clusters import eventually

import headrace as tf
from headrace.distributed.master.plans import Turnstile
from headrace.executor.errands import Limit
from headrace.executor.resources import ResourceHandle
from headrace.harness.cluster import LocalCluster, with_cluster

PS = "/job:ps/replica:0/task:"


def _move(cluster: LocalCluster, names: list[str], source: int, to: int, epoch: int) -> None:
    """Carry the values over, while no step runs, and tell all masters."""
    here, there = cluster.tasks[f"{PS}{source}"].store, cluster.tasks[f"{PS}{to}"].store
    for name in names:
        key = ResourceHandle("variable", "", name)
        there.put(key, here.get(key))
        here.drop(key)
    for task in cluster.tasks.values():
        where = {**task.master.moved.tasks, **dict.fromkeys(names, f"{PS}{to}")}
        task.master.moved.set(epoch, where)


def _stored(cluster: LocalCluster, index: int) -> set[str]:
    return {key.name for key, _ in cluster.tasks[f"{PS}{index}"].store.items()}


def test_training_goes_on_where_the_variables_went(tmp_path) -> None:
    with tf.Graph().as_default(), with_cluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
            count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            loss = tf.reduce_sum(w * w)
            looped = tf.while_loop(lambda i: i < 2.0, lambda i: i + tf.reduce_max(w), [0.0])
        train = tf.group(
            tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss), tf.assign_add(count, 1)
        )
        saver = tf.train.Saver(sharded=True)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            step = session.make_callable([loss, count, train])
            path = saver.save(session, str(tmp_path / "m"))
            before = [step()[0] for _ in range(3)]
            saver.restore(session, path)
            step()
            _move(cluster, ["w", "w/Momentum"], 0, 1, epoch=1)
            assert step()[0] == before[1]
            assert _stored(cluster, 0) == {"count"}
            assert PS + "1" in session.describe([loss])
            _move(cluster, ["count"], 0, 1, epoch=2)
            assert step()[0] == before[2]
            assert session.run(count) == 3
            session.run(looped)
            saver.save(session, path)
            assert _stored(cluster, 0) == set()
            _move(cluster, ["w", "w/Momentum", "count"], 1, 0, epoch=3)
            session.run(w.assign([0.0, 0.0, 0.0]))
            saver.restore(session, path)
            assert session.run(count) == 3
            assert _stored(cluster, 1) == set()
            # Tasks keep no plans of where the variables were.
            (opened,) = cluster.tasks["/job:worker/replica:0/task:0"].master.sessions()
            made = [m for p in opened.plans.values() for m in p._made.partitions()]
            known = sum(len(partition.parts) for _, partition in made)
            assert eventually(lambda: sum(t.worker.plans for t in cluster.tasks.values()) == known)


def test_a_plan_whose_variables_stay_is_kept() -> None:
    with tf.Graph().as_default(), with_cluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            a, b = (tf.get_variable(n, [], initializer=tf.ones_initializer()) for n in "ab")
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            session.run([a, b])
            session.run(a)
            (opened,) = cluster.tasks["/job:worker/replica:0/task:0"].master.sessions()
            plans = {tuple(sorted(p.variables)): p for p in opened.plans.values()}
            numbers = {key: p.registered.number for key, p in plans.items()}
            _move(cluster, ["b"], 0, 1, epoch=1)
            session.run([a, b])
            session.run(a)
            assert plans["a",].registered.number == numbers["a",]
            assert plans["a", "b"].registered.number != numbers["a", "b"]


def test_the_end_of_one_move_leaves_what_was_made_for_another() -> None:
    """A save holds steps of a plan, some variables of which are about to move, and is over."""
    with tf.Graph().as_default(), with_cluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            a = tf.get_variable("a", [], initializer=tf.ones_initializer())
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            session.run(a)
            master = cluster.tasks["/job:worker/replica:0/task:0"].master
            (opened,) = master.sessions()
            plans = [p for p in opened.plans.values() if p.runs and "a" in p.variables]
            moved = master.moved.now().with_more({"a"}, f"{PS}1")
            for plan in plans:
                plan.prepare(moved, 5)
                plan.unprepare(6)
                assert plan._ahead is not None
                plan.unprepare(5)
                assert plan._ahead is None


def test_state_of_one_session_alone_does_not_move() -> None:
    config = tf.ConfigProto(isolate_session_state=True)
    with tf.Graph().as_default(), with_cluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        with tf.Session(cluster.target("worker"), config=config) as session:
            session.run(w.initializer)
            _move(cluster, ["w"], 0, 1, epoch=1)
            assert session.run(w) == 1.0


def test_a_variable_at_a_task_that_is_not_there_waits_for_it() -> None:
    with tf.Graph().as_default(), with_cluster(ps=2, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        config = tf.ConfigProto(operation_timeout_in_ms=300)
        with tf.Session(cluster.target("worker"), config=config) as session:
            session.run(w.initializer)
            cluster.kill(f"{PS}1")
            master = cluster.tasks["/job:worker/replica:0/task:0"].master
            master.moved.set(1, {"w": f"{PS}1"})
            with pytest.raises(tf.errors.UnavailableError, match="task:1"):
                session.run(w)
            cluster.start(f"{PS}1")
            cluster.tasks[f"{PS}1"].store.put(ResourceHandle("variable", "", "w"), np.float32(5))
            assert session.run(w) == 5.0


def test_a_gate_counts_holds_and_lets_go() -> None:
    gate, told = Turnstile(), []
    gate.enter(None, lambda: None)
    gate.hold("a move", lambda: told.append("empty"))
    assert not told
    entered = threading.Event()

    def enter() -> None:
        gate.enter(None, lambda: None)
        entered.set()

    other = threading.Thread(target=enter)
    other.start()
    assert gate.leave()
    assert told == ["empty"]
    gate.hold("another", lambda: told.append("at once"))
    assert told == ["empty", "at once"]
    gate.release("a move")
    assert not entered.is_set()
    gate.release("another")
    other.join()
    assert entered.is_set()


def test_who_waits_at_a_gate_sees_deadlines_and_the_end_of_its_session() -> None:
    gate = Turnstile()
    gate.hold("a move", lambda: None)
    with pytest.raises(tf.errors.DeadlineExceededError, match="are being moved"):
        gate.enter(Limit(1), lambda: None)

    def closed() -> None:
        raise tf.errors.CancelledError(None, None, "closed")

    with pytest.raises(tf.errors.CancelledError):
        gate.enter(None, closed)
