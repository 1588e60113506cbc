"""The base class of layers: names, sharing, losses, updates, checks of inputs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import headrace as tf


class Scaled(tf.layers.Layer):
    """x @ w + b, where b counts calls."""

    def build(self, input_shape: Any) -> None:
        self.w = self.add_variable("w", [int(input_shape[-1]), 2], regularizer=tf.reduce_sum)
        self.b = self.add_weight("b", [2], initializer=tf.zeros_initializer(), trainable=False)
        self.built = True

    def call(self, inputs: Any) -> Any:
        self.add_update(tf.assign_add(self.b, [1.0, 1.0]))
        return tf.matmul(inputs, self.w) + self.b


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _names(items: Any) -> list[str]:
    return [item.name for item in items]


def test_a_second_call_shares_variables_and_name_scope() -> None:
    layer = Scaled()
    x = tf.placeholder(tf.float32, [None, 3])
    first, second = layer(x), layer.apply(x)
    assert (layer.name, layer.scope_name) == ("scaled_1", "scaled")
    assert (first.name, second.name) == ("scaled/add:0", "scaled/add_1:0")
    assert _names(layer.variables) == ["scaled/w:0", "scaled/b:0"]
    assert _names(layer.trainable_variables) == ["scaled/w:0"]
    assert layer.count_params() == 8
    assert layer.dtype == "float32"


def test_layers_of_a_class_get_scopes_of_their_own() -> None:
    x = tf.zeros([1, 3])
    layers = [Scaled() for _ in range(3)]
    for layer in layers:
        layer(x)
    assert [layer.scope_name for layer in layers] == ["scaled", "scaled_1", "scaled_2"]
    assert [layer.name for layer in layers] == ["scaled_1", "scaled_2", "scaled_3"]


def test_a_shared_scope_regularizes_once() -> None:
    x = tf.zeros([1, 3])
    with tf.variable_scope("s"):
        Scaled(name="a")(x)
    with tf.variable_scope("s", reuse=True):
        shared = Scaled(name="a")
        y = shared(x)
    assert y.name == "s_1/a/add:0"
    assert _names(shared.weights) == ["s/a/w:0", "s/a/b:0"]
    assert _names(tf.get_collection("regularization_losses")) == ["s/a/w/Regularizer/Sum:0"]
    assert len(tf.global_variables()) == 2


def test_regularizers_and_updates_join_their_collections() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    layer = Scaled(activity_regularizer=tf.reduce_sum)
    layer(x)
    assert _names(layer.losses) == [
        "scaled/w/Regularizer/Sum:0",
        "scaled/ActivityRegularizer/truediv:0",
    ]
    assert tf.get_collection("regularization_losses") == layer.losses
    assert tf.get_collection("update_ops") == layer.updates
    assert _names(layer.get_losses_for(x)) == ["scaled/ActivityRegularizer/truediv:0"]
    assert _names(layer.get_losses_for(None)) == ["scaled/w/Regularizer/Sum:0"]
    assert layer.get_updates_for(None) == layer.updates
    assert layer.get_updates_for(x) == []


def test_an_untrainable_layer_has_neither_trained_variables_nor_updates() -> None:
    layer = Scaled(trainable=False)
    layer(tf.zeros([1, 3]))
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 2
    assert layer.updates == []
    assert tf.trainable_variables() == []


def test_scopes_may_make_variables_untrainable() -> None:
    def frozen(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return getter(*args, **{**kwargs, "trainable": False})

    with tf.variable_scope("s", custom_getter=frozen):
        layer = Scaled()
        layer(tf.zeros([1, 3]))
    assert layer.trainable_weights == []


def test_inputs_and_outputs_are_remembered() -> None:
    layer = Scaled()
    with pytest.raises(AttributeError, match="never been called"):
        _ = layer.input_shape
    x = tf.zeros([4, 3])
    y = layer(x)
    assert layer.input is x
    assert layer.get_output_at(0) is y
    assert layer.output_shape.as_list() == [4, 2]
    layer(tf.zeros([5, 3]))
    with pytest.raises(AttributeError, match="multiple inbound nodes"):
        _ = layer.output
    with pytest.raises(ValueError, match="only 2 inbound nodes"):
        layer.get_input_at(2)
    assert layer.get_input_shape_at(1).as_list() == [5, 3]


def test_weights_are_set_in_the_default_session() -> None:
    layer = Scaled(weights=None)
    layer(tf.zeros([4, 3]))
    with tf.Session():
        layer.set_weights([np.ones((3, 2)), np.zeros(2)])
        np.testing.assert_array_equal(layer.get_weights()[0], np.ones((3, 2)))
        with pytest.raises(ValueError, match="expecting 2 weights"):
            layer.set_weights([np.zeros(2)])
        with pytest.raises(ValueError, match="not compatible"):
            layer.set_weights([np.zeros(2), np.zeros(2)])


def test_a_call_on_another_graph_is_refused() -> None:
    layer = Scaled()
    layer(tf.zeros([1, 3]))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="not the same"):
        layer(tf.zeros([1, 3]))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (tf.layers.InputSpec(ndim=3), "expected ndim=3, found ndim=2"),
        (tf.layers.InputSpec(min_ndim=3), "expected min_ndim=3, found ndim=2"),
        (tf.layers.InputSpec(max_ndim=1), "expected max_ndim=1, found ndim=2"),
        (tf.layers.InputSpec(dtype=tf.int32), "expected dtype=int32"),
        (tf.layers.InputSpec(axes={-1: 4}), "expected axis -1 of input shape to have value 4"),
        (tf.layers.InputSpec(shape=(None, 4)), r"expected shape=\(None, 4\)"),
        ([tf.layers.InputSpec(), tf.layers.InputSpec()], "expects 2 inputs"),
    ],
)
def test_inputs_must_fit_the_spec(spec: Any, message: str) -> None:
    layer = tf.layers.Layer(name="id")
    layer.input_spec = spec
    with pytest.raises(ValueError, match=message):
        layer(tf.zeros([2, 3]))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="Keyword argument not understood: 'foo'"):
        tf.layers.Layer(foo=1)
    with pytest.raises(ValueError, match="greater than the maximum"):
        tf.layers.InputSpec(ndim=2, axes={2: 1})
    with pytest.raises(ValueError, match="has not been used yet"):
        _ = Scaled().scope_name
    with pytest.raises(ValueError, match="isn't built"):
        Scaled().count_params()


def test_classes_that_skip_the_constructor_work() -> None:
    class Bare(tf.layers.Layer):
        def __init__(self) -> None:
            pass

        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight("w", [], initializer=tf.ones_initializer())

        def call(self, inputs: Any) -> Any:
            return inputs + self.w

    y = Bare()(tf.zeros([2]))
    assert y.name == "bare/add:0"


def test_copies_share_variables() -> None:
    layer = Scaled()
    layer(tf.zeros([1, 3]))
    twin = copy.deepcopy(layer)
    twin(tf.zeros([1, 3]))
    assert twin.w is layer.w
    assert len(tf.global_variables()) == 2
    assert twin.variables is not layer.variables


def test_variables_made_in_a_loop_live_outside_it() -> None:
    layer = Scaled()
    result = tf.while_loop(
        lambda i, x: i < 2,
        lambda i, x: (i + 1, tf.concat([layer(x), x[:, :1]], 1)),
        [tf.constant(0), tf.ones([1, 3])],
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result[1]).shape == (1, 3)
    assert all(v.graph is tf.get_default_graph() for v in layer.variables)
