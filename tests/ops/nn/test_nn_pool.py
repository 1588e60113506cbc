"""Pools: what the public functions add to the ops, and refusals."""

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


def test_a_tie_gives_the_gradient_to_the_first() -> None:
    x = tf.constant(np.ones((1, 2, 4, 1)))
    y = tf.nn.max_pool(x, 2, 2, "VALID")
    got = run(tf.gradients(y, x)[0])
    assert got[0, :, :, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]]


def test_a_tie_in_three_dimensions_gives_it_to_all() -> None:
    x = tf.constant(np.ones((1, 2, 2, 2, 1)))
    y = tf.nn.max_pool3d(x, 2, 2, "VALID")
    assert run(tf.gradients(y, x)[0]).ravel().tolist() == [1] * 8


def test_second_derivatives_of_a_maximum_pool() -> None:
    x = tf.constant(normal(1, 4, 5, 2))
    y = tf.nn.max_pool(x, [2, 3], [2, 1], "SAME")
    first = tf.gradients(y**3, x)[0]
    second = tf.gradients(first, x)[0]
    # each window picks one element e, so the sum of firsts is that of 3 e^2 over windows
    want = tf.gradients(tf.reduce_sum(3 * y**2), x)[0]
    a, b = run([second, want])
    np.testing.assert_allclose(a, b, 1e-12)


def test_explicit_padding_never_wins() -> None:
    x = tf.constant(-np.ones((1, 2, 2, 1)))
    y = tf.nn.max_pool(x, 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])
    assert y.shape.as_list() == [1, 2, 2, 1]
    assert (run(y) == -1).all()


def test_padding_does_not_count_for_an_average() -> None:
    y = tf.nn.avg_pool(tf.constant(np.full((1, 3, 3, 1), 5.0)), 2, 2, "SAME")
    assert (run(y) == 5).all()


def test_input_may_be_given_by_its_new_name() -> None:
    x = tf.constant(normal(1, 4, 4, 1))
    assert tf.nn.max_pool(None, 2, 2, "SAME", input=x).shape.as_list() == [1, 2, 2, 1]


@pytest.mark.parametrize("kind", ["MAX", "AVG"])
@pytest.mark.parametrize("data_format", [None, "NC"])
def test_pool_takes_one_to_three_dimensions(kind: str, data_format: str | None) -> None:
    reduce = {"MAX": np.max, "AVG": np.mean}[kind]
    for spatial in ((6,), (4, 6), (4, 2, 6)):
        x = normal(2, *spatial, 3)
        given = np.moveaxis(x, -1, 1) if data_format else x
        count = len(spatial)
        y = tf.nn.pool(
            tf.constant(given),
            [2] * count,
            kind,
            "VALID",
            strides=[2] * count,
            data_format=data_format,
        )
        blocks = x.reshape(2, *[n for size in spatial for n in (size // 2, 2)], 3)
        want = reduce(blocks, axis=tuple(range(2, 2 * count + 1, 2)))
        got = run(y)
        np.testing.assert_allclose(np.moveaxis(got, 1, -1) if data_format else got, want, 1e-12)


def test_dilated_pool_skips_elements() -> None:
    x = normal(1, 5, 6, 2)
    y = run(tf.nn.pool(tf.constant(x), [2, 2], "MAX", "VALID", dilation_rate=[2, 3]))
    corners = [x[:, i : i + 3, j : j + 3] for i in (0, 2) for j in (0, 3)]
    np.testing.assert_array_equal(y, np.max(corners, 0))


def test_position_of_the_maximum() -> None:
    x = normal(2, 4, 6, 3).astype(np.float32)
    y, where = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", output_dtype=tf.int32)
    _, whole = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
    assert where.dtype is tf.int32
    assert whole.dtype is tf.int64
    values, places, flat = run([y, where, whole])
    np.testing.assert_array_equal(x.ravel()[flat], values)
    np.testing.assert_array_equal(places + np.arange(2).reshape(2, 1, 1, 1) * x[0].size, flat)


_X = np.zeros((1, 4, 5, 3), np.float32)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: tf.nn.max_pool(_X, [1, 5, 1, 1], 1, "VALID"),
            "Negative dimension size caused by subtracting 5 from 4",
        ),
        (lambda: tf.nn.max_pool(_X, [2, 1, 1, 1], 1, "SAME"), "supported on the batch dimension"),
        (lambda: tf.nn.avg_pool(_X, 0, 1, "SAME"), "ksize must be positive"),
        (lambda: tf.nn.max_pool(_X[0], 2, 1, "SAME"), "Shape must be rank 4 but is rank 3"),
        (
            lambda: tf.raw_ops.MaxPool(_X, ksize=[1, 2, 2], strides=[1, 1, 1, 1], padding="SAME"),
            "passed 3 less than minimum 4",
        ),
        (lambda: tf.nn.avg_pool(_X, 2, 1, "EXPLICIT"), "Value passed to parameter 'padding'"),
        (lambda: tf.nn.pool(_X, [2, 2], "MIN", "SAME"), "pooling_type must be either MAX or AVG"),
        (
            lambda: tf.nn.pool(_X, [2, 2], "MAX", "SAME", dilation_rate=[2, 1]),
            "not implemented for dilation_rate > 1",
        ),
        (lambda: tf.nn.pool(_X, [2, 2], "MAX", "SAME", strides=[3, 1]), "strides > window_shape"),
        (
            lambda: tf.nn.max_pool_with_argmax(_X, 2, 2, "SAME", data_format="NCHW"),
            "data_format must be 'NHWC'",
        ),
        (
            lambda: tf.nn.with_space_to_batch(_X, [2, 2], "SAME", lambda *a: a[0]),
            "filter_shape must be specified for SAME padding",
        ),
        (
            lambda: tf.nn.with_space_to_batch(_X, [2, 0], "VALID", lambda *a: a[0]),
            "dilation_rate must be positive",
        ),
    ],
)
def test_what_cannot_fit_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_second_derivative_with_explicit_padding_says_what_to_do() -> None:
    x = tf.constant(normal(1, 3, 3, 1))
    y = tf.nn.max_pool(x, 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])
    first = tf.gradients(y**2, x)[0]
    with pytest.raises(ValueError, match=r"pad the input with tf\.pad"):
        tf.gradients(first, x)


def test_pool_names_its_result_as_tensorflow_does() -> None:
    assert tf.nn.pool(_X, [2, 2], "AVG", "VALID").name == "avg_pool:0"
    assert tf.nn.pool(_X, [2, 2], "MAX", "VALID", name="p").name == "p:0"
