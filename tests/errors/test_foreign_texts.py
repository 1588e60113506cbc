"""What NumPy, JAX or Python say of our code does not reach users: op, shapes and our words do."""

from __future__ import annotations

import os

import numpy as np
import pytest

import headrace as tf


def ours(expression):
    """A function as if it stood in the package."""
    path = os.path.join(os.path.dirname(tf.__file__), "ops", "as_if.py")
    return eval(compile(expression, path, "eval"), {"np": np, "__name__": "headrace.ops.as_if"})


@pytest.fixture
def failing(new_op):
    """Ops whose shape rules and kernels did not expect what they get."""
    add = {"kernel": lambda x, y: x + y, "interpret": lambda x, y: x + y}
    return {
        "rule": new_op(
            "TestDivides(x: T) -> y: T",
            attrs="T: type",
            shape=ours("lambda op: [(4 // op.inputs[0].dims[0],)]"),
            kernel=lambda x: x,
        ),
        "key": new_op(
            "TestFinds(x: T) -> y: T",
            attrs="T: type",
            shape=ours("lambda op: [{}[op.type]]"),
            kernel=lambda x: x,
        ),
        "numpy": new_op(
            "TestBroadcasts(x: T, y: T) -> z: T",
            attrs="T: type",
            shape=ours("lambda op: [np.broadcast_shapes(*[t.dims for t in op.inputs])]"),
            **add,
        ),
        "kernel": new_op("TestAdds(x: T, y: T) -> z: T", attrs="T: type", **add),
        "host": new_op(
            "TestHost(x: T, y: T) -> z: T",
            attrs="T: type",
            host=ours("lambda context, x, y: x + y"),
        ),
    }


@pytest.mark.parametrize(
    ("which", "shapes", "cause"),
    [
        ("rule", [(0,)], ZeroDivisionError),
        ("numpy", [(4,), (2, 3)], ValueError),
        ("key", [(2,)], KeyError),
    ],
)
def test_shape_rules_that_fail_otherwise_are_mistakes_of_ours(failing, which, shapes, cause):
    with pytest.raises(tf.errors.InternalError) as caught:
        failing[which](*[tf.zeros(s) for s in shapes])
    text = caught.value.message
    assert text.startswith("The shape rule of Test")
    assert f" failed with {cause.__name__} in headrace.ops.as_if, line 1. This is" in text
    assert "please report it" in text
    assert f"zeros:0: {shapes[0]} float32" in text
    assert "made at " in text
    assert isinstance(caught.value.__cause__, cause)
    assert "broadcast to" not in text


def test_kernels_that_fail_for_no_shape_are_mistakes_of_ours(new_op, interpret):
    kernel = ours("lambda x: {}['size'] if x.shape else x")
    op = new_op("TestLooksUp(x: T) -> y: T", attrs="T: type", kernel=kernel, interpret=kernel)
    x = tf.placeholder(tf.float32)
    y = op(x)
    with tf.Session() as sess, pytest.raises(tf.errors.InternalError) as caught:
        sess.run(y, {x: [1.0]})
    text = str(caught.value)
    assert "The kernel of TestLooksUp failed with KeyError in headrace.ops.as_if" in text
    assert "float32[1]" in text
    assert "Made by: File" in text


@pytest.mark.parametrize("which", ["kernel", "host"])
def test_kernels_that_fail_otherwise(failing, which, interpret):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    z = failing[which](x, y)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(z, {x: np.zeros(2), y: np.zeros(3)})
    text = str(caught.value)
    assert "cannot take inputs of these shapes (inputs: Placeholder:0 float32[2], " in text
    assert "Placeholder_1:0 float32[3])" in text
    assert "operands" not in text


def test_errors_of_a_users_function_stay():
    def function(x):
        raise ValueError("not on a Sunday")

    y = tf.py_func(function, [tf.constant(1.0)], tf.float32)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="on a Sunday"):
        sess.run(y)


def test_functions_of_numpy_in_a_users_function_stay():
    y = tf.py_func(lambda x: x + np.zeros(3), [tf.zeros([2])], tf.float64)
    with tf.Session() as sess, pytest.raises(tf.errors.OpError, match="operands could not be"):
        sess.run(y)
