"""Small steps that only read: a list of bound calls, and where they leave it to the region."""

from __future__ import annotations

import threading
from typing import Any

import jax
import numpy as np
import pytest

import headrace as tf
from headrace.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from headrace.executor import bound
from headrace.executor.bound import BoundProgram, BoundRegion, NodeCall
from headrace.executor.policy import NEVER
from headrace.executor.region import Region
from headrace.harness.cluster import with_cluster
from headrace.settings import flags


def _calls(session: tf.Session, fetches: Any) -> list[Any]:
    """What the last plan for these fetches runs its units with."""
    session.run(fetches)
    plan = session._prepare(fetches, None, None)[0].plan
    return [unit.call for unit in plan.units]


def test_what_a_small_step_gives_is_what_its_ops_give() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    table = tf.Variable(x, trainable=False)
    ids = tf.constant([2, 0])
    rows = tf.gather(table, ids)
    low, high = tf.split(rows * 2.0 + 1.0, 2, axis=1)
    fetches = {"low": low, "high": high, "sum": tf.reduce_sum(table), "parts": [table, -table]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [type(call) for call in _calls(session, fetches)] == [BoundRegion]
        got = session.run(fetches)
    made = x[[2, 0]] * 2 + 1
    np.testing.assert_array_equal(got["low"], made[:, :2])
    np.testing.assert_array_equal(got["high"], made[:, 2:])
    assert got["sum"] == x.sum()
    assert isinstance(got["sum"], np.float32)
    np.testing.assert_array_equal(got["parts"], [x, -x])


def test_a_small_step_sees_what_others_write() -> None:
    count = tf.Variable(0, trainable=False)
    double, more = count * 2, count.assign_add(1)
    placeholder = tf.placeholder(tf.int32, [])
    shifted = double + placeholder
    with tf.Session() as session:
        session.run(count.initializer)
        for step in range(5):
            assert session.run(double) == 2 * step
            assert session.run(shifted, {placeholder: 100}) == 2 * step + 100
            session.run(more)


def test_what_is_fetched_is_the_callers_own() -> None:
    table = tf.Variable(np.ones([4], np.float32), trainable=False)
    same = tf.identity(table), tf.reshape(table, [2, 2])
    with tf.Session() as session:
        session.run(table.initializer)
        for value in session.run(same):
            value[...] = 7
        np.testing.assert_array_equal(session.run(-table), -np.ones(4))


def test_a_failing_op_is_told_as_ever_and_the_next_step_runs() -> None:
    table = tf.Variable(np.ones([4, 2], np.float32), trainable=False)
    ids = tf.placeholder(tf.int32, [2])
    rows = tf.gather(table, ids, name="of_rows")
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="Variable"):
            session.run(rows, {ids: [0, 1]})
        session.run(table.initializer)
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="of_rows"):
                session.run(rows, {ids: [0, 4]})
            assert session.run(rows, {ids: [0, 3]}).shape == (2, 2)


def test_a_value_that_is_still_computed_is_left_to_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The store's lock is held while a small step runs: there nobody waits.
    table = tf.Variable(np.ones([4], np.float32), trainable=False)
    total = tf.reduce_sum(table)
    with tf.Session() as session:
        session.run(table.initializer)
        (call,) = _calls(session, total)
        monkeypatch.setattr(bound, "_put", lambda *_: False)
        assert call.run([None] * 4) is False
        assert session.run(total) == 4


def test_a_writer_that_holds_state_is_not_overtaken() -> None:
    table = tf.Variable(np.ones([4], np.float32), trainable=False)
    total = tf.reduce_sum(table)
    with tf.Session() as session:
        session.run(table.initializer)
        (call,) = _calls(session, total)
        store = session._engine.store
        other = (threading.get_ident() + 1, lambda: False)
        store.claims.writers["elsewhere"] = [other]
        assert call.run([None] * 4) is False
        assert session.run(total) == 4  # the region reads what is not claimed
        del store.claims.writers["elsewhere"]
        assert call.run([None] * 4) is True


def test_a_traced_small_step_shows_its_ops() -> None:
    table = tf.Variable(np.ones([4], np.float32), trainable=False)
    total = tf.reduce_sum(table, name="total")
    with tf.Session() as session:
        session.run(table.initializer)
        session.run(total)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.run(total, options=options, run_metadata=metadata) == 4
    names = [n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert any("total" in name for name in names)


def test_a_training_step_is_a_program_that_is_called_and_counts_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    x = tf.placeholder(tf.float32, [None, 3])
    weights = tf.Variable(np.zeros([3], np.float32))
    loss = tf.reduce_sum(tf.square(tf.reduce_sum(x * weights, 1) - 1.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    by_hand = np.zeros([3], np.float32)
    with tf.Session() as session:
        session.run(weights.initializer)
        for step in range(12):
            rows = np.eye(3, dtype=np.float32)[: 1 + step % 2]  # programs of two shapes
            session.run(train, {x: rows})
            by_hand -= 0.2 * rows.T @ (rows @ by_hand - 1)
            np.testing.assert_allclose(session.run(weights), by_hand, rtol=1e-5)
        plan = session._prepare(train, {x: rows}, None)[0].plan
        (call,) = plan._schedule.direct
        assert isinstance(call, BoundProgram)
        table = plan._table([rows])
        assert call.run(table)
        assert not call.run(plan._table([np.zeros([7, 3], np.float32)]))  # to be compiled


def test_a_program_whose_variable_is_being_read_or_is_gone_is_left_to_the_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    v = tf.Variable(np.ones([4], np.float32), name="lost")
    more = v.assign_add(tf.ones([4]))
    with tf.Session() as session:
        session.run(v.initializer)
        assert [type(call) for call in _calls(session, more)] == [BoundProgram]
        for _ in range(3):
            session.run(more)
        store = session._engine.store
        (key,) = session._prepare(more, None, None)[0].plan.units[0].region.written
        reader = store.get(key)
        with store.lock:  # to another thread
            store.claims.lent[id(reader)] = (reader, [threading.get_ident() + 1])
        np.testing.assert_array_equal(session.run(more), np.full(4, 6))  # in other memory
        np.testing.assert_array_equal(np.asarray(reader), np.full(4, 5))
        del store.claims.lent[id(reader)]
        store.drop(key)
        with pytest.raises(FailedPreconditionError, match="lost"):
            session.run(more)
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(more), np.full(4, 2))


def test_a_program_before_an_operation_on_the_host_hands_it_an_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    seen = []
    x = tf.placeholder(tf.float32, [4])
    told = tf.py_func(lambda v: seen.append(type(v)) or v + 1, [tf.exp(x)], tf.float32)
    with tf.Session() as session:
        for step in range(4):
            value = np.full(4, step, np.float32)
            np.testing.assert_allclose(session.run(told, {x: value}), np.exp(value) + 1, rtol=1e-6)
    assert seen == [np.ndarray] * 4


def test_a_step_that_may_fail_after_a_write_changes_nothing_where_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flags, "interpret", "never")
    count = tf.Variable(0.0, trainable=False)
    limit = tf.placeholder(tf.float32, [])

    def checked(value: np.ndarray) -> np.ndarray:
        if value > 3:
            raise ValueError("too much")
        return value

    added = count.assign_add(limit)
    after = tf.py_func(checked, [added], tf.float32)
    with tf.Session() as session:
        session.run(count.initializer)
        for _ in range(3):
            session.run(after, {limit: 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError, match="too much"):
            session.run(after, {limit: 1.0})
        assert session.run(count) == 3


@pytest.mark.parametrize("what", ["writes", "draws", "unknown", "large"])
def test_other_regions_are_not_bound(what: str) -> None:
    size = 1 << 22 if what == "large" else 4
    table = tf.Variable(np.ones([size], np.float32), trainable=False)
    unknown = tf.placeholder_with_default(np.ones(4, np.float32), [None])
    fetches = {
        "writes": table.assign_add(tf.ones([size])),
        "draws": table + tf.random_normal([size]),
        "unknown": tf.exp(unknown) * 2.0,
        "large": tf.exp(table) * 2.0,
    }[what]
    with tf.Session() as session:
        session.run(table.initializer)
        assert not any(isinstance(call, BoundRegion) for call in _calls(session, fetches))


def test_an_op_whose_size_depends_on_values_is_one_call() -> None:
    rows = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2), trainable=False)
    ids = tf.placeholder(tf.int32, [4])
    sums = tf.segment_sum(rows, ids)
    with tf.Session() as session:
        session.run(rows.initializer)
        for _ in range(2):
            assert session.run(sums, {ids: [0, 0, 1, 1]}).tolist() == [[2, 4], [10, 12]]
        plan = session._prepare(sums, {ids: [0, 0, 1, 1]}, None)[0].plan
        assert [type(unit.call) for unit in plan.units if unit.node is not None] == [NodeCall]
        for _ in range(2):  # what is wrong is told as ever, by the op's name
            with pytest.raises(InvalidArgumentError, match="SegmentSum"):
                session.run(sums, {ids: [1, 0, 1, 1]})
        assert session.run(sums, {ids: [0, 1, 2, 2]}).tolist() == [[0, 1], [2, 3], [10, 12]]


def test_small_rows_that_a_mask_chooses_are_never_compiled() -> None:
    """Their number is known only when the host has counted them; then they are few."""
    rows = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2), trainable=False)
    least = tf.placeholder(tf.float32, [])
    chosen = tf.boolean_mask(rows, rows[:, 0] > least)
    with tf.Session() as session:
        session.run(rows.initializer)
        for least_one in (1.0, 3.0, 1.0, 3.0):
            found = session.run(chosen, {least: least_one})
            assert found.tolist() == [r for r in [[2, 3], [4, 5], [6, 7]] if r[0] > least_one]
        plan = session._prepare(chosen, {least: 1.0}, None)[0].plan
        regions = [unit.region for unit in plan.units if unit.region is not None]
        taking = [r for r in regions if any(n.type == "GatherV2" for n in r.nodes)]
        turns = [p.turn for r in taking for p in r._programs.values()]
        assert turns
        assert all(turn.interpretations > NEVER // 2 for turn in turns)  # each run counts down


def test_a_large_variable_that_is_handed_on_is_on_the_device_from_then_on() -> None:
    """What NumPy has made is copied into a program in each step otherwise, 16 MB at a time."""
    first = np.arange(1 << 18, dtype=np.float32).reshape(256, -1)
    rows = tf.Variable(first, trainable=False)
    ids = tf.Variable(np.arange(256) % 3, trainable=False)
    chosen = tf.boolean_mask(rows, ids < 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            np.testing.assert_array_equal(session.run(chosen), first[::3])
        store = session._prepare(chosen, None, None)[0].plan.store
        (reading,) = (c for c in _calls(session, chosen) if isinstance(c, BoundRegion))
        (handle,) = reading._handed_on.values()
        assert isinstance(store.get(handle), jax.Array)
        session.run(rows.assign_add(tf.ones_like(rows)))
        np.testing.assert_array_equal(session.run(chosen), first[::3] + 1)


def test_parts_of_steps_over_several_tasks_run_by_bound_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, whole = Region.run, []

    def noted(region: Region, *args: Any) -> list[Any]:
        whole.append(region.label)
        return run(region, *args)

    with with_cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
            queue = tf.FIFOQueue(3, tf.float32, [[2]])
            read = tf.identity(v.read_value())
        with tf.device("/job:worker/task:0"):
            factor = tf.placeholder(tf.float32, [])
            scaled = read * factor
        with tf.device("/job:ps/task:0"):
            put, taken = queue.enqueue(scaled + 1.0), queue.dequeue()
        with tf.Session(cluster.target("worker")) as session:
            session.run(v.initializer)
            session.run(scaled, {factor: 1.0})
            monkeypatch.setattr(Region, "run", noted)
            for n in range(3):
                np.testing.assert_array_equal(session.run(scaled, {factor: n}), [n, 2 * n])
            assert not whole
            session.run(put, {factor: 2.0})
            np.testing.assert_array_equal(session.run(taken), [3.0, 5.0])
            # An op that waits looks whether its step is given up: it is not bound there.
            with pytest.raises(DeadlineExceededError):
                session.run(taken, options=tf.RunOptions(timeout_in_ms=20))
            # What fails is told with its op, and a traced step shows its ops.
            with pytest.raises(InvalidArgumentError, match="Placeholder"):
                session.run(scaled)
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(scaled, {factor: 1.0}, options=options, run_metadata=metadata)
            assert whole


class _Log:
    """What a store tells of its changes."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, Any]] = []

    def note(self, key: Any, rows: Any) -> None:
        self.noted.append((key.name, rows and [np.asarray(r).tolist() for r in rows]))


def test_small_updates_that_give_nothing_are_bound_and_happen_all_or_not_at_all() -> None:
    count = tf.Variable(0, trainable=False, name="count", use_resource=True)
    table = tf.Variable(np.zeros([4, 2], np.float32), name="table", use_resource=True)
    last = tf.Variable(np.zeros([2], np.float32), name="last", use_resource=True)
    row, ids = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [1])
    tf.scatter_add(table, ids, [row], name="added")
    updates = [
        count.assign_add(1, read_value=False),
        tf.get_default_graph().get_operation_by_name("added"),
        last.assign(row, read_value=False),
    ]
    step = tf.group(*updates)
    fed = np.array([1, 2], np.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step, {row: fed, ids: [2]})
        plan = session._prepare(step, {row: fed, ids: [2]}, None)[0].plan
        assert [type(unit.call) for unit in plan.units] == [BoundRegion]
        with pytest.raises(InvalidArgumentError, match="added"):
            session.run(step, {row: [7, 7], ids: [4]})
        log = _Log()
        store = session._engine.store
        store.listen(log)
        session.run(step, {row: fed, ids: [0]})
        fed[:] = 9  # what is fed stays the caller's
        assert session.run(count) == 4
        assert session.run(table).tolist() == [[1, 2], [0, 0], [3, 6], [0, 0]]
        assert session.run(last).tolist() == [1, 2]
        assert sorted(log.noted) == [("count", None), ("last", None), ("table", [[0]])]


def test_small_updates_of_many_threads_are_all_there() -> None:
    count = tf.Variable(0, trainable=False, use_resource=True)
    more = count.assign_add(1, read_value=False)
    with tf.Session() as session:
        session.run(count.initializer)
        assert [type(call) for call in _calls(session, more)] == [BoundRegion]
        run = session.make_callable(more)
        threads = [threading.Thread(target=lambda: [run() for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run(count) == 401


def test_an_update_whose_variable_is_read_beside_it_is_left_to_the_region() -> None:
    """Whether it is read before or after is the region's to know; so is who replaces it now."""
    count = tf.Variable(1.0, trainable=False, use_resource=True)
    before = count.read_value()
    with tf.control_dependencies([before]):
        more = count.assign_add(1.0, read_value=False)
    alone = count.assign_sub(1.0, read_value=False)
    with tf.Session() as session:
        session.run(count.initializer)
        assert BoundRegion not in map(type, _calls(session, [before, more]))
        assert session.run([before, more]) == [2.0, None]
        (call,) = _calls(session, alone)
        assert isinstance(call, BoundRegion)
        store = session._engine.store
        store.claims.replaced.add("elsewhere")
        assert call.run([None] * 4) is False
        store.claims.replaced.clear()
        assert call.run([None] * 4) is True
        assert session.run(count) == 1.0
