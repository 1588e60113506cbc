"""Gradients of gathers stay sparse; indices out of range and shapes that do not fit fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.array.gather import _NUMPY_UPDATES, _scattered_at

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_gradient_of_rows_is_sparse(session: Any) -> None:
    x, ids = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [None, 2])
    gradient = tf.gradients(tf.gather(x, ids), x)[0]
    assert isinstance(gradient, tf.IndexedSlices)
    assert gradient.shape.as_list() == [4, 3]
    feed = {x: X, ids: [[3, 0], [3, 1]]}
    values, indices, shape = session.run(gradient, feed)
    np.testing.assert_array_equal(indices, [3, 0, 3, 1])
    np.testing.assert_array_equal(values, np.ones([4, 3]))
    np.testing.assert_array_equal(shape, [4, 3])
    dense = session.run(tf.convert_to_tensor(gradient), feed)
    np.testing.assert_array_equal(dense[:, 0], [1, 1, 0, 2])


def test_gradient_along_another_axis_is_dense(session: Any) -> None:
    x = tf.constant(X)
    gradient = tf.gradients(tf.gather(x, [2, 2, 0], axis=1), x)[0]
    np.testing.assert_array_equal(session.run(gradient), [[1, 0, 2]] * 4)


@pytest.mark.parametrize("bad", [4, -1])
def test_index_out_of_range(bad: int, session: Any) -> None:
    ids = tf.placeholder(tf.int32, [2])
    rows = tf.gather(tf.constant(X), ids)
    for _ in range(3):  # interpreted, then compiled
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(rows, {ids: [1, bad]})
        assert f"indices[1] = {bad} is not in [0, 4)" in str(caught.value)


def test_gather_nd_out_of_range(session: Any) -> None:
    ids = tf.placeholder(tf.int32, [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= \[0,3\] does not index"):
        session.run(tf.gather_nd(tf.constant(X), ids), {ids: [[0, 3]]})


def test_strings(session: Any) -> None:
    got = session.run(tf.gather(["x", "y", "z"], tf.constant([2, 0])))
    assert got.tolist() == [b"z", b"x"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: str, session: Any) -> None:
    rows, values = np.float32([1, 3, 3, 9]), np.float32([3, 0, 10])
    got = session.run(tf.searchsorted(rows, values, side=side))
    np.testing.assert_array_equal(got, np.searchsorted(rows, values, side))


def test_searchsorted_with_another_side() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="side must be"):
        tf.searchsorted([1.0], [1.0], side="middle")


def test_scatter_with_updates_that_do_not_fit() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Dimensions of updates"):
        tf.scatter_nd([[1], [2]], tf.zeros([3, 3]), [4, 3])


def test_text_that_is_known_only_when_run(session: Any) -> None:
    p = tf.placeholder(tf.string, [None])
    want = {
        tf.gather(p, [2, 0]): [b"c", b"a"],
        tf.concat([p, ["x"]], 0): [b"a", b"b", b"c", b"x"],
        p[1:]: [b"b", b"c"],
        p[1]: b"b",
        tf.stack([p, p])[1, :2]: [b"a", b"b"],
        tf.boolean_mask(p, [True, False, True]): [b"a", b"c"],
        tf.tile(tf.reshape(p, [1, 3]), [2, 1])[1]: [b"a", b"b", b"c"],
        tf.pad(p, [[1, 0]]): [b"", b"a", b"b", b"c"],
        tf.zeros_like(p): [b"", b"", b""],
        tf.shape(p): [3],
        tf.split(p, 3)[1]: [b"b"],
        tf.unique(tf.concat([p, p], 0)).y: [b"a", b"b", b"c"],
        tf.where([True, False, True], p, tf.reverse(p, [0])): [b"a", b"b", b"c"],
        tf.scatter_nd([[1]], ["q"], [2]): [b"", b"q"],
    }
    for _ in range(3):
        got = session.run(list(want), {p: ["a", "b", "c"]})
        assert [np.asarray(g, object).tolist() for g in got] == list(want.values())


@pytest.mark.parametrize("mode", ["never", "always"])
def test_the_index_of_a_wrong_value_is_shown(mode: str, monkeypatch: Any, session: Any) -> None:
    monkeypatch.setenv("HEADRACE_INTERPRET", mode)
    matrix = tf.constant([[0, 7], [1, 9]])
    deep = tf.constant([[[0], [9]]])
    for result, text in [
        (tf.gather([[1.0], [2.0], [3.0]], matrix), "indices[0,1] = 7 is not in [0, 3)"),
        (tf.gather([1.0], tf.constant(2)), "indices = 2 is not in [0, 1)"),
        (tf.gather_nd([1.0, 2.0], deep), "indices[0,1] = [9] does not index into param shape [2]"),
        (tf.scatter_nd(deep, [[1.0, 2.0]], [4]), "indices[0,1] = [9] does not index into shape"),
        (tf.unsorted_segment_sum([[1.0, 2.0]], [[0, 5]], 3), "segment_ids[0,1] = 5 is out of"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(result)
        assert text in str(caught.value)


def test_the_index_of_a_wrong_fed_value_is_shown(session: Any) -> None:
    rows = tf.placeholder(tf.int32, [2, 2])
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = 4 is not in"):
            session.run(tf.gather([1.0, 2.0], rows), {rows: [[0, 1], [4, 0]]})


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float64"])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("how", ["add", "sub", "max", "min"])
def test_rows_are_scattered_as_element_by_element(dtype, distinct, how):
    """Many rows are combined before they change the result."""
    rng = np.random.RandomState(3)
    places = rng.permutation(64)[:48] if distinct else rng.randint(0, 64, 48)
    base, rows = (rng.randint(0, 9, (n, 32)).astype(dtype) for n in (64, 48))
    expected = base.copy()
    _NUMPY_UPDATES[how].at(expected, places, rows)
    found = _scattered_at(np, base, (places,), rows, how)
    np.testing.assert_array_equal(found, expected)
