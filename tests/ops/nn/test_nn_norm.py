"""Normalisation: derivatives of the fused op, moments, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(fetches: Any, feed: dict[Any, Any] | None = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


# -- derivatives of the fused op, against the same written in small ops -------------------------


def _fused(x: Any, scale: Any, offset: Any, training: bool, layout: str) -> Any:
    fixed = {} if training else {"mean": normal(3, seed=8), "variance": abs(normal(3, seed=9)) + 1}
    return tf.nn.fused_batch_norm(
        x, scale, offset, epsilon=0.01, is_training=training, data_format=layout, **fixed
    )[0]


def _spelt_out(x: Any, scale: Any, offset: Any, training: bool, layout: str) -> Any:
    axes = [i for i, letter in enumerate(layout) if letter != "C"]
    shape = [3 if letter == "C" else 1 for letter in layout]

    def spread(t: Any) -> Any:
        return tf.reshape(t, shape)

    if training:
        mean = tf.reduce_mean(x, axes, keepdims=True)
        variance = tf.reduce_mean((x - mean) ** 2, axes, keepdims=True)
    else:
        mean, variance = spread(normal(3, seed=8)), spread(abs(normal(3, seed=9)) + 1)
    return (x - mean) * tf.rsqrt(variance + 0.01) * spread(scale) + spread(offset)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("layout", "shape"),
    [("NHWC", (2, 3, 4, 3)), ("NCHW", (2, 3, 5, 4)), ("NCDHW", (2, 3, 2, 1, 4))],
)
def test_first_and_second_derivatives(training: bool, layout: str, shape: tuple[int, ...]) -> None:
    results = []
    for function in (_fused, _spelt_out):
        x, scale, offset = (
            tf.constant(a) for a in (normal(*shape), normal(3, seed=1), normal(3, seed=2))
        )
        y = function(x, scale, offset, training, layout)
        weights = tf.constant(normal(*shape, seed=3))
        first = tf.gradients(y * y * weights, [x, scale, offset])
        seeds = [normal(*shape, seed=4), normal(3, seed=5), normal(3, seed=6)]
        along = tf.add_n([tf.reduce_sum(g * s) for g, s in zip(first, seeds, strict=True)])
        second = tf.gradients(along, [x, scale, offset])
        results.append(run([y, *first, *second]))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, 2e-4, 2e-4)


def test_half_precision_keeps_its_type_and_wide_averages() -> None:
    x = tf.constant(normal(2, 3, 4, 3), tf.float16)
    y, mean, variance = tf.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]))
    dx = tf.gradients(y * y, x)[0]
    assert [t.dtype for t in (y, mean, variance, dx)] == [tf.float16, *[tf.float32] * 2, tf.float16]
    got = run(y).astype(np.float32)
    assert abs(got.mean((0, 1, 2))).max() < 1e-2
    assert abs(got.std((0, 1, 2)) - 1).max() < 1e-2


def test_a_tiny_epsilon_is_raised() -> None:
    y = tf.nn.fused_batch_norm(normal(1, 2, 2, 3), tf.ones([3]), tf.zeros([3]), epsilon=0.0)[0]
    assert y.op.get_attr("epsilon") == pytest.approx(1.001e-5)


def test_inference_needs_mean_and_variance() -> None:
    with pytest.raises(ValueError, match="Both mean and variance must be given"):
        tf.nn.fused_batch_norm(normal(1, 2, 2, 3), tf.ones([3]), tf.zeros([3]), is_training=False)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: tf.nn.fused_batch_norm(normal(1, 2, 2, 3), tf.ones([4]), tf.zeros([4])),
            "Dimensions must be equal, but are 3 and 4: scale must have one entry",
        ),
        (
            lambda: tf.nn.fused_batch_norm(normal(2, 2, 3), tf.ones([3]), tf.zeros([3])),
            "Shape must be rank 4 but is rank 3",
        ),
        (lambda: tf.nn.lrn(normal(2, 3)), "Shape must be rank 4 but is rank 2"),
        (lambda: tf.nn.log_poisson_loss([1.0], [1.0, 2.0]), "must have the same shape"),
    ],
)
def test_what_cannot_fit_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_second_derivative_of_local_response_normalisation() -> None:
    x = tf.placeholder(tf.float32, [1, 2, 3, 4])
    y = tf.nn.lrn(x, 1, 1.5, 0.3, 0.6)
    same = x / (1.5 + 0.3 * tf.reduce_sum(_neighbours(x) ** 2, -1)) ** 0.6
    found = []
    for value in (y, same):
        first = tf.gradients(value**2, x)[0]
        found.append(tf.gradients(first * normal(1, 2, 3, 4, seed=1), x)[0])
    a, b = run(found, {x: normal(1, 2, 3, 4)})
    np.testing.assert_allclose(a, b, 1e-4, 1e-4)


def _neighbours(x: Any) -> Any:
    padded = tf.pad(x, [[0, 0], [0, 0], [0, 0], [1, 1]])
    return tf.stack([padded[..., :-2], padded[..., 1:-1], padded[..., 2:]], -1)


# -- moments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [[0], [0, 2], [1, -1]])
def test_moments(axes: list[int], keep: bool) -> None:
    x = normal(2, 3, 4)
    fed = tf.placeholder(tf.float32)
    for given in (tf.constant(x), fed):
        mean, variance = run(tf.nn.moments(given, axes, keepdims=keep), {fed: x})
        np.testing.assert_allclose(mean, x.mean(tuple(axes), keepdims=keep), 1e-5, 1e-6)
        np.testing.assert_allclose(variance, x.var(tuple(axes), keepdims=keep), 1e-5, 1e-6)


def test_gradient_of_the_variance() -> None:
    x = tf.constant(normal(3, 4))
    _, variance = tf.nn.moments(x, [0])
    got = run(tf.gradients(variance, x)[0])
    np.testing.assert_allclose(got, 2 / 3 * (normal(3, 4) - normal(3, 4).mean(0)), 1e-5, 1e-6)


def test_weights_repeat_values() -> None:
    x = tf.constant([1.0, 2.0, 5.0])
    mean, variance = run(tf.nn.weighted_moments(x, [0], [3.0, 0.0, 1.0]))
    assert (mean, variance) == (2.0, 3.0)
    column = tf.constant(normal(3, 4))
    uneven = run(tf.nn.weighted_moments(column, [0, 1], tf.constant([[1.0], [2.0], [1.0]])))
    values = np.repeat(normal(3, 4), [1, 2, 1], 0)
    np.testing.assert_allclose(uneven, [values.mean(), values.var()], 1e-5)


@pytest.mark.parametrize("shift", [None, 0.5])
def test_statistics_make_moments(shift: float | None) -> None:
    x = normal(3, 4)
    fed = tf.placeholder(tf.float32, [None, 4])
    unknown = tf.placeholder_with_default(fed, None)
    for given, axis in ((tf.constant(x), 0), (fed, 0), (unknown, 0), (unknown, -2)):
        counts, sums, squares, back = tf.nn.sufficient_statistics(given, [axis], shift)
        mean, variance = tf.nn.normalize_moments(counts, sums, squares, back)
        count, a, b = run([counts, mean, variance], {fed: x})
        assert count == 3
        np.testing.assert_allclose(a, x.mean(0), 1e-5, 1e-6)
        np.testing.assert_allclose(b, x.var(0), 1e-4, 1e-5)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_an_empty_batch_says_nothing_of_scale_and_offset(data_format: str, interpret: str) -> None:
    x = tf.placeholder(tf.float32, [None, 2, 2, 2])
    scale, offset = tf.constant(normal(2)), tf.constant(normal(2))
    y, _, _ = tf.nn.fused_batch_norm(x, scale, offset, data_format=data_format)
    found = tf.gradients(y, [x, scale, offset])
    images, *rest = run(found, {x: np.zeros((0, 2, 2, 2))})
    assert images.shape == (0, 2, 2, 2)
    assert [r.tolist() for r in rest] == [[0.0, 0.0]] * 2


def test_batch_normalization_under_its_old_arguments() -> None:
    x, mean, variance = normal(2, 2, 2, 3), normal(3, seed=1), abs(normal(3, seed=2))
    beta, gamma = normal(3, seed=3), normal(3, seed=4)
    old = tf.nn.batch_norm_with_global_normalization(x, mean, variance, beta, gamma, 0.1, True)
    bare = tf.nn.batch_norm_with_global_normalization(x, mean, variance, beta, gamma, 0.1, False)
    a, b = run([old, bare])
    normalised = (x - mean) / np.sqrt(variance + 0.1)
    np.testing.assert_allclose(a, normalised * gamma + beta, 1e-4, 1e-5)
    np.testing.assert_allclose(b, normalised + beta, 1e-4, 1e-5)


def test_l2_normalize_of_complex_numbers() -> None:
    x = (normal(2, 3) + 1j * normal(2, 3, seed=1)).astype(np.complex64)
    got = run(tf.nn.l2_normalize(tf.constant(x), dim=1))
    np.testing.assert_allclose(got, x / np.linalg.norm(x, axis=1, keepdims=True), 1e-5)
