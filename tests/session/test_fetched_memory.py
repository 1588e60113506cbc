"""Large fetched values are handed over, not copied, where nobody else has them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor.borrowed import _Held

SHAPE = (512, 256)


def _root(array):
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def _session():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def test_what_a_program_computes_is_not_copied_and_may_be_changed():
    doubled = tf.Variable(tf.ones(SHAPE)) * 2.0
    with _session() as session:
        values = [session.run(doubled) for _ in range(4)]
        assert isinstance(_root(values[-1]), _Held)
        values[-1][:] = 7.0
        for value in (*values[:-1], session.run(doubled)):
            assert (value == 2.0).all()
            assert value.flags.writeable
    assert (values[-1] == 7.0).all()  # it outlives its session


def test_variables_keep_their_values():
    variable = tf.Variable(tf.ones(SHAPE))
    added = variable.assign_add(tf.ones(SHAPE))
    same = tf.identity(variable)
    with _session() as session:
        for step in range(2, 6):
            for value in session.run([added, variable]):
                assert (value == step).all()
                value[:] = -1.0
            for value in session.run([same, variable]):
                assert (value == step).all()
                value[:] = -1.0


def test_what_also_goes_elsewhere_is_copied():
    queue = tf.FIFOQueue(10, [tf.float32], [SHAPE])
    made = tf.Variable(tf.ones(SHAPE)) * 3.0
    put = queue.enqueue([made])
    with _session() as session:
        for _ in range(3):
            value, _ = session.run([made, put])
            value[:] = 0.0
            assert (session.run(queue.dequeue()) == 3.0).all()


@pytest.mark.parametrize("keep", [True, False])
def test_python_functions_that_keep_what_they_return(keep):
    kept = np.ones(SHAPE, "f")

    def function():
        return kept if keep else np.ones(SHAPE, "f")

    made = tf.py_func(function, [], tf.float32)
    with tf.Session() as session:
        for _ in range(3):
            value = session.run(made)
            value[:] = 5.0
            assert (session.run(made) == 1.0).all()


def test_feeds_and_constants_are_copied():
    fed = tf.placeholder(tf.float32, SHAPE)
    same, constant = tf.identity(fed), tf.constant(np.ones(SHAPE, "f"))
    array = np.zeros(SHAPE, "f")
    with tf.Session() as session:
        for _ in range(3):
            for value in session.run([same, fed, constant], {fed: array}):
                value += 1.0
        assert (array == 0.0).all()
        assert (session.run(constant) == 1.0).all()


def test_types_that_numpy_does_not_know():
    halves = tf.cast(tf.Variable(tf.ones((1024, 256))), tf.bfloat16)
    with _session() as session:
        for _ in range(3):
            value = session.run(halves)
        assert value.dtype == tf.bfloat16.as_numpy_dtype
        assert value.shape == (1024, 256)
        assert (value == 1).all()
