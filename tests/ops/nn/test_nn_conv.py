"""Convolutions: what the public functions add to the ops, second derivatives, and refusals."""

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


def test_strides_may_leave_out_batch_and_channels() -> None:
    x, k = tf.constant(normal(1, 5, 6, 2)), tf.constant(normal(2, 3, 2, 4, seed=1))
    full = tf.nn.conv2d(x, k, [1, 2, 1, 1], "SAME")
    short = tf.nn.conv2d(x, filters=k, strides=[2, 1], padding="SAME")
    a, b = run([full, short])
    assert full.shape.as_list() == [1, 3, 6, 4]
    assert np.array_equal(a, b)


def test_shapes_that_are_known_in_part() -> None:
    x = tf.placeholder(tf.float32, [None, None, 6, 3])
    k = tf.constant(normal(2, 3, 3, 4).astype(np.float32))
    y = tf.nn.conv2d(x, k, 1, "VALID")
    assert y.shape.as_list() == [None, None, 4, 4]
    up = tf.nn.conv2d_transpose(y, k, tf.stack([tf.shape(x)[0], 5, 6, 3]), [1, 1, 1, 1], "VALID")
    assert up.shape.as_list() == [None, 5, 6, 3]
    assert run(up, {x: np.ones((2, 5, 6, 3), np.float32)}).shape == (2, 5, 6, 3)
    free = tf.nn.conv2d(tf.placeholder(tf.float32), k, 1, "SAME")
    assert free.shape.as_list() == [None, None, None, 4]


def test_channels_first_is_the_transposed_problem() -> None:
    x, k = normal(2, 5, 6, 3), tf.constant(normal(3, 2, 3, 4, seed=1))
    last = tf.nn.conv2d(tf.constant(x), k, [1, 2, 1, 1], "SAME")
    first = tf.nn.conv2d(
        tf.constant(x.transpose(0, 3, 1, 2)), k, [1, 1, 2, 1], "SAME", data_format="NCHW"
    )
    a, b = run([last, first])
    np.testing.assert_allclose(a, b.transpose(0, 2, 3, 1), 1e-12)


@pytest.mark.parametrize("data_format", ["NWC", "NCW"])
def test_conv1d_is_conv2d_of_height_one(data_format: str) -> None:
    x, k = normal(2, 7, 3), normal(2, 3, 4, seed=1)
    want = tf.nn.conv2d(x[:, None], k[None], [1, 1, 2, 1], "SAME")
    given = x if data_format == "NWC" else x.transpose(0, 2, 1)
    got = tf.nn.conv1d(tf.constant(given), k, 2, "SAME", data_format=data_format)
    a, b = run([want, got])
    np.testing.assert_allclose(a[:, 0], b if data_format == "NWC" else b.transpose(0, 2, 1), 1e-12)


def test_convolution_takes_one_to_three_dimensions() -> None:
    for spatial in ((7,), (5, 6), (4, 3, 5)):
        x = tf.constant(normal(2, *spatial, 3))
        k = tf.constant(normal(*[2] * len(spatial), 3, 4, seed=1))
        y = tf.nn.convolution(x, k, "VALID", dilation_rate=[2] * len(spatial))
        assert y.shape.as_list() == [2, *[n - 2 for n in spatial], 4]
        assert run(y).shape == tuple(y.shape.as_list())


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_equals_space_to_batch(padding: str) -> None:
    x, k = tf.constant(normal(2, 7, 8, 3)), tf.constant(normal(3, 2, 3, 4, seed=1))
    direct = tf.nn.convolution(x, k, padding, dilation_rate=[2, 3])

    def op(dealt: Any, count: int, inner: str) -> Any:
        assert (count, inner) == (2, "VALID")
        return tf.nn.conv2d(dealt, k, 1, inner)

    dealt = tf.nn.with_space_to_batch(x, [2, 3], padding, op, filter_shape=[3, 2])
    unknown = tf.placeholder(tf.float64, [None, None, None, 3])
    late = tf.nn.with_space_to_batch(unknown, [2, 3], padding, op, filter_shape=[3, 2])
    a, b, c = run([direct, dealt, late], {unknown: normal(2, 7, 8, 3)})
    np.testing.assert_allclose(a, b, 1e-10)
    np.testing.assert_allclose(a, c, 1e-10)


def test_atrous_transpose_is_the_gradient() -> None:
    x, k = tf.constant(normal(1, 6, 7, 2)), tf.constant(normal(2, 3, 2, 4, seed=1))
    y = tf.nn.atrous_conv2d(x, k, 2, "SAME")
    dy = tf.constant(normal(*y.shape.as_list(), seed=2))
    back = tf.nn.atrous_conv2d_transpose(dy, k, [1, 6, 7, 2], 2, "SAME")
    a, b = run([tf.gradients(y, x, dy)[0], back])
    np.testing.assert_allclose(a, b, 1e-12)


def test_erosion_subtracts_the_mirrored_kernel() -> None:
    x, k = normal(1, 5, 4, 2), normal(2, 3, 2, seed=1)
    got = run(tf.nn.erosion2d(x, k, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    seen = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))
    want = (seen - k[::-1, ::-1].transpose(2, 0, 1)).min((-2, -1))
    np.testing.assert_allclose(got, want, 1e-12)


_SECOND_ORDER: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "conv2d": (lambda x, k: tf.nn.conv2d(x, k, [1, 2, 1, 1], "SAME"), (1, 4, 3, 2), (2, 2, 2, 3)),
    "transpose": (
        lambda x, k: tf.nn.conv2d_transpose(x, k, [1, 7, 4, 3], [1, 2, 1, 1], "SAME"),
        (1, 4, 4, 2),
        (2, 3, 3, 2),
    ),
    "depthwise": (
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME", rate=[2, 1]),
        (1, 4, 3, 2),
        (2, 2, 2, 3),
    ),
    "conv3d": (
        lambda x, k: tf.nn.conv3d(x, k, [1, 1, 2, 1, 1], "VALID"),
        (1, 2, 4, 3, 2),
        (1, 2, 2, 2, 3),
    ),
}


@pytest.mark.parametrize("name", _SECOND_ORDER)
def test_second_derivatives_agree_with_differences(name: str) -> None:
    function, x_shape, k_shape = _SECOND_ORDER[name]
    x, k = (tf.placeholder(tf.float64, s) for s in (x_shape, k_shape))
    loss = tf.reduce_sum(function(x, k) ** 3)
    first = tf.gradients(loss, [x, k])
    u, v = normal(*x_shape, seed=3), normal(*k_shape, seed=4)
    along = tf.reduce_sum(first[0] * u) + tf.reduce_sum(first[1] * v)
    second = tf.gradients(along, [x, k])
    a, b, step = normal(*x_shape), normal(*k_shape, seed=1), 1e-6
    with tf.Session() as session:
        dx, dk = session.run(second, {x: a, k: b})
        p, q = normal(*x_shape, seed=5), normal(*k_shape, seed=6)
        ends = [session.run(along, {x: a + s * p, k: b + s * q}) for s in (-step, step)]
    difference = (ends[1] - ends[0]) / (2 * step)
    assert (dx * p).sum() + (dk * q).sum() == pytest.approx(difference, rel=1e-6)


_X = np.zeros((1, 4, 5, 3), np.float32)
_K = np.zeros((2, 2, 3, 4), np.float32)
_ONES = [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: tf.nn.conv2d(_X, np.zeros((5, 2, 3, 4), np.float32), 1, "VALID"),
            "Negative dimension size caused by subtracting 5 from 4",
        ),
        (
            lambda: tf.nn.conv2d(_X, np.zeros((2, 2, 2, 4), np.float32), 1, "VALID"),
            r"Depth of input \(3\) is not a multiple of input depth of filter \(2\)",
        ),
        (lambda: tf.nn.conv2d(_X[0], _K, 1, "SAME"), "Shape must be rank 4 but is rank 3"),
        (lambda: tf.nn.conv2d(_X, _K, [1, 2, 3], "SAME"), "strides should be of length 1, 2 or 4"),
        (lambda: tf.nn.conv2d(_X, _K, [2, 1, 1, 1], "SAME"), "strides in the batch and depth"),
        (lambda: tf.nn.conv2d(_X, _K, 0, "SAME"), "strides must be positive"),
        (lambda: tf.nn.conv2d(_X, _K, 1, "FULL"), "Value passed to parameter 'padding'"),
        (lambda: tf.nn.conv2d(_X, _K, 1, [[0, 0], [1, 1]]), "a list of 4 pairs"),
        (
            lambda: tf.nn.conv2d(_X, _K, 1, [[0, 0], [1, 1], [1, 1], [1, 0]]),
            "padding in the batch or depth dimensions",
        ),
        (
            lambda: tf.nn.conv2d_transpose(_X, np.zeros((2, 2, 9, 3), np.float32), [1, 9, 5, 9], 2),
            r"out_backprop has shape \(1, 4, 5, 3\), but the convolution",
        ),
        (
            lambda: tf.nn.depthwise_conv2d(_X, np.zeros((2, 2, 4, 1), np.float32), _ONES, "SAME"),
            "Dimensions must be equal, but are 3 and 4",
        ),
        (
            lambda: tf.nn.convolution(_X, _K, "SAME", strides=[2, 1], dilation_rate=[1, 2]),
            "strides > 1 not supported in conjunction with dilation_rate > 1",
        ),
        (
            lambda: tf.nn.convolution(
                tf.placeholder(tf.float32), tf.placeholder(tf.float32), "SAME"
            ),
            "rank of input must be known",
        ),
        (
            lambda: tf.nn.separable_conv2d(
                _X,
                np.zeros((2, 2, 3, 1), np.float32),
                np.zeros((2, 1, 3, 4), np.float32),
                1,
                "SAME",
            ),
            "pointwise_filter must have height and width 1",
        ),
        (
            lambda: tf.nn.dilation2d(_X, np.zeros((2, 2, 4), np.float32), _ONES, _ONES, "SAME"),
            "must have the same depth",
        ),
        (lambda: tf.nn.conv1d(_X[0], _K[0], 1, "SAME", data_format="WNC"), "data_format must be"),
    ],
)
def test_what_cannot_fit_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_a_missing_filter_is_named() -> None:
    with pytest.raises(TypeError, match=r"tf\.nn\.conv2d needs a value for 'filter'"):
        tf.nn.conv2d(_X, strides=1, padding="SAME")


def test_a_mismatch_seen_only_when_it_runs_names_the_depths() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.nn.conv2d(x, _K, 1, "VALID", name="late")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Depth of input \(5\)"):
        run(y, {x: np.zeros((1, 4, 5, 5), np.float32)})
