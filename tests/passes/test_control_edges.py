"""Control edges that go, as inputs are made of what they wait for, and those that stay."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.passes.control import drop_dead_control
from headrace.passes.ir import build_step


def awaited(fetch):
    """What nodes of a step wait for, by their names."""
    step = build_step([fetch], [], [])
    drop_dead_control(step)
    return {n.name: [c.type for c in n.control] for n in step.nodes if n.control}


@pytest.mark.parametrize("gate", ["GATE_OP", "GATE_GRAPH"])
@pytest.mark.parametrize("layers", [3, 30])
def test_gradients_wait_for_nothing_that_they_are_made_of(gate, layers):
    h = tf.placeholder(tf.float32, [2, 4])
    for _ in range(layers):
        h = tf.tanh(tf.matmul(h, tf.Variable(tf.ones([4, 4]))) + tf.Variable(tf.zeros([4])))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    mode = getattr(tf.train.Optimizer, gate)
    pairs = optimizer.compute_gradients(tf.reduce_sum(h), gate_gradients=mode)
    assert any(g.op.control_inputs for g, _ in pairs)  # there are gates
    assert awaited(tf.add_n([tf.reduce_sum(g) for g, _ in pairs])) == {}


def test_what_is_made_of_the_shape_alone_waits():
    v = tf.Variable(tf.zeros([2]))
    changed = v.assign_add([1.0, 1.0])
    with tf.control_dependencies([changed]):
        size = tf.size(changed + 1.0, name="size")
    assert awaited(size + 1)["size"] == ["ReadVariableOp"]
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(size + 1) == 3
        assert sess.run(v).tolist() == [1, 1]


def test_what_goes_into_a_branch_may_be_left_out_there():
    v = tf.Variable(0.0)
    changed = v.assign_add(1.0)
    chosen = tf.cond(tf.constant(True), lambda: tf.constant(5.0), lambda: changed * 2.0)
    with tf.control_dependencies([changed]):
        y = tf.negative(chosen, name="y")
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y) == -5.0
        assert sess.run(v) == 1.0


def test_a_read_stays_before_the_write_that_waits_for_it():
    v = tf.Variable([1.0, 2.0])
    read = v.read_value()
    with tf.control_dependencies([read]):
        number = tf.cast(tf.size(read), tf.float32)
    with tf.control_dependencies([number]):
        write = v.assign(tf.fill([2], number * 10.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        old, new = sess.run([read, write])
    assert old.tolist() == [1, 2]
    assert new.tolist() == [20, 20]


def test_lists_before_an_axis_are_no_axis():
    x, y = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2, 3])
    with tf.control_dependencies([tf.concat([x, y], 1), tf.concat([x, x, y], 0)]):
        z = tf.identity(7.0)
    assert awaited(z) == {}
    axis = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([tf.concat([x, y], axis)]):
        z = tf.identity(7.0)
    assert list(awaited(z).values()) == [["ConcatV2"]]
    with tf.Session() as sess:
        assert sess.run(z, {x: np.ones([2, 3]), y: np.ones([2, 3]), axis: 1}) == 7.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(z, {x: np.ones([2, 3]), y: np.ones([2, 3]), axis: 5})
