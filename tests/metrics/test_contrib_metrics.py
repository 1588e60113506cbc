"""Metrics of tf.contrib: argument orders and bad input."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import headrace as tf
from headrace.contrib import metrics


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_all_names_are_there_and_documented() -> None:
    for name in metrics.__all__:
        function = getattr(metrics, name)
        assert function.__doc__, name
        assert function.__name__ == name, name


def test_predictions_come_first() -> None:
    for name in metrics.__all__:
        arguments = list(inspect.signature(getattr(metrics, name)).parameters)
        if name.startswith("streaming_") and "labels" in arguments and "curve_points" not in name:
            assert arguments[1] == "labels", name
    assert list(inspect.signature(metrics.streaming_mean_iou).parameters)[:4] == [
        *("predictions", "labels", "num_classes", "weights")
    ]


def test_positional_and_named_arguments_may_mix() -> None:
    value, update = metrics.streaming_mean_iou([0, 1], [0, 1], 2, name="mine")
    assert tf.local_variables()[0].name == "mine/total_confusion_matrix:0"
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 1.0
    with pytest.raises(TypeError, match="mean_iou: multiple values for argument 'labels'"):
        metrics.streaming_mean_iou([0], [0], 2, labels=[0])
    with pytest.raises(TypeError, match="streaming_mean_iou: too many positional"):
        metrics.streaming_mean_iou(*[[0]] * 8)


def test_correlation_of_many_batches() -> None:
    rng = np.random.RandomState(0)
    x, y = rng.randn(2, 40).astype(np.float32)
    feeds = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    value, update = metrics.streaming_pearson_correlation(*feeds)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert np.isnan(session.run(value))
        for part in np.split(np.arange(40), [1, 7, 30]):
            last = session.run(update, {feeds[0]: x[part], feeds[1]: y[part]})
        assert last == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)
        assert session.run(value) == last


def test_aggregating() -> None:
    pairs = {"a": metrics.streaming_mean([1.0]), "b": metrics.count([1.0, 2.0])}
    values, updates = metrics.aggregate_metric_map(pairs)
    assert values == {"a": pairs["a"][0], "b": pairs["b"][0]}
    assert list(updates) == ["a", "b"]
    assert metrics.aggregate_metrics(*pairs.values()) == (
        list(values.values()),
        list(updates.values()),
    )
    with pytest.raises(ValueError, match="at least one"):
        metrics.aggregate_metrics()


def test_accuracy_of_a_batch_wants_classes() -> None:
    with pytest.raises(ValueError, match="bool, integer, or string"):
        metrics.accuracy(tf.constant([1.0]), tf.constant([1.0]))
    with pytest.raises(ValueError, match="should match"):
        metrics.accuracy(tf.constant([1]), tf.constant([1], tf.int64))
    with pytest.raises(ValueError, match="ROC or PR"):
        metrics.streaming_curve_points([1], [0.5], curve="AUC")


def _value(metric: tuple[object, object]) -> object:
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(metric[1])
        return session.run(metric[0])


def test_best_f1() -> None:
    """Everything taken for positive (3/4, 3/3) beats two found of three, and nothing else."""
    metric = metrics.f1_score([1, 1, 1, 0], [0.9, 0.5, 0.1, 0.4])
    assert _value(metric) == pytest.approx(0.857143, abs=1e-5)


def test_kappa_of_agreement_and_of_chance() -> None:
    assert _value(metrics.cohen_kappa([0, 1, 2], [0, 1, 2], 3)) == 1.0
    assert _value(metrics.cohen_kappa([0, 0, 1, 1], [0, 1, 0, 1], 2)) == 0.0


def test_no_threshold_is_precise_enough() -> None:
    metric = metrics.recall_at_precision([0, 0], [0.2, 0.9], 0.5, strict_mode=True)
    assert _value(metric) == 0.0


def test_bad_operating_points() -> None:
    with pytest.raises(ValueError, match=r"`precision` must be in the range \[0, 1\]; it is 2"):
        metrics.recall_at_precision([1], [0.5], 2)
    with pytest.raises(ValueError, match="`target_recall` must be"):
        metrics.precision_at_recall([1], [0.5], -1)
    with pytest.raises(ValueError, match=r"`num_classes` must be >= 2. Found: 1"):
        metrics.cohen_kappa([0], [0], 1)
    with pytest.raises(TypeError, match="bool"):
        metrics.precision_recall_at_equal_thresholds([1], [0.5])
