"""``tensor[...]``, dynamic positions, assignment to slices, and what a wrong slice is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf

X = np.arange(210, dtype=np.float32).reshape(5, 6, 7)


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1],
        np.s_[-1, :, -2],
        np.s_[::-1, 1:4, ::3],
        np.s_[..., 1:3],
        np.s_[1, ..., None, 2:5:2],
        np.s_[None, 2],
        np.s_[3:1],
        np.s_[2:100, -100:3],
        np.s_[3:-100:-1],
        np.s_[np.int64(2), np.int32(1) :],
    ],
    ids=str,
)
def test_indexing_is_that_of_numpy(key: Any, session: Any) -> None:
    part = tf.constant(X)[key]
    assert part.shape.as_list() == list(X[key].shape)
    np.testing.assert_array_equal(session.run(part), X[key])


def test_tensors_as_indices(session: Any) -> None:
    x, i = tf.constant(X), tf.placeholder(tf.int32, [])
    part = x[i, 2:5, tf.newaxis, 0]
    assert part.shape.as_list() == [3, 1]
    for value in (-1, 3, 0):
        np.testing.assert_array_equal(session.run(part, {i: value}), X[value, 2:5, None, 0])
    for value in (2, 4):
        np.testing.assert_array_equal(session.run(x[i:, :i], {i: value}), X[value:, :value])


def test_int64_index_beside_int32(session: Any) -> None:
    i, j = tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
    np.testing.assert_array_equal(session.run(tf.constant(X)[i, j], {i: 2, j: 3}), X[2, 3])


def test_gradient_through_a_moving_position(session: Any) -> None:
    x, i = tf.placeholder(tf.float32, [5, 6, 7]), tf.placeholder(tf.int32, [])
    gradient = tf.gradients(x[i] ** 2, x)[0]
    want = np.zeros_like(X)
    want[3] = 2 * X[3]
    for _ in range(3):  # interpreted first, then compiled
        np.testing.assert_array_equal(session.run(gradient, {x: X, i: 3}), want)


def test_slice_with_begin_from_a_feed(session: Any) -> None:
    x, begin = tf.placeholder(tf.float32, [5, 6, 7]), tf.placeholder(tf.int32, [3])
    part = tf.slice(x, begin, [2, -1, 3])
    gradient = tf.gradients(tf.slice(x, begin, [2, 6, 3]), x)[0]
    want = np.zeros_like(X)
    want[1:3, :, 2:5] = 1
    for _ in range(3):
        feed = {x: X, begin: [1, 0, 2]}
        np.testing.assert_array_equal(session.run(part, feed), X[1:3, :, 2:5])
        np.testing.assert_array_equal(session.run(gradient, feed), want)


def test_boolean_mask_as_index(session: Any) -> None:
    mask = X[:, 0, 0] > 50
    np.testing.assert_array_equal(session.run(tf.constant(X)[tf.constant(mask)]), X[mask])


def test_assignment_to_a_slice_of_a_variable(session: Any) -> None:
    v = tf.Variable(np.zeros([3, 4], np.float32))
    session.run(tf.global_variables_initializer())
    want = np.zeros([3, 4], np.float32)
    want[1, ::2] = [5, 6]
    np.testing.assert_array_equal(session.run(v[1, ::2].assign([5.0, 6.0])), want)
    np.testing.assert_array_equal(session.run(v), want)


def test_name_of_a_slice(session: Any) -> None:
    part = tf.constant(X)[1:2]
    assert part.op.name == "strided_slice"
    assert [t.op.name for t in part.op.inputs[1:]] == [
        "strided_slice/stack",
        "strided_slice/stack_1",
        "strided_slice/stack_2",
    ]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (7, "slice index 7 of dimension 0 out of bounds."),
        ((0, 0, 0, 0), "Index out of range using input dim 3; input has only 3 dims."),
        ((Ellipsis, Ellipsis), "Multiple ellipses in slice spec not allowed."),
        (slice(None, None, 0), "strides[0] must be non-zero"),
    ],
)
def test_slices_that_do_not_fit(key: Any, message: str, session: Any) -> None:
    with pytest.raises(ValueError, match="(?s)" + message.replace("[", r"\[")):
        tf.constant(X)[key]


@pytest.mark.parametrize("key", [1.5, "a", [[1, 2]]])
def test_indices_of_a_wrong_type(key: Any, session: Any) -> None:
    with pytest.raises(TypeError, match="Only integers, slices"):
        tf.constant(X)[key]


def test_position_out_of_bounds_when_run(session: Any) -> None:
    i = tf.placeholder(tf.int32, [])
    part = tf.constant(X)[i]
    for _ in range(3):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="slice index 5 of dimension 0 out of bounds"
        ):
            session.run(part, {i: 5})


def test_slice_that_does_not_fit() -> None:
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=r"Expected size\[1\] in \[0, 2\]"),
    ):
        tf.slice(tf.constant(X), [0, 4, 0], [1, 3, 1])
