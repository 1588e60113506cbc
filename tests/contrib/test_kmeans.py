"""k-means beside scikit-learn on real data, on a cluster, and on bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import cluster
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.factorization import KMeans, KMeansClustering
from headrace.harness.cluster import with_cluster
from headrace.ops.core.build import raw

CASES = [("iris", 3), ("wine", 3), ("breast_cancer", 2), ("digits", 10)]


def _lloyd(points: np.ndarray, start: np.ndarray, steps: int, **options: Any) -> tuple[Any, Any]:
    """The centres after some steps, and the sum of distances to them."""
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [None, points.shape[1]])
        graph = KMeans(fed, len(start), start, **options).training_graph()
        _, _, scores, _, init_op, train_op = graph
        loss = tf.reduce_sum(scores[0])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(init_op, {fed: points})
            for _ in range(steps):
                sess.run(train_op, {fed: points})
            return sess.run("clusters:0"), sess.run(loss, {fed: points})


@pytest.mark.parametrize(("data", "count"), CASES)
def test_lloyd_is_that_of_scikit_learn(data: str, count: int) -> None:
    points = real(data)[0]
    start = points[:: len(points) // count][:count]
    centers, loss = _lloyd(points, start, 10)
    theirs = cluster.KMeans(count, init=start, n_init=1, max_iter=10, tol=0).fit(points)
    assert loss == pytest.approx(theirs.inertia_, rel=1e-4)
    np.testing.assert_allclose(centers, theirs.cluster_centers_, atol=2e-3)


@pytest.mark.parametrize(("data", "count"), CASES)
def test_plus_plus_starts_as_well_as_that_of_scikit_learn(data: str, count: int) -> None:
    """The mean inertia over ten seeds, of the first centres alone: within a tenth."""
    points = real(data)[0]
    ours, theirs = [], []
    fed, seed = tf.constant(points), tf.placeholder(tf.int64, [])
    drawn = raw.KmeansPlusPlusInitialization(fed, tf.constant(count, tf.int64), seed, -1)
    _, distances = raw.NearestNeighbors(fed, drawn, tf.constant(1, tf.int64))
    loss = tf.reduce_sum(distances)
    with tf.Session() as sess:
        for number in range(10):
            ours.append(sess.run(loss, {seed: number}))
            found, _ = cluster.kmeans_plusplus(points, count, random_state=number)
            squares = ((points[:, None] - found) ** 2).sum(2)
            theirs.append(squares.min(1).sum())
    assert np.mean(ours) < 1.1 * np.mean(theirs)
    assert len(set(ours)) > 5


def test_batches_come_as_near_as_those_of_scikit_learn() -> None:
    points = real("digits")[0]
    start = points[:10]
    rng = np.random.RandomState(0)
    fed = tf.placeholder(tf.float32, [None, 64])
    graph = KMeans(fed, 10, start, use_mini_batch=True).training_graph()
    loss = tf.reduce_sum(graph[2][0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4], {fed: points})
        for _ in range(100):
            sess.run(graph[5], {fed: points[rng.randint(0, len(points), 256)]})
        ours = sess.run(loss, {fed: points})
    options = {"n_init": 1, "batch_size": 256, "max_iter": 15, "random_state": 0}
    theirs = cluster.MiniBatchKMeans(10, init=start, **options).fit(points)
    squares = ((points[:, None] - theirs.cluster_centers_) ** 2).sum(2).min(1).sum()
    assert ours < 1.05 * squares


def test_shards_on_workers_give_what_whole_data_gives() -> None:
    points = real("iris")[0]
    start = points[[0, 60, 120]]
    wanted, loss = _lloyd(points, start, 5)
    with with_cluster(ps=1, worker=2) as local, tf.Graph().as_default():
        shards = []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                shards.append(tf.constant(points[task::2]))
        with tf.device("/job:ps/task:0"):
            graph = KMeans(shards, 3, start).training_graph()
        total = tf.add_n([tf.reduce_sum(s) for s in graph[2]])
        passes = [op for op in tf.get_default_graph().get_operations() if "Nearest" in op.type]
        assert [op.device for op in passes] == [f"/job:worker/task:{i}" for i in range(2)]
        with tf.Session(local.target("worker", 0)) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(graph[4])
            for _ in range(5):
                sess.run(graph[5])
            np.testing.assert_allclose(sess.run("clusters:0"), wanted, atol=1e-5)
            assert sess.run(total) == pytest.approx(loss, rel=1e-5)


def test_workers_move_the_same_centres_by_batches() -> None:
    points = real("iris")[0]
    with with_cluster(ps=1, worker=2) as local, tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [None, 4])
        with tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            graph = KMeans(fed, 3, points[[0, 60, 120]], use_mini_batch=True).training_graph()
        seen = next(v for v in tf.global_variables() if v.dtype == tf.int64)
        loss = tf.reduce_sum(graph[2][0])
        with (
            tf.Session(local.target("worker", 0)) as one,
            tf.Session(local.target("worker", 1)) as two,
        ):
            one.run(tf.global_variables_initializer())
            one.run(graph[4], {fed: points})
            for _ in range(3):
                one.run(graph[5], {fed: points[::2]})
                two.run(graph[5], {fed: points[1::2]})
            assert one.run(tf.reduce_sum(seen)) == 3 + 3 * len(points)
            assert two.run(loss, {fed: points}) < 1.1 * _lloyd(points, points[[0, 60, 120]], 5)[1]


def test_the_estimator(tmp_path: Any) -> None:
    points = real("iris")[0]

    def whole() -> Any:
        return tf.data.Dataset.from_tensors({"b": points[:, 2:], "a": points[:, :2]}).repeat(30)

    def once() -> Any:
        return whole().take(1)

    model = KMeansClustering(
        3, str(tmp_path), points[[0, 60, 120]], use_mini_batch=False, relative_tolerance=1e-6
    )
    assert model.train(whole) is model
    centers, loss = _lloyd(points, points[[0, 60, 120]], 29)
    np.testing.assert_allclose(model.cluster_centers(), centers, atol=1e-4)
    assert model.get_variable_value("global_step") < 29  # it has stopped when nothing changed
    assert model.score(once) == pytest.approx(loss, rel=1e-5)
    assert model.evaluate(lambda: whole().take(2))["score"] == pytest.approx(2 * loss, rel=1e-5)
    indices = list(model.predict_cluster_index(once))
    distances = np.array(list(model.transform(once)))
    np.testing.assert_array_equal(distances.argmin(1), indices)
    assert distances.min(1).sum() == pytest.approx(loss, rel=1e-4)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"a": tf.placeholder(tf.float32, [None, 2]), "b": tf.placeholder(tf.float32, [None, 2])}
    )
    folder = model.export_saved_model(str(tmp_path / "out"), receiver)
    serve = tf.contrib.predictor.from_saved_model(folder)
    found = serve({"a": points[:, :2], "b": points[:, 2:]})
    np.testing.assert_array_equal(found["output"], indices)


@pytest.mark.parametrize("start", ["random", lambda points, count: points[0][:count]])
def test_first_centres_come_from_several_batches(start: Any) -> None:
    points = np.arange(10, dtype=np.float32).reshape(10, 1)
    fed = tf.placeholder(tf.float32, [None, 1])
    _, indices, _, ready, init_op, train_op = KMeans(fed, 5, start).training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(init_op, {fed: points[:2]})
        assert not sess.run(ready)
        with pytest.raises(tf.errors.InvalidArgumentError, match="2 of 5 centers have been chosen"):
            sess.run(train_op, {fed: points})
        sess.run(init_op, {fed: points[2:]})
        assert sess.run(ready)
        assert len(set(sess.run("clusters:0").ravel())) == 5
        assert len(set(sess.run(indices[0], {fed: points}))) == 5


def test_an_iteration_of_several_batches() -> None:
    """Points are compared with centres that stay for two steps; then with those moved."""
    fed = tf.placeholder(tf.float32, [None, 1])
    options = {"use_mini_batch": True, "mini_batch_steps_per_iteration": 2}
    graph = KMeans(fed, 2, [[0.0], [10.0]], **options).training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4], {fed: [[0.0]]})
        found = []
        for batch in ([[4.0]], [[2.0]], [[1.0]], [[7.0]]):
            sess.run(graph[5], {fed: batch})
            found.append(sess.run("clusters_updated:0").ravel().tolist())
        assert found == [[4, 10], [3, 10], [1, 10], [1, 7]]
        assert sess.run("clusters:0").ravel().tolist() == [3, 10]


def test_an_empty_cluster_stays_where_it_is() -> None:
    points = np.float32([[0.0], [1.0]])
    centers, loss = _lloyd(points, np.float32([[0.0], [1.0], [50.0]]), 3)
    assert centers.ravel().tolist() == [0.0, 1.0, 50.0]
    assert loss == 0


def test_far_from_zero_no_digits_are_lost() -> None:
    points = real("iris")[0]
    start = points[[0, 60, 120]]
    _, near = _lloyd(points, start, 5)
    far = (points + 4096).astype(np.float32)
    _, loss = _lloyd(far, far[[0, 60, 120]], 5)
    assert loss == pytest.approx(near, rel=2e-3)


@pytest.mark.parametrize("batches", [False, True])
def test_points_must_be_numbers(batches: bool) -> None:
    fed = tf.placeholder(tf.float32, [None, 2])
    graph = KMeans(fed, 2, np.zeros([2, 2]), use_mini_batch=batches).training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4], {fed: np.zeros([1, 2])})
        for row in (0, 4):
            for value in (np.nan, np.inf, -np.inf, 1e30):
                points = np.ones([5, 2], np.float32)
                points[row, 1] = value
                message = rf"points\[{row}\] has no distance to the centers: it holds NaN or inf"
                with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                    sess.run(graph[5], {fed: points})
        assert sess.run("clusters:0").tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
@pytest.mark.parametrize("batches", [False, True])
def test_degenerate_points(metric: str, batches: bool) -> None:
    """A column of zeros, equal rows, one row, no rows: centres without points stay."""
    fed = tf.placeholder(tf.float32, [None, 2])
    options = {"distance_metric": metric, "use_mini_batch": batches}
    graph = KMeans(fed, 2, [[1.0, 0.0], [0.0, 1.0]], **options).training_graph()
    loss = tf.reduce_sum(graph[2][0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4], {fed: np.zeros([1, 2])})
        for points in ([[2.0, 0.0]] * 2, [[1.0, 0.0], [4.0, 0.0]], [[3.0, 0.0]]):
            sess.run(graph[5], {fed: points})
            centers = sess.run("clusters:0")
            assert np.isfinite(centers).all()
            np.testing.assert_allclose(centers[1], [0.0, 1.0])
        none = np.zeros([0, 2])
        assert sess.run([graph[5], loss], {fed: none})[1] == 0
        np.testing.assert_array_equal(sess.run("clusters:0"), centers)


def test_what_ops_refuse() -> None:
    def run(op: Any) -> Any:
        with tf.Session() as sess:
            return sess.run(op)

    points = tf.placeholder_with_default(np.zeros([3, 2], np.float32), None)
    one = tf.constant(1, tf.int64)
    refused = tf.errors.InvalidArgumentError
    with pytest.raises(refused, match="5 centers cannot be drawn from 3 points: give at least"):
        run(raw.KmeansPlusPlusInitialization(points, 5, 0, 2))
    with pytest.raises(refused, match="num_to_sample must be at least 1, not 0"):
        run(raw.KmeansPlusPlusInitialization(points, 0, 0, 2))
    bad = tf.constant([[1.0, 2.0], [np.nan, 0.0]])
    with pytest.raises(refused, match=r"points\[1\] is not finite"):
        run(raw.KmeansPlusPlusInitialization(bad, 1, 0, 2))
    with pytest.raises(refused, match="there are no centers: give at least one"):
        run(raw.NearestNeighbors(points, tf.zeros([0, 2]), one))
    with pytest.raises(refused, match="points have 2 dims, but centers 3"):
        run(raw.NearestNeighbors(points, tf.zeros([4, 3]), one))
    with pytest.raises(refused, match="k must be at least 1, not 0"):
        run(raw.NearestNeighbors(points, tf.zeros([4, 2]), 0))
    with pytest.raises(refused, match=r"centers\[1\] has a number that is not finite"):
        run(raw.NearestNeighbors(points, bad, one))
    with pytest.raises(refused, match="distances must be a vector with a state for each step"):
        run(raw.KMC2ChainInitialization(tf.zeros([0]), one))
    with pytest.raises(ValueError, match="num_clusters must be at least 1, not 0"):
        KMeans(np.zeros([3, 2]), 0)
    with pytest.raises(ValueError, match="inputs are an empty list"):
        KMeans([], 2)


def test_an_input_that_ends_before_there_are_centers_says_so() -> None:
    def nothing() -> Any:
        return tf.data.Dataset.from_tensors(np.zeros([0, 2], np.float32)).repeat(3)

    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="The input has ended before all first values, such as one center for each cluster",
    ):
        KMeansClustering(2).train(nothing)


def test_kmc2_finds_far_points() -> None:
    points = np.repeat(np.float32([[0, 0], [100, 0], [0, 100]]), 50, 0)
    fed = tf.constant(points)
    graph = KMeans(fed, 3, "kmc2").training_graph()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(graph[4])
        assert len({tuple(c) for c in sess.run("clusters:0").tolist()}) == 3
