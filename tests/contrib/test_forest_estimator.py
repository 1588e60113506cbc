"""TensorForestEstimator: beside scikit-learn on real data, its hooks, metrics and bad input."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn import ensemble, metrics
from sklearn.model_selection import train_test_split
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.tensor_forest import ForestHParams
from headrace.contrib.tensor_forest.client import eval_metrics, random_forest

TensorForestEstimator = random_forest.TensorForestEstimator


def params(**kwargs):
    given = {"num_classes": 2, "num_features": 2, "num_trees": 4, "base_random_seed": 7}
    return ForestHParams(**{**given, "split_after_samples": 40, **kwargs})


def points(count=160, seed=0):
    data = np.random.default_rng(seed).random((count, 2)).astype(np.float32)
    return data, (data[:, 1] > 0.5).astype(np.int32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "split_after", "steps"),
    [("breast_cancer", 60, 60), ("wine", 30, 60), ("digits", 40, 100)],
)
def test_classes_are_told_as_well_as_by_scikit_learn(data, split_after, steps):
    features, labels = real(data)
    a, b, c, d = train_test_split(features, labels.astype(np.int32), test_size=0.4, random_state=0)
    options = {"num_classes": int(labels.max()) + 1, "num_features": features.shape[1]}
    hparams = params(**options, num_trees=50, split_after_samples=split_after)
    forest = TensorForestEstimator(hparams).fit(a, c, steps=steps, batch_size=len(a))
    found = forest.evaluate(b, d)
    theirs = ensemble.RandomForestClassifier(50, random_state=0).fit(a, c)
    assert found["accuracy"] > theirs.score(b, d) - 0.02
    assert found["loss"] < 1.1 * metrics.log_loss(d, theirs.predict_proba(b))


@pytest.mark.slow
def test_numbers_are_predicted_as_well_as_by_scikit_learn():
    features, target = real("diabetes")
    a, b, c, d = train_test_split(features, target.astype(np.float32), random_state=0)
    hparams = params(
        num_classes=1, num_features=10, num_trees=50, split_after_samples=100, regression=True
    )
    forest = TensorForestEstimator(hparams).fit(a, c, steps=40, batch_size=len(a))
    theirs = ensemble.RandomForestRegressor(50, random_state=0).fit(a, c)
    assert forest.evaluate(b, d)["loss"] < 1.1 * metrics.mean_squared_error(d, theirs.predict(b))


def test_training_goes_on_from_a_checkpoint(tmp_path):
    data, _ = points()
    labels = (data.sum(1) > 1).astype(np.int32)  # no split of a feature parts them
    forest = TensorForestEstimator(params(), model_dir=str(tmp_path))
    forest.fit(data, labels, steps=4, batch_size=160)
    again = TensorForestEstimator(params(), model_dir=str(tmp_path))
    again.fit(data, labels, steps=4, batch_size=160)
    assert again.get_variable_value("global_step") == 8
    assert again.get_variable_value("forest/sizes").mean() > 5
    found = list(again.predict(data))
    assert np.mean([one["classes"] for one in found] == labels) > 0.8
    assert found[0]["prediction_variance"].shape == (2,)


def test_weights_keys_and_importances(caplog):
    data, labels = points()
    features = {"p": data, "w": (labels == 0).astype(np.float32), "id": np.arange(160)}
    forest = TensorForestEstimator(
        params(), weight_column="w", keys_column="id", report_feature_importances=True
    )
    with caplog.at_level(logging.INFO):
        forest.fit(features, labels, steps=3, batch_size=160)
    assert "feature_importances" in caplog.text
    found = list(forest.predict(features))
    assert [int(one["id"]) for one in found] == list(range(160))
    assert {int(one["classes"]) for one in found} == {0}  # the others have no weight


def test_training_ends_when_the_loss_no_longer_falls():
    data, labels = points()
    forest = TensorForestEstimator(params(max_nodes=3), early_stopping_rounds=3)
    forest.fit(data, labels, steps=200, batch_size=160)
    assert 4 < forest.get_variable_value("global_step") < 60


def test_metrics_by_name():
    probabilities = tf.constant([[0.9, 0.1], [0.2, 0.8]])
    classes, targets = tf.constant([0, 1]), tf.constant([0, 0])
    pairs = [
        eval_metrics.get_metric("accuracy")(classes, targets),
        eval_metrics.get_metric("precision")(classes, tf.constant([0, 1])),
        eval_metrics.get_metric("recall")(classes, tf.constant([1, 1])),
        eval_metrics.get_metric("classification_log_loss")(probabilities, targets),
        eval_metrics.get_metric("r2")(tf.constant([1.0, 3.0]), tf.constant([1.0, 2.0])),
        eval_metrics.get_metric("top_5")(tf.eye(6), tf.range(6)),
    ]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        found = sess.run([update for _, update in pairs])
    log_loss = -(np.log(0.9) + np.log(0.2)) / 2
    np.testing.assert_allclose(found, [0.5, 1, 0.5, log_loss, -1, 1], rtol=1e-5)
    assert eval_metrics.get_prediction_key("r2") == "scores"
    with pytest.raises(KeyError, match=r"There is no metric 'acuracy'.*Did you mean"):
        eval_metrics.get_metric("acuracy")


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="has one trainer"):
        TensorForestEstimator(params(), num_trainers=2)
    with pytest.raises(ValueError, match="needs a loss_op"):
        random_forest.TensorForestLossHook(3)
