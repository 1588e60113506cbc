"""Gaussian mixtures beside scikit-learn on real data, on a cluster, and on bad input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.factorization import GMM, GmmAlgorithm, gmm
from headrace.harness.cluster import with_cluster

# scikit-learn warns where the steps that it was given end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _theirs(points: np.ndarray, means: np.ndarray, kind: str, steps: int) -> Any:
    """scikit-learn's, from the same start: all covariances are that of the data."""
    spread = np.cov(points.T) + 1e-3 * np.eye(points.shape[1])
    one = np.linalg.inv(spread) if kind == "full" else 1 / np.diag(spread)
    start = {
        "means_init": means,
        "weights_init": np.full(len(means), 1 / len(means)),
        "precisions_init": np.stack([one] * len(means)),
    }
    return GaussianMixture(
        len(means), covariance_type=kind, reg_covar=1e-3, max_iter=steps, tol=0, **start
    ).fit(points.astype(np.float64))


@pytest.mark.parametrize(
    ("data", "count", "kind", "dims"),
    [
        ("iris", 3, "full", 4),
        ("iris", 3, "diag", 4),
        pytest.param("wine", 3, "full", 13, marks=pytest.mark.slow),
        pytest.param("wine", 2, "diag", 13, marks=pytest.mark.slow),
    ],
)
def test_em_is_that_of_scikit_learn(data: str, count: int, kind: str, dims: int) -> None:
    points = real(data)[0]
    means = points[:: len(points) // count][:count]
    fed = tf.placeholder(tf.float32, [None, dims])
    likelihood, scores, assigned, train, init, ready = gmm(fed, means, count, 0, kind)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(init, {fed: points})
        assert sess.run(ready)
        losses = [sess.run([likelihood, train], {fed: points})[0] for _ in range(15)]
        found, each, owner = sess.run([likelihood, scores, assigned[0][0]], {fed: points})
        weights, covariances = sess.run(["alphas:0", "clusters_covs:0"])
    assert all(b >= a - 0.01 for a, b in itertools.pairwise(losses))  # it never falls
    theirs = _theirs(points, means, kind, 15)
    assert found == pytest.approx(theirs.score(points) * len(points), rel=1e-3)
    np.testing.assert_allclose(each[:, 0], theirs.score_samples(points), atol=0.02)
    np.testing.assert_allclose(weights, theirs.weights_, atol=2e-3)
    np.testing.assert_allclose(covariances, theirs.covariances_, atol=5e-3)
    assert (owner == theirs.predict(points)).mean() > 0.99


def test_shards_on_workers_give_what_whole_data_gives() -> None:
    points = real("iris")[0]

    def train(target: str, shards: list[Any]) -> Any:
        model = GmmAlgorithm(shards, 3, points[[0, 60, 120]])
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(model.init_ops())
            for _ in range(4):
                sess.run(model.training_ops())
            return sess.run([model.clusters(), model.log_likelihood_op()])

    with tf.Graph().as_default():
        means, likelihood = train("", [points])
    with with_cluster(ps=1, worker=2) as local, tf.Graph().as_default():
        shards = []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                shards.append(tf.constant(points[task::2]))
        with tf.device("/job:ps/task:0"):
            found = train(local.target("worker", 0), shards)
    np.testing.assert_allclose(found[0], means, atol=1e-3)
    assert found[1] == pytest.approx(likelihood, rel=1e-4)


def test_the_estimator(tmp_path: Any) -> None:
    points = real("iris")[0]

    def whole() -> Any:
        return tf.constant(points), None

    model = GMM(3, str(tmp_path), initial_clusters=points[[0, 60, 120]], covariance_type="diag")
    model.fit(input_fn=whole, steps=10)
    assert model.weights().sum() == pytest.approx(1, rel=1e-5)
    assert model.clusters().shape == (3, 4)
    assert model.covariances().shape == (3, 4)
    likelihood = model.score(input_fn=whole, steps=1)
    assert likelihood == pytest.approx(
        _theirs(points, points[[0, 60, 120]], "diag", 10).score(points) * len(points), rel=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_degenerate_points(kind: str) -> None:
    """A column of zeros, columns that follow from others, equal points, one point, none."""
    fed = tf.placeholder(tf.float32, [None, 3])
    model = GmmAlgorithm([fed], 2, [[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]], "wmc", kind)
    likelihood = model.log_likelihood_op()
    line = np.linspace(0, 1, 6)[:, None] * [1.0, 2.0, 0.0]
    for points in (line, np.ones([6, 3]), np.ones([1, 3])):
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(model.init_ops(), {fed: points})
            for _ in range(3):
                sess.run(model.training_ops(), {fed: points})
            assert np.isfinite(sess.run(likelihood, {fed: points}))
            before = sess.run(["alphas:0", "clusters:0", "clusters_covs:0"])
            assert all(np.isfinite(v).all() for v in before)
            sess.run(model.training_ops(), {fed: np.zeros([0, 3])})
            after = sess.run(["alphas:0", "clusters:0", "clusters_covs:0"])
            for a, b in zip(before, after, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_mixture_that_begins_with_points_that_are_no_numbers_says_so() -> None:
    points = np.ones([3, 2], np.float32)
    points[2, 0] = np.nan
    mixture = GMM(1)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="the covariance of cluster 0 holds NaN or infinity, as that of points that hold",
    ):
        mixture.fit(input_fn=lambda: (tf.constant(points), None), steps=1)


def test_points_must_be_numbers_and_covariances_invertible() -> None:
    fed = tf.placeholder(tf.float32, [None, 2])
    model = GmmAlgorithm([fed], 2, [[0.0, 0.0], [1.0, 1.0]])
    refused = tf.errors.InvalidArgumentError
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(model.init_ops(), {fed: np.eye(2)})
        for value in (np.nan, np.inf, -np.inf, 1e30):
            points = np.ones([3, 2])
            points[2, 0] = value
            with pytest.raises(refused, match=r"points\[2\] has no probability: it holds NaN"):
                sess.run(model.training_ops(), {fed: points})
        sess.run(model.covariances().assign(np.float32([np.eye(2), [[1, 1], [1, 1]]])))
        with pytest.raises(
            refused, match="covariance of cluster 1 is not positive definite: scale"
        ):
            sess.run(model.training_ops(), {fed: np.eye(2)})


def test_random_means_are_distinct_points_and_need_enough() -> None:
    fed = tf.placeholder(tf.float32, [None, 1])
    model = GmmAlgorithm([fed], 4)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        message = "a mixture needs as many points as clusters to begin with"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            sess.run(model.init_ops(), {fed: [[1.0], [2.0], [3.0]]})
        sess.run(model.init_ops(), {fed: [[1.0], [2.0], [3.0], [4.0]]})
        assert sorted(sess.run(model.clusters()).ravel()) == [1, 2, 3, 4]


def test_only_what_params_names_is_trained() -> None:
    model = GmmAlgorithm([tf.constant([[0.0], [1.0], [8.0]])], 2, [[0.0], [5.0]], params="m")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(model.init_ops())
        before = sess.run([model.alphas(), model.covariances(), model.clusters()])
        sess.run(model.training_ops())
        after = sess.run([model.alphas(), model.covariances(), model.clusters()])
    assert [np.array_equal(a, b) for a, b in zip(before, after, strict=True)] == [True, True, False]


def test_what_is_refused() -> None:
    points = np.zeros([4, 2], np.float32)
    with pytest.raises(ValueError, match="covariance_type must be 'full' or 'diag', not 'tied'"):
        gmm(points, "random", 2, 0, "tied")
    with pytest.raises(ValueError, match="initial_clusters must be 'random' or means, not 'grid'"):
        gmm(points, "grid", 2, 0)
    with pytest.raises(ValueError, match="params may have the letters w, m and c, not 'x'"):
        gmm(points, "random", 2, 0, params="x")
    with pytest.raises(ValueError, match="num_classes must be at least 1, not 0"):
        gmm(points, "random", 0, 0)
    with pytest.raises(ValueError, match="data is an empty list"):
        GmmAlgorithm([], 2)
