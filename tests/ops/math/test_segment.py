"""Segment reductions: known and fed ids, errors, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import constant, placeholder
from headrace.ops.math import segment_api

DATA = np.array([[1.0, 8.0], [3.0, -2.0], [3.0, 2.0], [5.0, 4.0], [-1.0, 4.0]])
IDS = np.array([0, 0, 2, 2, 2], np.int32)
KINDS = {
    "sum": [[4, 6], [0, 0], [7, 10]],
    "mean": [[2, 3], [0, 0], [7 / 3, 10 / 3]],
    "prod": [[3, -16], [1, 1], [-15, 32]],
    "max": [[3, 8], [0, 0], [5, 4]],
    "min": [[1, -2], [0, 0], [-1, 2]],
}


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=["always", "never"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEADRACE_INTERPRET", request.param)
    return str(request.param)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("kind", KINDS)
def test_sorted(kind: str, dtype: Any, mode: str) -> None:
    """The same from known ids (compiled) and from fed ones (on the host)."""
    want = np.array(KINDS[kind])
    if dtype is np.int32:
        want = np.trunc(want)
    function = getattr(segment_api, f"segment_{kind}")
    data, ids = placeholder(dtype, [None, 2]), placeholder(tf.int32, [None])
    known, fed = function(data, IDS), function(data, ids)
    assert known.shape.as_list() == [3, 2]
    assert fed.shape.as_list() == [None, 2]
    feeds = {data: DATA.astype(dtype), ids: IDS}
    for result in tf.Session().run([known, fed], feeds):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, want, rtol=1e-6)


def test_number_of_segments_follows_fed_ids() -> None:
    ids = placeholder(tf.int64, [None])
    result = segment_api.segment_sum(constant([1.0, 2.0, 3.0]), ids)
    session = tf.Session()
    assert session.run(result, {ids: [0, 0, 1]}).tolist() == [3, 3]
    assert session.run(result, {ids: [0, 1, 4]}).tolist() == [1, 2, 0, 0, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids are not increasing"):
        session.run(result, {ids: [0, 2, 1]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids must be >= 0"):
        session.run(result, {ids: [-1, 0, 1]})


def test_maximum_of_infinities() -> None:
    result = segment_api.segment_max(constant([-np.inf, np.nan, 1.0]), [0, 1, 1])
    np.testing.assert_array_equal(tf.Session().run(result), np.float32([-np.inf, np.nan]))


def test_no_rows(mode: str) -> None:
    data, ids = np.zeros((0, 2), np.float32), np.zeros(0, np.int32)
    results = tf.Session().run(
        [
            segment_api.segment_sum(data, ids),
            segment_api.segment_max(data, ids),
            segment_api.unsorted_segment_sum(data, ids, 2),
        ]
    )
    assert [r.shape for r in results] == [(0, 2), (0, 2), (2, 2)]


def test_ids_out_of_range(mode: str) -> None:
    ids = placeholder(tf.int32, [3])
    unsorted = segment_api.unsorted_segment_sum(constant([1.0, 2.0, 3.0]), ids, 3)
    sparse = segment_api.sparse_segment_sum(constant([1.0, 2.0]), [0, 1, 1], ids, num_segments=3)
    session = tf.Session()
    text = r"segment_ids\[1\] = 3 is out of range \[0, 3\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(unsorted, {ids: [0, 3, 1]})
    assert session.run(unsorted, {ids: [0, -3, 0]}).tolist() == [4, 0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\] = 3 is not in \[0, 3\)"):
        session.run(sparse, {ids: [0, 1, 3]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids are not increasing"):
        session.run(sparse, {ids: [0, 2, 1]})


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="same size as dimension 0"):
        segment_api.segment_sum(np.zeros((3, 2)), [0, 1])
    with pytest.raises(ValueError, match="does not start with segment_ids"):
        segment_api.unsorted_segment_sum(np.zeros((3, 2)), [0, 1], 2)
    with pytest.raises(ValueError, match="should have same size"):
        segment_api.sparse_segment_sum(np.zeros((3, 2)), [0, 1], [0])


def test_unsorted_mean_and_root() -> None:
    ids = [[0, 2], [2, -1]]
    data = np.array([[[1.0], [2.0]], [[4.0], [8.0]]])
    mean, root = tf.Session().run(
        [
            segment_api.unsorted_segment_mean(data, ids, 3),
            segment_api.unsorted_segment_sqrt_n(data, ids, 3),
        ]
    )
    np.testing.assert_allclose(mean, [[1], [0], [3]])
    np.testing.assert_allclose(root, [[1], [0], [6 / np.sqrt(2)]])


@pytest.mark.parametrize("kind", ["sum", "mean", "sqrt_n"])
def test_sparse_segments_of_fed_ids(kind: str, mode: str) -> None:
    ids = placeholder(tf.int32, [None])
    function = getattr(segment_api, f"sparse_segment_{kind}")
    fed, known = function(DATA, [4, 0, 1], ids), function(DATA, [4, 0, 1], [0, 0, 2])
    assert known.shape.as_list() == [3, 2]
    scale = {"sum": 1.0, "mean": 2.0, "sqrt_n": np.sqrt(2)}[kind]
    for result in tf.Session().run([fed, known], {ids: [0, 0, 2]}):
        np.testing.assert_allclose(result, [[0, 12 / scale], [0, 0], [3, -2]])


def _check_gradient(function: Any, values: np.ndarray) -> None:
    """Against the central difference in one direction."""
    rng = np.random.default_rng(0)
    fed = placeholder(tf.float64, values.shape)
    result = function(fed)
    session = tf.Session()
    weights = rng.standard_normal(session.run(result, {fed: values}).shape)
    (grad,) = tf.gradients([result], [fed], [constant(weights)])
    direction = rng.standard_normal(values.shape)
    up, down = (session.run(result, {fed: values + s * direction}) for s in (1e-6, -1e-6))
    got = np.sum(session.run(tf.convert_to_tensor(grad), {fed: values}) * direction)
    np.testing.assert_allclose(got, np.sum(weights * (up - down)) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_sorted(kind: str) -> None:
    values = np.random.default_rng(1).standard_normal((5, 2))
    _check_gradient(lambda x: getattr(segment_api, f"segment_{kind}")(x, IDS), values)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "mean", "sqrt_n"])
@pytest.mark.parametrize("ids", [[3, 0, 3, -1, 0], [[0, 1], [1, -1], [2, 2], [0, 0], [1, 3]]])
def test_gradients_of_unsorted(kind: str, ids: Any) -> None:
    values = np.random.default_rng(1).standard_normal((5, 2))
    function = getattr(segment_api, f"unsorted_segment_{kind}")
    _check_gradient(lambda x: function(x, ids, 4), values)


@pytest.mark.parametrize("kind", ["sum", "mean", "sqrt_n"])
def test_gradients_of_sparse(kind: str) -> None:
    function = getattr(segment_api, f"sparse_segment_{kind}")
    _check_gradient(lambda x: function(x, [4, 0, 1, 4], [0, 0, 0, 2]), DATA)


def test_gradients_at_zeros_and_ties() -> None:
    x = constant([0.0, 2.0, 3.0, 0.0, 0.0, 5.0])
    ids = [0, 0, 0, 1, 1, 2]
    product = tf.gradients(segment_api.segment_prod(x, ids), x)[0]
    largest = tf.gradients(segment_api.unsorted_segment_max(x * 0.0, ids, 3), x)[0]
    smallest = tf.gradients(segment_api.segment_min(x, ids), x)[0]
    got = tf.Session().run([product, smallest])
    assert got[0].tolist() == [6, 0, 0, 0, 0, 1]
    assert got[1].tolist() == [1, 0, 0, 0.5, 0.5, 1]
    assert largest is not None
