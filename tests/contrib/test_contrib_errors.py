"""Functions of ``tf.contrib`` say what is wrong with an argument, and where."""

from __future__ import annotations

import pytest

import headrace as tf

layers, framework = tf.contrib.layers, tf.contrib.framework


def _given(*sizes, dtype=tf.float32):
    return tf.placeholder(dtype, sizes, name="given")


@pytest.mark.parametrize(
    ("sizes", "units", "axis", "told"),
    [
        ([2, 6], 0, -1, r"features\(6\) is not a multiple of num_units\(0\)"),
        ([2, None], 3, -1, r"along axis -1 must be known, but given:0 has shape \(2, \?\)"),
        ([2, 6], 3, 5, r"along axis 5 must be known, but given:0 has shape \(2, 6\)"),
        (None, 3, -1, r"given:0 has shape <unknown>. Choose one of its axes"),
    ],
)
def test_maxout_of_groups_that_do_not_exist(sizes, units, axis, told):
    inputs = tf.placeholder(tf.float32, sizes, name="given")
    with pytest.raises(ValueError, match=told):
        layers.maxout(inputs, units, axis)


@pytest.mark.parametrize(
    "make", [lambda x: layers.repeat(x, 2, 3), lambda x: layers.stack(x, 3, [4])]
)
def test_a_layer_to_repeat_is_a_function(make):
    with pytest.raises(TypeError, match=r"`layer` must be a function that makes a layer.*got 3"):
        make(_given(2, 3))


def test_pooling_refuses_an_unknown_layout():
    with pytest.raises(ValueError, match=r"data_format has to be .*NHWC.*, not 'CHWN'"):
        layers.pool(_given(2, 8, 8, 3), 2, "MAX", data_format="CHWN")


def test_initializers_need_all_sizes():
    with pytest.raises(ValueError, match=r"fully defined shape, got \(3, \?\). Give all sizes"):
        layers.xavier_initializer()([3, None])


@pytest.mark.parametrize("function", [layers.summarize_tensor, layers.summarize_activation])
def test_summaries_are_of_tensors(function):
    with pytest.raises(TypeError, match="A summary is of a tensor or a variable, got 3"):
        function(3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: framework.add_model_variable(3), "Only a variable can join.*got 3"),
        (lambda: framework.get_variable_full_name(3), "Expected a variable, got 3"),
        (lambda: framework.get_placeholders(3), "graph must be a tf.Graph, got 3"),
        (lambda: framework.add_arg_scope(3), "decorates a function, got 3"),
        (lambda: framework.assert_same_float_dtype([_given(2), 3]), "Expected tensors, got 3"),
    ],
)
def test_framework_functions_tell_what_is_no_variable_graph_or_tensor(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_values_for_variables_fit_them():
    tf.get_variable("v", [2])
    with pytest.raises(
        ValueError, match=r"Variable v has shape \(2,\), got a value of shape \(3,\)"
    ):
        framework.assign_from_values({"v": [1.0, 2.0, 3.0]})
