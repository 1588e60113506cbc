"""Arguments that no op can take are refused when the graph is built, by what they are."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_lists_that_one_attribute_counts_have_one_length():
    with pytest.raises(ValueError, match=r"List 'data' of 'DynamicStitch' Op has 2 entries.* 1"):
        tf.dynamic_stitch([[0]], [[1], [3]])


def test_histogram_takes_one_number_of_bins():
    with pytest.raises(ValueError, match="nbins must be a scalar"):
        tf.histogram_fixed_width([1.0, 2.0], [0.0, 5.0], nbins=[5])


def test_argmax_takes_one_axis():
    with pytest.raises(ValueError, match=r"Expected one dimension, but got \[0, 1\]"):
        tf.argmax([[1, 2]], axis=[0, 1])


def test_argmax_takes_one_axis_that_is_known_late():
    axis = tf.placeholder(tf.int32, [None])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Expected one dimension"),
    ):
        session.run(tf.argmax([[1, 2]], axis=axis), {axis: [0, 1]})


def test_identity_matrix_has_no_strings():
    with pytest.raises(TypeError, match="no value for strings"):
        tf.eye(2, dtype=tf.string)


@pytest.mark.parametrize(("base", "function"), [(3, str), ((int, "x"), str), (complex, 4)])
def test_conversion_function_is_checked_when_registered(base, function):
    with pytest.raises(TypeError, match="must be"):
        tf.register_tensor_conversion_function(base, function)
    assert tf.convert_to_tensor(1).dtype is tf.int32


def test_setdiff1d_takes_vectors():
    with pytest.raises(ValueError, match="ListDiff: y must be of rank 1"):
        tf.setdiff1d([1, 2], [[1]])


def test_sufficient_statistics_names_an_axis_that_is_not_there():
    with pytest.raises(ValueError, match=r"axis 3 is out of valid range \[-1, 1\)"):
        tf.nn.sufficient_statistics([1.0, 2.0], [3])


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: tf.is_variable_initialized(3), "Expected a tf.Variable, but got 3"),
        (lambda: tf.assign([1.0], 2.0), r"Expected a tf.Variable, but got \[1.0\]"),
        (lambda: tf.assign_add([1.0], 2.0), "Expected a tf.Variable"),
        (lambda: tf.variables_initializer([tf.constant(1)]), "Expected variables, but got <tf.T"),
        (lambda: tf.set_random_seed("x"), "must be an integer or None, not 'x'"),
        (lambda: tf.set_random_seed(1.5), "must be an integer or None, not 1.5"),
    ],
)
def test_what_is_no_variable_and_no_seed(call, what):
    with tf.Graph().as_default(), pytest.raises(TypeError, match=what):
        call()
