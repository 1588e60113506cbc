"""Variables that were moved take their groups along; other state stays where it is."""

from __future__ import annotations

import pytest
from placement_cluster import CLUSTER, MASTER, placed, ps, step_of, task, worker

import headrace as tf
from headrace.errors import InvalidArgumentError
from headrace.placement.placer import instead_of
from headrace.step.moved import MovedVariables, variables_of

PS1 = ps(1, "")


def _variable(name="w", index=0):
    with tf.device(ps(index)):
        return tf.get_variable(name, [4], initializer=tf.zeros_initializer())


def _placed(fetches, tasks, **kwargs):
    moved = MovedVariables(tasks, 1)
    nodes = step_of(fetches).nodes
    return placed(fetches, moved=moved.of_nodes(nodes), retired=moved.retired, **kwargs)


def test_a_moved_variable_takes_reads_updates_and_initialisers_along():
    w = _variable()
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(w * 2.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    where, decided = _placed([loss, train, w.initializer], {"w": PS1})
    assert where["w"] == ps(1)
    assert where[loss.op.name] == worker(0)
    # What only names the task by itself stays there.
    assert [n for n, d in where.items() if d == ps(0)] == ["GradientDescent"]
    assert "w" in decided


def test_a_moved_variable_overrides_where_it_was_pinned():
    w = _variable()
    where, decided = _placed([w.read_value()], {"w": PS1}, pinned={"w": ps(0)})
    assert set(where.values()) == {ps(1)}
    assert decided == {}


def test_what_is_colocated_with_an_op_outside_the_step_goes_too():
    w = _variable()
    with tf.colocate_with(w.op):
        x = tf.constant([1.0]) * 2.0
    assert _placed([x], {"w": PS1})[0][x.op.name] == ps(1)
    assert _placed([x], {})[0][x.op.name] == ps(0)


def test_queues_and_variables_that_were_not_moved_stay():
    w = _variable()
    with tf.colocate_with(w.op):
        queue = tf.FIFOQueue(2, tf.float32, shared_name="q")
        slot = tf.get_variable("slot", [4])
    size = queue.size()
    where, _ = _placed([size, w.read_value(), slot.read_value(), slot.initializer], {"w": PS1})
    assert where["w"] == ps(1)
    assert where[queue.queue_ref.op.name] == where[size.op.name] == ps(0)
    assert where["slot"] == ps(0)


def test_variables_that_one_op_uses_cannot_be_apart():
    w = _variable()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(tf.reduce_sum(w * w))
    with pytest.raises(InvalidArgumentError, match="Cannot colocate nodes"):
        _placed([train], {"w": PS1})
    where, _ = _placed([train], {"w": PS1, "w/Momentum": PS1})
    assert where["w/Momentum"] == ps(1)


def test_loops_elsewhere_are_not_dragged_along():
    w = _variable()
    with tf.device("/job:worker/task:1"):
        loop = tf.while_loop(lambda i: i < 3.0, lambda i: i + tf.reduce_sum(w), [1.0])
    where, _ = _placed([loop], {"w": PS1})
    assert where["w"] == ps(1)
    assert where[loop.op.name] in (worker(1), MASTER)


def test_a_task_stands_for_one_that_has_left():
    with tf.device("/job:ps/task:2/cpu:0"):
        w = tf.get_variable("w", [4])
        x = tf.constant([1.0]) * 2.0
    left = {ps(2, ""): PS1}
    pinned = {"w": ps(2)}
    where, _ = _placed([x, w.read_value()], {"w": ps(0, ""), **left}, pinned=pinned)
    assert (where[x.op.name], where["w"]) == (ps(1), ps(0))
    assert _placed([w.read_value()], left)[0]["w"] == ps(1)


def test_what_has_moved_to_a_task_that_is_there_again_is_not_at_the_one_that_stood_for_it():
    with tf.device("/job:ps/task:2/cpu:0"):
        w = tf.get_variable("w", [4])
    moved = {"w": ps(2, ""), ps(2, ""): PS1}
    available = [*CLUSTER, *task("ps", 2)]
    assert _placed([w.read_value()], moved, available=available)[0]["w"] == ps(2)


def test_nothing_but_whole_names_of_tasks_is_replaced():
    left = {ps(2, ""): PS1}
    for device in ("", "/job:ps", "/task:2", "/job:worker/task:2", ps(0)):
        assert instead_of(device, left) == device


def test_keys_of_variables_have_their_containers():
    with tf.container("c"):
        w = _variable()
    nodes = step_of([w.read_value()]).nodes
    assert variables_of(nodes) == {"c:w"}
    assert _placed([w.read_value()], {"w": PS1})[0]["w"] == ps(0)
    assert _placed([w.read_value()], {"c:w": PS1}, available=CLUSTER)[0]["w"] == ps(1)
