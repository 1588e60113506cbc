"""Activations, bias and softmax: the public functions and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def run(fetches: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


NAMES = ["relu", "relu6", "elu", "selu", "leaky_relu", "softplus", "softsign", "swish"]


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_agree_with_differences(name: str) -> None:
    x = tf.placeholder(tf.float64, [7])
    y = getattr(tf.nn, name)(x)
    first = tf.gradients(y**2, x)[0]
    second = tf.gradients(first, x)[0]
    at, step = np.array([-3.0, -0.7, -0.2, 0.3, 1.4, 5.5, 7.0]), 1e-6
    with tf.Session() as session:
        got = session.run(second, {x: at})
        low, high = (session.run(first, {x: at + s}) for s in (-step, step))
    np.testing.assert_allclose(got, (high - low) / (2 * step), 1e-5, 1e-6)


def test_default_names() -> None:
    x = tf.constant([[1.0, -1.0]])
    assert tf.nn.relu(x).op.name == "Relu"
    assert tf.nn.leaky_relu(x).op.name == "LeakyRelu"
    assert tf.nn.bias_add(x, [1.0, 2.0]).op.name == "BiasAdd"
    assert tf.nn.softmax(x).op.name == "Softmax"
    assert tf.nn.crelu(x).op.name == "CRelu/Relu"
    assert tf.nn.xw_plus_b(x, [[1.0], [1.0]], [1.0]).op.name == "xw_plus_b"


def test_leaky_relu_of_integers_and_of_a_tensor_slope() -> None:
    x = tf.constant([-10, 5])
    a, b = run(
        [tf.nn.leaky_relu(x, 0.5), tf.nn.leaky_relu(tf.cast(x, tf.float32), tf.constant(0.5))]
    )
    assert a.tolist() == b.tolist() == [-5, 5]


def test_crelu_joins_both_signs_along_an_axis() -> None:
    x = tf.constant([[1.0, -2.0]])
    assert run(tf.nn.crelu(x)).tolist() == [[1, 0, 0, 2]]
    assert run(tf.nn.crelu(x, axis=0)).tolist() == [[1, 0], [0, 2]]


def test_relu_layer() -> None:
    got = run(tf.nn.relu_layer([[1.0, 2.0]], [[1.0, -1.0], [1.0, -1.0]], [0.5, 1.0]))
    assert got.tolist() == [[3.5, 0]]


@pytest.mark.parametrize(("layout", "size"), [("NHWC", 5), ("NCHW", 3), ("NC...", 3)])
def test_bias_gradient_twice(layout: str, size: int) -> None:
    x, b = tf.constant(normal(2, 3, 4, 5)), tf.constant(normal(size, seed=1))
    y = tf.nn.bias_add(x, b, layout)
    grad = tf.gradients(y**3, b)[0]
    got = run(tf.gradients(grad, x)[0])
    want = 6 * run(y)
    np.testing.assert_allclose(got, want, 1e-12)


def test_bias_of_unknown_rank() -> None:
    x = tf.placeholder(tf.float32)
    b = tf.constant([1.0, 2.0])
    y = tf.nn.bias_add(x, b)
    got = run([y, tf.gradients(y, b)[0]], {x: np.zeros((2, 3, 2))})
    assert got[0].tolist() == [[[1, 2]] * 3] * 2
    assert got[1].tolist() == [6, 6]


_X = np.zeros((2, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.nn.bias_add(_X, np.zeros(3, np.float32)), "equal, but are 4 and 3"),
        (lambda: tf.nn.bias_add(_X, np.zeros((3, 1), np.float32)), "Biases must be 1D"),
        (lambda: tf.nn.bias_add(_X[0, 0], np.zeros(4, np.float32)), "must be at least 2D"),
        (lambda: tf.nn.bias_add(_X, np.zeros(4, np.float32), "HWCN"), "of the form `N...C`"),
        (lambda: tf.nn.softmax(1.0), "at least one dimension"),
        (lambda: tf.nn.softmax(_X, axis=3), r"axis 3 is not in \[-3, 3\)"),
        (lambda: tf.nn.softmax(_X, axis=0, dim=1), "Cannot specify both"),
        (
            lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[1]], logits=_X[0, :1]),
            "Rank mismatch",
        ),
        (
            lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=_X[0], logits=_X),
            "must have the same shape",
        ),
    ],
)
def test_what_cannot_fit_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


# -- softmax and cross-entropies ----------------------------------------------------------------


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_softmax_along_any_axis(axis: int) -> None:
    x = normal(2, 3, 4)
    a, b = run([tf.nn.softmax(x, axis=axis), tf.nn.log_softmax(x, dim=axis)])
    np.testing.assert_allclose(a, _softmax(x, axis), 1e-12)
    np.testing.assert_allclose(b, np.log(_softmax(x, axis)), 1e-12)


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.bool_])
def test_cross_entropy_takes_labels_of_any_type(kind: Any) -> None:
    one_hot = np.eye(3)[[2, 0]]
    labels = tf.placeholder(tf.as_dtype(kind), [None, 3])
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=np.float32([[1, 2, 3]]))
    assert loss.dtype is tf.float32
    with tf.Session() as session:
        value = session.run(loss, {labels: one_hot.astype(kind)[:1]})
    np.testing.assert_allclose(value, [0.407606], rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cross_entropy_along_any_axis(axis: int) -> None:
    x, labels = normal(2, 3, 4), _softmax(normal(2, 3, 4, seed=1), axis)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x, axis=axis)
    want = -(labels * np.log(_softmax(x, axis))).sum(axis)
    assert loss.shape.is_compatible_with(want.shape)
    np.testing.assert_allclose(run(loss), want, 1e-10)


def test_labels_may_have_other_outer_axes_than_the_logits() -> None:
    """Programs give labels in a list of one, or through a placeholder without a shape."""
    x, labels = normal(2, 3), _softmax(normal(2, 3, seed=1), -1)
    want = -(labels * np.log(_softmax(x, -1))).sum(-1)
    for given in (tf.placeholder(tf.float64, [1, None, 3]), tf.placeholder(tf.float64)):
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=given, logits=x)
        assert loss.shape.as_list() == [2]
        np.testing.assert_allclose(run(loss, {given: labels[None]}), want, 1e-10)
    cube = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x[None])
    np.testing.assert_allclose(run(cube), want[None], 1e-10)


def test_only_the_second_version_sends_gradients_to_labels() -> None:
    x, labels = tf.constant(normal(2, 3)), tf.constant(_softmax(normal(2, 3, seed=1), 1))
    arguments = {"labels": labels, "logits": x}
    old = tf.nn.softmax_cross_entropy_with_logits(**arguments)
    new = tf.nn.softmax_cross_entropy_with_logits_v2(**arguments)
    assert tf.gradients(old, labels) == [None]
    got = run(tf.gradients(new, labels)[0])
    np.testing.assert_allclose(got, -np.log(_softmax(normal(2, 3), 1)), 1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_second_derivative_of_cross_entropy(sparse: bool) -> None:
    x = tf.placeholder(tf.float64, [2, 3])
    if sparse:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x)
    else:
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(
            labels=_softmax(normal(2, 3, seed=1), 1), logits=x
        )
    first = tf.gradients(loss**2, x)[0] * normal(2, 3, seed=2)
    second = tf.gradients(first, x)[0]
    at, along, step = normal(2, 3), normal(2, 3, seed=3), 1e-6
    with tf.Session() as session:
        got = (session.run(second, {x: at}) * along).sum()
        low, high = (session.run(first, {x: at + s * along}).sum() for s in (-step, step))
    assert got == pytest.approx((high - low) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("fed", [False, True])
def test_a_label_that_is_no_class_is_an_error(fed: bool) -> None:
    labels = tf.placeholder_with_default(np.int32([1, 3]), [2]) if fed else tf.constant([1, 3])
    logits = tf.placeholder(tf.float32, [2, 3])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 3 which is outside"):
        run(loss, {logits: np.zeros((2, 3))})


@pytest.mark.parametrize("sparse", [False, True])
def test_half_precision_losses_are_computed_in_single(sparse: bool) -> None:
    logits = tf.constant(np.full((1, 3000), 0.1), tf.float16)
    if sparse:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[5], logits=logits)
    else:
        labels = tf.constant(np.eye(3000)[:1], tf.float16)
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits)
    assert loss.dtype is tf.float16
    assert run(loss)[0] == np.float16(np.log(3000))


def test_sparse_cross_entropy_of_any_rank_and_unknown_sizes() -> None:
    x = tf.placeholder(tf.float32, [None, None, 3])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.placeholder_with_default(np.int64([[0, 1]]), [None, None]), logits=x
    )
    logits = normal(1, 2, 3).astype(np.float32)
    got = run([loss, tf.gradients(loss, x)[0]], {x: logits})
    p = _softmax(logits, -1)
    np.testing.assert_allclose(got[0], [[-np.log(p[0, 0, 0]), -np.log(p[0, 1, 1])]], 1e-5)
    np.testing.assert_allclose(got[1], p - np.eye(3)[[[0, 1]]], 1e-5, 1e-6)


def test_cross_entropy_along_an_axis_of_unknown_rank() -> None:
    logits, labels = normal(2, 3, 4), np.abs(normal(2, 3, 4, seed=1))
    x = tf.placeholder(tf.float64, None)
    for axis in (0, -2, 2):
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x, axis=axis)
        shifted = logits - np.log(np.exp(logits).sum(axis, keepdims=True))
        np.testing.assert_allclose(run(loss, {x: logits}), -(labels * shifted).sum(axis))
    with pytest.raises(ValueError, match="axis 3 is not in"):
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, axis=3)
