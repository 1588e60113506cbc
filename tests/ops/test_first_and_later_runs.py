"""What a first, interpreted run gives, later ones give too: types and values of single ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_quantised_and_back_keeps_its_type(dtype, interpret):
    x = tf.placeholder(dtype, [3])
    y = tf.quantization.quantize_and_dequantize(x, -6.0, 6.0, range_given=True)
    with tf.Session() as sess:
        got = sess.run(y, {x: [-6.0, 1.0, 7.0]})
    assert got.dtype == tf.as_dtype(dtype).as_numpy_dtype
    np.testing.assert_allclose(got.astype(np.float32), [-6.0, 1.0, 6.0], atol=0.07)


def test_halves_between_two_steps(interpret):
    x = tf.placeholder(tf.float32, [2])
    y = tf.quantization.fake_quant_with_min_max_args(x, -6.0, 6.0)
    with tf.Session() as sess:
        got = sess.run(y, {x: [2.0, -3.875]})
    np.testing.assert_allclose(got, [2.0235295, -3.8588235], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_have_no_absolute_value(dtype):
    with pytest.raises(TypeError, match="not in the list of allowed values"):
        tf.abs(tf.placeholder(dtype, [2]))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16"])
def test_what_is_nearly_equal(dtype, interpret):
    x, y = tf.placeholder(dtype, [3]), tf.placeholder(dtype, [3])
    near = tf.math.approximate_equal(x, y, tolerance=2.0)
    with tf.Session() as sess:
        assert sess.run(near, {x: [1, 5, 9], y: [1, 4, 5]}).tolist() == [True, True, False]


def _after_its_start(variable, update):
    """An update that follows the variable's initializer in one step."""
    with tf.control_dependencies([variable.initializer]):
        start = variable.read_value()
    with tf.control_dependencies([start]):
        return tf.identity(update())


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "min", "max", "update"])
def test_rows_of_a_variable_that_the_step_itself_starts(kind, interpret):
    variable = tf.Variable([[8.0], [6.0], [4.0]])
    ids, updates = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [2, 1])
    scatter = getattr(tf, f"scatter_{kind}")
    got = _after_its_start(variable, lambda: scatter(variable, ids, updates))
    rows = {"add": 10, "sub": 6, "mul": 16, "div": 4, "min": 2, "max": 8, "update": 2}
    with tf.Session() as sess:
        value = sess.run(got, {ids: [0, 2], updates: [[2.0], [1.0]]})
        assert value[0] == rows[kind]
        assert value[1] == 6.0
        got_nd = _after_its_start(
            variable, lambda: tf.scatter_nd_update(variable, ids[:, None], updates)
        )
        value = sess.run(got_nd, {ids: [0, 2], updates: [[2.0], [1.0]]})
    assert value.tolist() == [[2.0], [6.0], [1.0]]


@pytest.mark.parametrize("shape", [[1], None])
def test_indices_are_checked_also_where_the_step_itself_starts_the_variable(shape, interpret):
    variable = tf.Variable([[1.0], [1.0]])
    ids = tf.placeholder(tf.int32, shape)
    got = _after_its_start(variable, lambda: tf.scatter_add(variable, ids, [[5.0]]))
    with tf.Session() as sess:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 3 is not in \[0, 2\)"):
                sess.run(got, {ids: [3]})


def test_indices_are_checked_against_the_shape_that_the_step_assigns(interpret):
    variable = tf.Variable(tf.zeros([4, 1]), validate_shape=False)
    new, ids = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [1])
    with tf.control_dependencies([tf.assign(variable, new, validate_shape=False)]):
        got = tf.identity(tf.scatter_add(variable, ids, [[5.0]]))
    with tf.Session() as sess:
        sess.run(variable.initializer)
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 3 is not in \[0, 2\)"):
                sess.run(got, {ids: [3], new: [[1.0], [1.0]]})


@pytest.mark.parametrize("shape", [[2, 3], [None, None], None])
@pytest.mark.parametrize("has_branch", [False, True])
def test_the_gradient_of_a_loop_that_takes_no_turn(shape, has_branch, interpret):
    x, turns = tf.placeholder(tf.float32, shape), tf.placeholder(tf.int32, [])

    def body(i, value):
        new = tf.log1p(tf.abs(tf.sin(value))) * value
        if has_branch:
            new = tf.cond(tf.equal(i % 2, 0), lambda: tf.nn.l2_normalize(value, 1), lambda: new)
        new.set_shape(x.shape)
        return i + 1, new

    start, shapes = [tf.constant(0), x], [tf.TensorShape([]), x.shape]
    y = tf.while_loop(lambda i, _: i < turns, body, start, shapes)[1]
    (gradient,) = tf.gradients(y, [x])
    fed = np.float32([[1, 2, 3], [4, 5, 6]])
    with tf.Session() as sess:
        for _ in range(2):
            got, slope = sess.run([y, gradient], {x: fed, turns: 0})
            np.testing.assert_array_equal(got, fed)
            np.testing.assert_array_equal(slope, np.ones_like(fed))
        assert sess.run(gradient, {x: fed, turns: 2}).shape == (2, 3)
        np.testing.assert_array_equal(sess.run(gradient, {x: fed, turns: 0}), np.ones_like(fed))
