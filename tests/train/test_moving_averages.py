"""Moving averages of variables and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.train.moving_averages import assign_moving_average


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16], ids=lambda d: d.name)
def test_average_of_a_variable_starts_at_its_value(dtype: Any) -> None:
    v = tf.Variable([2.0, 4.0], name="v", dtype=dtype)
    ema = tf.train.ExponentialMovingAverage(0.5)
    move = ema.apply([v])
    average = ema.average(v)
    assert average.op.name == ema.average_name(v) == "v/ExponentialMovingAverage"
    assert average.dtype is dtype
    assert tf.moving_average_variables() == [v]
    assert average not in tf.trainable_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(average).tolist() == [2.0, 4.0]
        session.run(v.assign([4.0, 0.0]))
        session.run(move)
        assert session.run(average).tolist() == [3.0, 2.0]
        session.run(move)
        assert session.run(average).tolist() == [3.5, 1.0]


def test_average_starts_at_a_value_that_other_variables_give() -> None:
    a = tf.Variable(3.0, name="a")
    b = tf.Variable(a.initialized_value() * 2, name="b")
    ema = tf.train.ExponentialMovingAverage(0.9)
    ema.apply([b])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(ema.average(b)) == 6.0


@pytest.mark.parametrize("debias", [False, True])
def test_average_of_a_tensor_starts_at_zero(debias: bool) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    ema = tf.train.ExponentialMovingAverage(0.8, zero_debias=debias)
    move = ema.apply([x])
    values = np.array([[1.0, -2.0], [3.0, 5.0], [0.5, 0.0]], np.float32)
    biased, got, want = np.zeros(2), [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for i, value in enumerate(values):
            session.run(move, {x: value})
            got.append(session.run(ema.average(x)))
            biased = biased * 0.8 + value * 0.2
            want.append(biased / (1 - 0.8 ** (i + 1)) if debias else biased)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_few_updates_lower_the_decay() -> None:
    v, count = tf.Variable(0.0, name="v"), tf.placeholder(tf.int32, [])
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=count)
    move = ema.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(10.0))
        session.run(move, {count: 0})
        np.testing.assert_allclose(session.run(ema.average(v)), 9.0, rtol=1e-6)
        session.run(move, {count: 1000})
        np.testing.assert_allclose(session.run(ema.average(v)), 9.1, rtol=1e-6)


def test_averages_follow_the_training_step() -> None:
    v = tf.Variable(0.0, name="v")
    train = tf.train.GradientDescentOptimizer(1.0).minimize(v * -1.0)
    ema = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        move = ema.apply()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(move)
        assert session.run([v, ema.average(v)]) == [1.0, 0.5]
        session.run(move)
        assert session.run([v, ema.average(v)]) == [2.0, 1.25]


def test_names_to_restore() -> None:
    v = tf.Variable(0.0, name="v")
    step = tf.Variable(0, name="step", trainable=False)
    ema = tf.train.ExponentialMovingAverage(0.5)
    assert ema.variables_to_restore() == {"v/ExponentialMovingAverage": v, "step": step}
    assert ema.variables_to_restore([]) == {"v": v, "step": step}
    ema.apply([v])
    names = ema.variables_to_restore()
    assert names == {"v/ExponentialMovingAverage": v, "step": step}


def test_the_update_gives_the_new_average() -> None:
    v = tf.Variable(4.0, name="v")
    updated = assign_moving_average(v, 8.0, 0.75, zero_debias=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(updated) == 5.0
        assert session.run(v) == 5.0


def test_what_averages_refuse() -> None:
    ema = tf.train.ExponentialMovingAverage(0.5)
    whole = tf.Variable(1, name="n")
    with pytest.raises(TypeError, match="must be half, float, or double: n"):
        ema.apply([whole])
    assert ema.average(whole) is None


def test_the_update_has_the_name_that_was_asked_for() -> None:
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    value = [1.0, 2.0]
    updates = [
        assign_moving_average(v, value, 0.9),
        assign_moving_average(w, value, 0.9, zero_debias=False, name="mine"),
        assign_moving_average(v, value, 0.9),
    ]
    names = ["AssignMovingAvg", "mine", "AssignMovingAvg_1"]
    assert [u.op.name for u in updates] == names
    assert [u.name for u in updates] == [f"{n}:0" for n in names]
    own = [x.op.name for x in tf.global_variables()]
    assert own == ["v", "w", "v/biased", "v/local_step", "v/biased_1", "v/local_step_1"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(updates[0]), value)
        np.testing.assert_allclose(session.run("mine:0"), [0.1, 0.2], rtol=1e-6)
