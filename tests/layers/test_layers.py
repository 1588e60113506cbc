"""tf.layers beyond what the goldens hold: channels first, unknown sizes, bad arguments."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def _first(x: Any) -> Any:
    """Channels second in place of last."""
    return tf.transpose(x, [0, x.shape.ndims - 1, *range(1, x.shape.ndims - 1)])


_SEED = {"kernel_initializer": tf.glorot_uniform_initializer(seed=1)}
_SEEDS = {
    "depthwise_initializer": tf.glorot_uniform_initializer(seed=1),
    "pointwise_initializer": tf.glorot_uniform_initializer(seed=2),
}


@pytest.mark.parametrize(
    ("function", "rank", "options"),
    [
        (tf.layers.conv1d, 1, {"filters": 4, "kernel_size": 3, **_SEED}),
        (tf.layers.conv1d, 1, {"filters": 4, "kernel_size": 3, "padding": "causal", **_SEED}),
        (tf.layers.conv2d, 2, {"filters": 4, "kernel_size": 3, "strides": (2, 1), **_SEED}),
        (tf.layers.conv3d, 3, {"filters": 2, "kernel_size": 2, **_SEED}),
        (tf.layers.conv2d_transpose, 2, {"filters": 4, "kernel_size": 3, "strides": 2, **_SEED}),
        (tf.layers.conv3d_transpose, 3, {"filters": 2, "kernel_size": 2, "strides": 2, **_SEED}),
        (tf.layers.separable_conv1d, 1, {"filters": 4, "kernel_size": 3, **_SEEDS}),
        (tf.layers.separable_conv2d, 2, {"filters": 4, "kernel_size": 3, **_SEEDS}),
        (tf.layers.max_pooling1d, 1, {"pool_size": 2, "strides": 2}),
        (tf.layers.average_pooling2d, 2, {"pool_size": (2, 3), "strides": 1, "padding": "same"}),
        (tf.layers.max_pooling3d, 3, {"pool_size": 2, "strides": 2}),
    ],
)
def test_channels_first_gives_the_same(function: Any, rank: int, options: dict[str, Any]) -> None:
    shape = [2, 6, 7, 5][: rank + 1]
    x = tf.constant(np.random.RandomState(0).standard_normal([*shape, 3]), tf.float32)
    last = function(x, **options)
    first = function(_first(x), data_format="channels_first", **options)
    a, b = _run([_first(last), first])
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert first.shape.as_list() == list(b.shape)


def test_batch_normalization_of_channels_first() -> None:
    x = tf.constant(np.random.RandomState(0).standard_normal([4, 3, 2, 5]), tf.float32)
    last = tf.layers.batch_normalization(x, training=True)
    first = tf.layers.batch_normalization(_first(x), axis=1, training=True)
    a, b = _run([_first(last), first])
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_transposed_convolution_of_unknown_sizes(padding: str) -> None:
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    y = tf.layers.conv2d_transpose(x, 4, 3, 2, padding)
    assert y.shape.as_list() == [None, None, None, 4]
    found = _run(y, {x: np.ones((2, 5, 6, 3))})
    assert found.shape == ((2, 10, 12, 4) if padding == "same" else (2, 11, 13, 4))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (tf.layers.Dense(7), [4, 5, 6]),
        (tf.layers.Flatten(), [4, 5, 6]),
        (tf.layers.Dropout(), [4, 5]),
        (tf.layers.Conv1D(7, 3, 2, "same"), [4, 9, 2]),
        (tf.layers.Conv2D(7, 3, dilation_rate=2), [4, 9, 8, 2]),
        (tf.layers.Conv2DTranspose(7, 3, 2), [4, 5, 6, 2]),
        (tf.layers.SeparableConv2D(7, 3, 2, "same"), [4, 9, 8, 2]),
        (tf.layers.MaxPooling2D(3, 2, data_format="channels_first"), [4, 2, 9, 8]),
        (tf.layers.AveragePooling1D(2, 2, "same"), [4, 9, 2]),
        (tf.layers.BatchNormalization(), [4, 3]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_output_shapes_are_told_beforehand(layer: Any, shape: list[int]) -> None:
    told = layer.compute_output_shape(shape).as_list()
    layer._graph = layer._scope = None
    assert layer(tf.zeros(shape)).shape.as_list() == told


def test_functions_by_name() -> None:
    x = tf.constant([[-1.0, 2.0]])
    y = tf.layers.dense(
        x,
        2,
        "relu",
        kernel_initializer="identity",
        bias_initializer="ones",
        kernel_regularizer="l2",
    )
    loss = tf.losses.get_regularization_loss()
    values = _run([y, loss])
    np.testing.assert_allclose(values[0], [[0.0, 3.0]])
    np.testing.assert_allclose(values[1], 0.02, rtol=1e-6)
    with pytest.raises(ValueError, match=r"Unknown activation: 'rely'.*'relu'"):
        tf.layers.dense(x, 2, "rely")
    with pytest.raises(ValueError, match="Could not interpret initializer"):
        tf.layers.dense(x, 2, kernel_initializer=3.0)


def test_scopes_give_defaults_partitions_and_sharing() -> None:
    x = tf.zeros([2, 6])
    with tf.variable_scope(
        "s",
        initializer=tf.ones_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
        reuse=tf.AUTO_REUSE,
    ):
        y = tf.layers.dense(x + 1.0, 4, name="d", kernel_regularizer=tf.nn.l2_loss)
        tf.layers.dense(x, 4, name="d", kernel_regularizer=tf.nn.l2_loss)
    names = [v.name for v in tf.trainable_variables()]
    assert names == [f"s/d/{n}/part_{i}:0" for n in ("kernel", "bias") for i in (0, 1)]
    assert len(tf.get_collection("regularization_losses")) == 2
    np.testing.assert_array_equal(_run(y), np.full((2, 4), 6.0))


def test_half_precision_normalizes_in_single() -> None:
    x = tf.constant(np.random.RandomState(0).rand(8, 3), tf.float16)
    y = tf.layers.batch_normalization(x, training=True)
    assert y.dtype == tf.float16
    assert {v.dtype for v in tf.global_variables()} == {tf.float32}
    assert abs(float(_run(y).mean())) < 1e-2


def test_constraints_and_types_reach_the_variables() -> None:
    layer = tf.layers.Dense(2, kernel_constraint=tf.abs, dtype=tf.float64)
    y = layer(tf.zeros([1, 3], tf.float64))
    assert y.dtype == tf.float64
    assert layer.kernel.constraint is tf.abs


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tf.layers.dense(tf.zeros([3]), 2), ValueError, "expected min_ndim=2"),
        (lambda: tf.layers.dense(tf.zeros([3, 2], tf.int32), 2), TypeError, "non-floating"),
        (
            lambda: tf.layers.dense(tf.placeholder(tf.float32, [3, None]), 2),
            ValueError,
            "last dimension of the inputs to `Dense` should be defined",
        ),
        (lambda: tf.layers.conv2d(tf.zeros([1, 4, 4]), 2, 3), ValueError, "expected ndim=4"),
        (lambda: tf.layers.Conv2D(2, (3, 3, 3)), ValueError, "`kernel_size` argument must be"),
        (lambda: tf.layers.Conv2D(2, 3, padding="full"), ValueError, "'valid', 'same'"),
        (lambda: tf.layers.Conv2D(2, 3, data_format="NHWC"), ValueError, "channels_first"),
        (lambda: tf.layers.Conv2D(2, 3, 2, dilation_rate=2), ValueError, "not supported"),
        (
            lambda: tf.layers.conv2d(tf.placeholder(tf.float32, [1, 4, 4, None]), 2, 3),
            ValueError,
            "channel dimension of the inputs should be defined",
        ),
        (lambda: tf.layers.BatchNormalization(axis="x"), TypeError, "axis must be int or list"),
        (
            lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=[0, 0]),
            ValueError,
            "Duplicate axis",
        ),
        (
            lambda: tf.layers.batch_normalization(tf.zeros([2, 3]), axis=2),
            ValueError,
            "Invalid axis: 2",
        ),
        (
            lambda: tf.layers.BatchNormalization(renorm=True, renorm_clipping={"x": 1}),
            ValueError,
            "contains keys not in",
        ),
        (lambda: tf.layers.conv2d(tf.zeros([1, 4, 4, 1]), 2), TypeError, "kernel_size"),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_functions_have_the_signatures_of_their_layers() -> None:
    names = list(inspect.signature(tf.layers.conv2d).parameters)
    assert names[:4] == ["inputs", "filters", "kernel_size", "strides"]
    assert names[-3:] == ["trainable", "name", "reuse"]
    assert list(inspect.signature(tf.layers.max_pooling2d).parameters) == [
        "inputs",
        "pool_size",
        "strides",
        "padding",
        "data_format",
        "name",
    ]


def test_a_later_call_with_other_sizes_is_refused() -> None:
    layer = tf.layers.Dense(2)
    layer(tf.zeros([1, 3]))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        layer(tf.zeros([1, 4]))
