"""Heads of the second generation give metrics first, and their tensors later."""

from __future__ import annotations

import pytest
from tests.estimator.models import X, Y

import headrace as tf


def _heads():
    estimator = tf.estimator
    return [estimator.RegressionHead(name="a"), estimator.MultiClassHead(3, name="b")]


def test_metrics_of_several_heads():
    head = tf.estimator.MultiHead(_heads())
    metrics = head.metrics(regularization_losses=[1.0])
    assert list(metrics)[:3] == ["regularization_loss", "loss/a", "loss/b"]
    assert {"average_loss/a", "accuracy/b"} < set(metrics)
    labels = {"a": tf.constant([[1.0], [2.0]]), "b": tf.constant([0, 2])}
    logits = tf.constant([[0.0, 5.0, 0.0, 0.0], [2.0, 0.0, 5.0, 0.0]])
    updated = head.update_metrics(
        metrics, {}, logits, labels, regularization_losses=[tf.constant(0.5)]
    )
    assert updated is metrics
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([metric.updates for metric in metrics.values()])
        found = {name: float(session.run(metric.result())) for name, metric in metrics.items()}
    assert found["accuracy/b"] == 0.5
    assert found["average_loss/a"] == found["loss/a"] == 0.5
    assert found["regularization_loss"] == 0.5


def test_a_model_fn_hands_them_on(tmp_path):
    def model_fn(features, labels, mode):
        head = tf.estimator.RegressionHead()
        logits = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
        spec = head.create_estimator_spec(
            features, mode, logits, labels, tf.train.GradientDescentOptimizer(0.01)
        )
        metrics = head.update_metrics(head.metrics(), features, logits, labels)
        return spec._replace(eval_metric_ops=metrics)

    def data():
        return {"x": tf.constant(X)}, tf.constant(Y)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path)).train(data, steps=1)
    found = estimator.evaluate(data, steps=2)
    assert set(found) == {
        "average_loss",
        "label/mean",
        "prediction/mean",
        "loss",
        "global_step",
    }
    assert found["average_loss"] == pytest.approx(found["loss"])
    assert found["label/mean"] == pytest.approx(Y.mean())


def test_metrics_out_of_turn():
    head = tf.estimator.RegressionHead()
    metrics = head.metrics()
    with pytest.raises(ValueError, match=r"Please call update_metrics.*'average_loss' is empty"):
        metrics["average_loss"].result()
    given = ({}, tf.constant([[1.0]]), tf.constant([[2.0]]))
    head.update_metrics(metrics, *given)
    with pytest.raises(ValueError, match="'average_loss' has been updated before"):
        head.update_metrics(metrics, *given)
