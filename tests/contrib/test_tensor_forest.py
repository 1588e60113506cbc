"""Random forests of tf.contrib.tensor_forest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.tensor_forest import ForestHParams, RandomForestGraphs
from headrace.examples.tutorials.mnist import input_data
from headrace.harness.cluster import with_cluster
from headrace.ops.core.build import raw
from headrace.ops.state.resources import initialize_resources, shared_resources

MNIST = Path(__file__).resolve().parents[1] / "data" / "mnist5k"


def params(**kwargs):
    given = {"num_classes": 2, "num_features": 2, "num_trees": 3, "base_random_seed": 7}
    return ForestHParams(**{**given, **kwargs}).fill()


def trained(hparams, data, labels, steps=20):
    """(size of the trees, prediction, variance, importances) after some steps."""
    forest = RandomForestGraphs(hparams)
    train = forest.training_graph(data, labels)
    mean, _, variance = forest.inference_graph(data)
    fetches = (forest.average_size(), mean, variance, forest.feature_importances())
    with tf.Session() as sess:
        for _ in range(steps):
            sess.run(train)
        return sess.run(fetches)


def test_digits_are_learnt():
    # In the style of the program of the era that has this model.
    mnist = input_data.read_data_sets(str(MNIST), one_hot=False, validation_size=0, seed=1)
    x = tf.placeholder(tf.float32, shape=[None, 784])
    y = tf.placeholder(tf.int32, shape=[None])
    hparams = ForestHParams(
        num_classes=10, num_features=784, num_trees=10, max_nodes=1000, base_random_seed=1
    ).fill()
    graph = RandomForestGraphs(hparams)
    train_op = graph.training_graph(x, y)
    loss_op = graph.training_loss(x, y)
    infer_op, _, _ = graph.inference_graph(x)
    correct = tf.equal(tf.argmax(infer_op, 1), tf.cast(y, tf.int64))
    accuracy_op = tf.reduce_mean(tf.cast(correct, tf.float32))
    init = tf.group(tf.global_variables_initializer(), initialize_resources(shared_resources()))
    with tf.Session() as sess:
        sess.run(init)
        assert sess.run(loss_op, feed_dict={x: mnist.test.images, y: mnist.test.labels}) == -1
        for _ in range(60):
            images, labels = mnist.train.next_batch(1024)
            sess.run([train_op, loss_op], feed_dict={x: images, y: labels})
        test = {x: mnist.test.images, y: mnist.test.labels}
        loss, accuracy = sess.run([loss_op, accuracy_op], feed_dict=test)
    assert accuracy > 0.85
    assert loss < -50


def test_trees_split_where_the_classes_part():
    rng = np.random.default_rng(0)
    data = rng.random((200, 2)).astype(np.float32)
    labels = (data[:, 1] > 0.5).astype(np.int32)
    size, mean, variance, importances = trained(params(split_after_samples=100), data, labels)
    assert size > 3
    assert ((mean[:, 1] > 0.5) == labels).mean() > 0.97
    assert importances[1] > importances[0]
    np.testing.assert_allclose(mean.sum(1), 1, rtol=1e-6)
    assert variance.shape == (200, 2)
    assert (variance >= 0).all()


def test_regression():
    rng = np.random.default_rng(1)
    data = rng.random((300, 1)).astype(np.float32)
    target = np.concatenate([data**2, 1 - data], axis=1)
    hparams = params(num_features=1, regression=True, split_after_samples=60, num_trees=8)
    _, mean, _, _ = trained(hparams, data, target)
    assert np.abs(mean - target).mean() < 0.05


def test_the_same_seed_gives_the_same_forest():
    rng = np.random.default_rng(2)
    data = rng.random((150, 2)).astype(np.float32)
    labels = (data.sum(1) > 1).astype(np.int32)
    kwargs = {"split_after_samples": 50, "bagging_fraction": 0.7}
    first, again = (trained(params(**kwargs), data, labels, 5)[1] for _ in range(2))
    other = trained(params(**kwargs, base_random_seed=8), data, labels, 5)[1]
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_no_tree_outgrows_its_bound():
    data = np.arange(400, dtype=np.float32).reshape(200, 2)
    labels = np.arange(200) % 2
    hparams = params(max_nodes=8, split_after_samples=10)
    assert trained(hparams, data, labels, 30)[0] == 7


def test_pure_leaves_stay():
    data = np.arange(40, dtype=np.float32).reshape(20, 2)
    hparams = params(split_after_samples=5)
    size, mean, _, _ = trained(hparams, data, np.ones(20, np.int32), 4)
    assert size == 1
    np.testing.assert_array_equal(mean, [[0, 1]] * 20)


def test_features_of_a_dict_stand_side_by_side():
    forest = RandomForestGraphs(params())
    data = {"b": tf.zeros([5]), "a": tf.ones([5, 1], tf.int32)}
    mean, paths, _ = forest.inference_graph(data)
    assert mean.shape.as_list() == [5, 2]
    assert paths.dtype == tf.string
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(mean), np.full((5, 2), 0.5))  # not trained


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.zeros((4, 3)), np.zeros(4), r"\[batch, 2\] \(num_features\), not \[4, 3\]"),
        (np.zeros((4, 2)), np.zeros(3), r"4 examples need labels \[4\], not \[3\]"),
        (np.zeros((2, 2)), np.array([0, 2]), r"labels\[1\] = 2 is not in \[0, 2\)"),
    ],
)
def test_examples_that_do_not_fit(data, labels, message):
    train = RandomForestGraphs(params()).training_graph(data, labels)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(train)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "4 examples need as many weights, not 2"),
        ([1.0, 1.0, 1.0, -1.0], "weights must be numbers that are not below 0"),
        ([1.0, 1.0, 1.0, np.nan], "weights must be numbers that are not below 0"),
    ],
)
def test_weights_that_do_not_fit(weights, message):
    data, labels = np.zeros((4, 2)), np.zeros(4)
    train = RandomForestGraphs(params()).training_graph(data, labels, input_weights=weights)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(train)


def test_examples_without_weight_do_not_count():
    data = np.arange(40, dtype=np.float32).reshape(20, 2)
    labels = (np.arange(20) > 9).astype(np.int32)
    weights = (np.arange(20) < 10).astype(np.float32)
    forest = RandomForestGraphs(params(split_after_samples=5))
    train = forest.training_graph(data, labels, input_weights=weights)
    mean, _, _ = forest.inference_graph(data)
    with tf.Session() as sess:
        sess.run(train)
        sess.run(train)
        np.testing.assert_array_equal(sess.run(mean), [[1, 0]] * 20)


def saved_and_restored(tmp_path, hparams, data, labels):
    """(prediction of four steps, of two steps that are saved, of two more after a restore)."""
    found = []
    for steps in (4, 2):
        with tf.Graph().as_default(), tf.Session() as sess:
            forest = RandomForestGraphs(hparams)
            train, mean = forest.training_graph(data, labels), forest.inference_graph(data)[0]
            for _ in range(steps):
                sess.run(train)
            path = tf.train.Saver().save(sess, str(tmp_path / "forest"))
            found.append(sess.run(mean))
    with tf.Graph().as_default(), tf.Session() as sess:
        forest = RandomForestGraphs(hparams)
        train, mean = forest.training_graph(data, labels), forest.inference_graph(data)[0]
        tf.train.Saver().restore(sess, path)
        np.testing.assert_array_equal(sess.run(mean), found[1])
        importances = sess.run(forest.feature_importances())
        np.testing.assert_allclose(importances.sum(), 1, rtol=1e-6)
        for _ in range(2):
            sess.run(train)
        found.append(sess.run(mean))
    return (*found, path)


@pytest.mark.parametrize("regression", [False, True])
def test_a_forest_goes_on_where_it_was_saved(tmp_path, regression):
    rng = np.random.default_rng(3)
    data = rng.random((200, 2)).astype(np.float32)
    labels = (data.sum(1) > 1).astype(np.int32)
    labels = np.stack([data[:, 0], data[:, 1] ** 2], 1) if regression else labels
    kwargs = {"regression": regression, "split_after_samples": 30, "bagging_fraction": 0.8}
    whole, half, again, _ = saved_and_restored(
        tmp_path, params(**kwargs, checkpoint_stats=True), data, labels
    )
    assert (whole != half).any()
    np.testing.assert_array_equal(again, whole)


def test_trees_alone_are_saved_by_default(tmp_path):
    rng = np.random.default_rng(4)
    data = rng.random((200, 2)).astype(np.float32)
    labels = (data.sum(1) > 1).astype(np.int32)
    _, half, again, path = saved_and_restored(
        tmp_path, params(split_after_samples=30), data, labels
    )
    assert (half != again).any()
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_shape_map()["forest/counts"] == [0, 2]
    sizes, nodes = reader.get_tensor("forest/sizes"), reader.get_tensor("forest/nodes")
    assert sizes.shape == (3,)
    assert nodes.shape == (sizes.sum(), 2)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.int32([1, 1]), "it has 2 trees, and ForestHParams has 3"),
        (3, np.zeros(4, np.float32), r"thresholds have the shape \[4\], not \[3\]"),
        (2, np.int32([[0, 2], [0, 0], [0, 0]]), r"nodes have features that are not in \[0, 2\)"),
        (2, np.int32([[0, 0], [2, 0], [0, 0]]), "a node has a child that is none of its tree"),
        (5, np.int64([[9, 11]] * 3), r"tests have the shape \[0, 10\], not \[3, 10\]"),
    ],
)
def test_what_is_no_saved_forest(place, value, message):
    forest = RandomForestGraphs(params())
    with tf.Session() as sess:
        state = list(sess.run(raw.HeadraceForestState(forest._forest)))
        state[place] = value
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            sess.run(raw.HeadraceForestLoad(forest._forest, *state))


def test_workers_train_one_forest_on_a_server():
    rng = np.random.default_rng(5)
    data = rng.random((300, 2)).astype(np.float32)
    labels = (data[:, 1] > 0.5).astype(np.int32)
    with with_cluster(ps=1, worker=2) as local:
        accuracies = []
        for task in (0, 1):
            with (
                tf.Graph().as_default(),
                tf.device(
                    tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{task}")
                ),
            ):
                forest = RandomForestGraphs(params(split_after_samples=60))
                assert "ps" in forest._forest.device
                share = slice(task, None, 2)
                train = forest.training_graph(data[share], labels[share])
                mean, size = forest.inference_graph(data)[0], forest.average_size()
                with tf.Session(local.target("worker", task)) as sess:
                    before = sess.run(size)
                    assert (before > 1) == (task == 1)  # it is that of the other worker
                    for _ in range(10):
                        sess.run(train)
                    accuracies.append(((sess.run(mean)[:, 1] > 0.5) == labels).mean())
        assert accuracies[1] > 0.95


def test_parameters():
    assert params(num_features=784).num_splits_to_consider == 28
    assert params(num_features=4).num_splits_to_consider == 10
    with pytest.raises(AttributeError, match="num_classes"):
        ForestHParams(num_features=3).fill()
    with pytest.raises(NotImplementedError, match="split_pruning_name"):
        params(split_pruning_name="half")
    assert ForestHParams(5, 60).max_nodes == 60


def test_names_lead_to_the_same_classes():
    forest = tf.contrib.tensor_forest
    assert forest.python.tensor_forest.RandomForestGraphs is RandomForestGraphs
    assert forest.client.random_forest is forest.random_forest
    assert forest.client.eval_metrics.INFERENCE_PROB_NAME == "probabilities"
