"""Switch, Merge and the ops of loops, put together by hand as programs of the era did."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.compat import control_flow_ops as ops


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_a_branch() -> None:
    pred, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    false, true = ops.switch(x, pred)
    value, index = ops.merge([false * 10.0, true + 1.0])
    assert value.shape.as_list() == [2]
    with tf.Session() as session:
        first = session.run([value, index], {pred: True, x: [1, 2]})
        second = session.run([value, index], {pred: False, x: [1, 2]})
    assert (first[0].tolist(), first[1]) == ([2, 3], 1)
    assert (second[0].tolist(), second[1]) == ([10, 20], 0)


def test_a_branch_with_variables() -> None:
    pred = tf.placeholder(tf.bool, [])
    v = tf.get_variable("v", initializer=5.0)
    false, true = ops.switch(v, pred)
    value = ops.merge([tf.negative(false), tf.square(true)])[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(value, {pred: True}) == 25
        assert session.run(value, {pred: False}) == -5


def test_a_loop() -> None:
    limit = tf.placeholder(tf.int32, [])
    start = ops.enter(tf.constant(1), "loop")
    bound = ops.enter(limit, "loop", is_constant=True)
    merged = ops.merge([start, start])[0]
    going = ops.loop_cond(tf.less(merged, bound))
    leave, stay = ops.switch(merged, going)
    again = ops.next_iteration(stay * 2)
    merged.op._update_input(1, again)
    result = ops.exit(leave)
    with tf.Session() as session:
        assert session.run(result, {limit: 100}) == 128
        assert session.run(result + 1, {limit: 1}) == 2


def test_what_has_no_value_outside() -> None:
    false, true = ops.switch(tf.constant(1.0), tf.placeholder_with_default(True, []))
    value = ops.merge([false, true * 2.0])[0]
    assert run([value, true]) == [2.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no value"):
        run([value, false])
    with pytest.raises(ValueError, match="merge inputs is None"):
        ops.merge([None, true])


def test_bodies_of_functions_have_none_by_hand() -> None:
    def branch():
        return ops.merge([tf.constant(1.0)])[0]

    value = tf.cond(tf.placeholder_with_default(True, []), branch, lambda: tf.constant(0.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Use tf\.cond or tf\.while_loop"):
        run(value)
