"""k-means as a graph: what it finds, how batches move centres, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.factorization import KMeans


def _blobs() -> np.ndarray:
    rng = np.random.RandomState(0)
    middles = np.array([[0.0, 9.0], [9.0, 0.0], [-9.0, -9.0]])
    return (np.repeat(middles, 20, 0) + rng.randn(60, 2)).astype(np.float32)


def _train(steps: int, **options: Any) -> tuple[Any, list[float], np.ndarray]:
    """Numbers of the nearest centres, mean distances, and the centres."""
    points = tf.placeholder(tf.float32, [None, 2])
    graph = KMeans(points, 3, **options).training_graph()
    all_scores, index, scores, initialized, init_op, train_op = graph
    loss = tf.reduce_mean(scores)
    feed = {points: _blobs()}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer(), feed)
        assert not sess.run(initialized)
        sess.run(init_op, feed)
        assert sess.run(initialized)
        assert all_scores[0].shape.as_list() == [None, 3]
        losses = [sess.run([train_op, loss], feed)[1] for _ in range(steps)]
        centers = sess.run("clusters:0")
        sess.run(init_op, feed)
        np.testing.assert_array_equal(sess.run("clusters:0"), centers)  # they stay
        return sess.run(index[0], feed), losses, centers


@pytest.mark.parametrize(
    ("metric", "start", "batches"),
    [
        ("squared_euclidean", "kmeans_plus_plus", False),
        ("squared_euclidean", _blobs()[[0, 20, 40]], True),
        ("cosine", _blobs()[[0, 20, 40]], False),
        ("cosine", "kmeans_plus_plus", True),
    ],
)
def test_finds_the_groups(metric: str, start: Any, batches: bool) -> None:
    index, losses, centers = _train(
        8, initial_clusters=start, distance_metric=metric, use_mini_batch=batches
    )
    groups = index.reshape(3, 20)
    assert (groups == groups[:, :1]).all()
    assert len(set(groups[:, 0])) == 3
    assert losses[-1] <= losses[0]
    assert losses[-1] < (3 if metric == "squared_euclidean" else 0.05)
    if metric == "squared_euclidean":
        means = _blobs().reshape(3, 20, 2).mean(1)
        atol = 0.02 if batches else 1e-4  # the first centre counts as a point
        np.testing.assert_allclose(centers[groups[:, 0]], means, rtol=0, atol=atol)


def test_random_centres_are_points_of_the_data() -> None:
    _, _, centers = _train(0, random_seed=3)
    assert {tuple(c) for c in centers.tolist()} <= {tuple(p) for p in _blobs().tolist()}


def test_a_batch_moves_a_centre_by_its_share() -> None:
    point = tf.placeholder(tf.float32, [1, 1])
    model = KMeans([point], 1, initial_clusters=[[0.0]], use_mini_batch=True)
    *_, init_op, train_op = model.training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(init_op, {point: [[0.0]]})
        for value in (4.0, 8.0, 6.0):
            sess.run(train_op, {point: [[value]]})
        assert sess.run("clusters:0") == pytest.approx(4.5)  # the first centre counts as a point


def test_what_is_refused() -> None:
    points = np.zeros([4, 2], np.float32)
    with pytest.raises(ValueError, match="Unsupported distance metric"):
        KMeans(points, 2, distance_metric="l1")
    with pytest.raises(ValueError, match="Unsupported initialization algorithm 'grid'"):
        KMeans(points, 2, initial_clusters="grid")
    with pytest.raises(ValueError, match="steps_per_iteration must be at least 1, not 0"):
        KMeans(points, 2, use_mini_batch=True, mini_batch_steps_per_iteration=0)
