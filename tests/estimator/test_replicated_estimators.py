"""Estimators whose models are in replicas."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.distribute import MirroredStrategy

X = np.linspace(-1, 1, 24).reshape(12, 2).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0]], np.float32) + 0.5).astype(np.float32)


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(
        features["x"], 4, tf.nn.tanh, kernel_initializer=tf.constant_initializer([0.1, -0.2, 0.3])
    )
    hidden = tf.layers.batch_normalization(hidden, training=mode == tf.estimator.ModeKeys.TRAIN)
    out = tf.layers.dense(hidden, 1, kernel_initializer=tf.ones_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=out)
    loss = tf.losses.mean_squared_error(labels, out)
    metrics = {"error": tf.metrics.mean_absolute_error(labels, out)}
    metrics["root"] = tf.metrics.root_mean_squared_error(labels, out)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def rows(batch):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(4).batch(batch)


def linear_fn(features, labels, mode):
    out = tf.layers.dense(features["x"], 1, kernel_initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(labels, out)
    train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, out)}
    return tf.estimator.EstimatorSpec(mode, out, loss, train, metrics)


def two():
    return MirroredStrategy(["/cpu:0", "/cpu:1"])


def values(estimator):
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


def test_replicas_learn_what_one_estimator_learns(tmp_path):
    plain = tf.estimator.Estimator(linear_fn, str(tmp_path / "one"))
    plain.train(rows(12), steps=4)
    both = two()
    config = tf.estimator.RunConfig(train_distribute=both, eval_distribute=both)
    spread = tf.estimator.Estimator(linear_fn, str(tmp_path / "two"), config)
    spread.train(rows(6), steps=4)
    wanted, found = values(plain), values(spread)
    assert sorted(wanted) == sorted(found)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    wanted_metrics = plain.evaluate(rows(12))
    for name, value in spread.evaluate(rows(6)).items():
        assert value == pytest.approx(wanted_metrics[name], rel=1e-4), name
    tf.summary.FileWriterCache.clear()


@pytest.mark.slow
def test_train_and_evaluate_with_a_distribute_config(tmp_path):
    config = tf.estimator.RunConfig(
        experimental_distribute=tf.contrib.distribute.DistributeConfig(two(), two())
    )
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config)
    metrics, _ = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(rows(6), max_steps=4),
        tf.estimator.EvalSpec(rows(6)),
    )
    assert metrics["global_step"] == 4
    # Without a strategy the checkpoint gives the same: statistics of batches are there, too.
    alone = tf.estimator.Estimator(model_fn, str(tmp_path)).evaluate(rows(12))
    for name in ("error", "root", "loss"):
        assert metrics[name] == pytest.approx(alone[name], rel=1e-4), name
    tf.summary.FileWriterCache.clear()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "dnn", "both"])
def test_canned_estimators(tmp_path, kind):
    """The same accuracy and loss as one device has, after the same batches."""
    columns = [tf.feature_column.numeric_column("x", shape=[2])]
    labels = (Y[:, 0] > 0).astype(np.int64)

    def batches(size):
        return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, labels)).repeat(8).batch(size)

    def make(name, **settings):
        config = tf.estimator.RunConfig(tf_random_seed=7, **settings)
        folder, opt = str(tmp_path / name), tf.train.AdagradOptimizer(0.1)
        if kind == "linear":
            return tf.estimator.LinearClassifier(columns, folder, optimizer=opt, config=config)
        if kind == "dnn":
            return tf.estimator.DNNClassifier([4], columns, folder, optimizer=opt, config=config)
        return tf.estimator.DNNLinearCombinedClassifier(
            folder, columns, dnn_feature_columns=columns, dnn_hidden_units=[4], config=config
        )

    plain, spread = make("one"), make("two", train_distribute=two(), eval_distribute=two())
    plain.train(batches(12), steps=6)
    spread.train(batches(6), steps=6)
    wanted, found = values(plain), values(spread)
    assert sorted(wanted) == sorted(found)
    metrics, wanted_metrics = spread.evaluate(batches(6)), plain.evaluate(batches(12))
    if kind == "linear":  # others begin with random weights
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
        assert metrics["average_loss"] == pytest.approx(wanted_metrics["average_loss"], rel=1e-3)
    assert set(metrics) == set(wanted_metrics)
    assert metrics["global_step"] == 6
    tf.summary.FileWriterCache.clear()


def test_input_functions_learn_of_the_strategy(tmp_path):
    seen = []

    def input_fn(input_context):
        seen.append(input_context.num_replicas_in_sync)
        return rows(6)()

    config = tf.estimator.RunConfig(train_distribute=two())
    tf.estimator.Estimator(linear_fn, str(tmp_path), config).train(input_fn, steps=1)
    assert seen == [2]
    tf.summary.FileWriterCache.clear()


def test_configs_that_cannot_be():
    both = tf.contrib.distribute.DistributeConfig(two())
    with pytest.raises(ValueError, match="not both"):
        tf.estimator.RunConfig(train_distribute=two(), experimental_distribute=both)
    with pytest.raises(ValueError, match=r"remote_cluster=...\) is not supported"):
        tf.estimator.RunConfig(experimental_distribute=both._replace(remote_cluster={}))
    with pytest.raises(TypeError, match=r"is a tf.contrib.distribute.DistributeConfig, not"):
        tf.estimator.RunConfig(experimental_distribute=two())
