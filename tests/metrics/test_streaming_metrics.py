"""Streaming metrics: what the goldens do not show (unknown shapes, collections, bad input)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _after(metric: Any, feeds: list[Any]) -> tuple[Any, Any]:
    """The value of the last update, and the value after all updates."""
    value, update_op = metric
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        last = [session.run(update_op, feed) for feed in feeds][-1]
        return last, session.run(value)


def test_accuracy_of_an_evaluation_loop() -> None:
    logits = tf.placeholder(tf.float32, [None, 3])
    labels = tf.placeholder(tf.int64, [None])
    metric = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    feeds = [
        {logits: np.eye(3), labels: [0, 1, 1]},
        {logits: np.eye(3)[:1], labels: [0]},
    ]
    assert _after(metric, feeds) == (0.75, 0.75)
    assert metric[0].name == "accuracy/value:0"
    assert metric[1].name == "accuracy/update_op:0"


def test_value_before_any_update_is_zero() -> None:
    value, _ = tf.metrics.mean(tf.constant([1.0, 2.0]))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(value) == 0.0


def test_running_without_initialising_fails() -> None:
    value, _ = tf.metrics.mean(tf.constant([1.0]))
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="total"):
        session.run(value)


def test_second_session_starts_anew() -> None:
    metric = tf.metrics.mean(tf.constant([3.0]))
    assert _after(metric, [{}, {}]) == (3.0, 3.0)
    assert _after(metric, [{}]) == (3.0, 3.0)


@pytest.mark.parametrize("shape", [(4,), (4, 1), ()])
def test_weights_of_unknown_rank(shape: tuple[int, ...]) -> None:
    values = tf.placeholder(tf.float32)
    weights = tf.placeholder(tf.float32)
    metric = tf.metrics.mean(values, weights)
    given = np.full(shape, 2.0, np.float32)
    last, value = _after(metric, [{values: [1.0, 2.0, 3.0, 6.0], weights: given}])
    assert last == value == 3.0


def test_labels_of_unknown_rank_lose_their_column() -> None:
    labels, predictions = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    metric = tf.metrics.accuracy(labels, predictions)
    feed = {labels: [[1], [2], [3]], predictions: [1, 2, 0]}
    assert _after(metric, [feed])[1] == pytest.approx(2 / 3)


def test_unknown_weights_that_do_not_fit_fail_when_run() -> None:
    values, weights = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [None, None])
    metric = tf.metrics.mean(values, weights)
    feed = {values: np.ones((2, 3)), weights: np.ones((2, 2))}
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast"):
        _after(metric, [feed])


def test_weights_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"Mismatch at dim 0.*\(3,\).*\(2,\)"):
        tf.metrics.mean(tf.constant([1.0, 2.0, 3.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"values.rank=3. weights.rank=1"):
        tf.metrics.mean(tf.zeros([2, 3, 4]), [1.0, 2.0])


def test_labels_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"not compatible|incompatible"):
        tf.metrics.accuracy(tf.zeros([3]), tf.zeros([4]))


def test_collections() -> None:
    first = tf.metrics.mean([1.0], metrics_collections="values", updates_collections="updates")
    second = tf.metrics.precision([1], [1], None, ["values", "more"], ["updates"])
    assert tf.get_collection("values") == [first[0], second[0]]
    assert tf.get_collection("updates") == [first[1], second[1]]
    assert tf.get_collection("more") == [second[0]]
    assert not tf.global_variables()
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables()


@pytest.mark.parametrize("function", ["auc", "sensitivity_at_specificity", "true_positives_at"])
def test_predictions_out_of_range(function: str) -> None:
    predictions = tf.placeholder(tf.float32, [2])
    m = tf.metrics
    metric = {
        "auc": lambda: m.auc([0, 1], predictions),
        "sensitivity_at_specificity": lambda: m.sensitivity_at_specificity(
            [0, 1], predictions, 0.5
        ),
        "true_positives_at": lambda: m.true_positives_at_thresholds([0, 1], predictions, [0.5]),
    }[function]()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
        _after(metric, [{predictions: [0.5, 1.5]}])


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="curve must be either ROC or PR, ABC unknown"):
        tf.metrics.auc([1], [0.5], curve="ABC")
    with pytest.raises(ValueError, match="Invalid summation_method: sum"):
        tf.metrics.auc([1], [0.5], summation_method="sum")
    with pytest.raises(ValueError, match=r"`specificity` must be in the range \[0, 1\]"):
        tf.metrics.sensitivity_at_specificity([1], [0.5], 1.5)
    with pytest.raises(ValueError, match=r"`sensitivity` must be in the range \[0, 1\]"):
        tf.metrics.specificity_at_sensitivity([1], [0.5], -0.1)
    with pytest.raises(ValueError, match="Invalid k=0"):
        tf.metrics.average_precision_at_k(tf.constant([[1]], tf.int64), [[0.5]], 0)
    with pytest.raises(ValueError, match="Unexpected labels shape"):
        tf.metrics.recall_at_k(tf.zeros([2, 3, 4], tf.int64), tf.zeros([2, 5]), 2)


def test_class_out_of_range() -> None:
    labels = tf.placeholder(tf.int32, [2])
    metric = tf.metrics.mean_iou(labels, [0, 1], 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        _after(metric, [{labels: [0, 2]}])


def test_auc_approaches_the_exact_area() -> None:
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 2, 400)
    scores = np.clip(labels * 0.3 + rng.rand(400) * 0.7, 0, 1)
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None]
    exact = (pairs > 0).mean() + (pairs == 0).mean() / 2
    _, value = _after(tf.metrics.auc(labels, scores, num_thresholds=1000), [{}])
    assert value == pytest.approx(exact, abs=2e-3)


def test_ranking_with_labels_of_unknown_shape() -> None:
    labels = tf.placeholder(tf.int64)
    scores = tf.constant([[0.1, 0.9, 0.4], [0.8, 0.3, 0.2]])
    metric = tf.metrics.precision_at_k(labels, scores, 1)
    assert _after(metric, [{labels: [1, 2]}])[1] == 0.5
    assert _after(metric, [{labels: [[1], [0]]}])[1] == 1.0


def test_names_of_a_named_metric() -> None:
    value, update_op = tf.metrics.recall([1, 0], [1, 1], name="mine")
    assert value.name == "mine/value:0"
    assert update_op.name == "mine/update_op:0"
    names = [v.name for v in tf.local_variables()]
    assert names == ["mine/true_positives/count:0", "mine/false_negatives/count:0"]
