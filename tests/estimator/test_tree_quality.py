"""Boosted trees beside scikit-learn's on real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets, ensemble, metrics
from sklearn.model_selection import train_test_split

import headrace as tf

#: Of both: so many trees of so many layers, the same rate; leaves as small as they like.
TREES, DEPTH, RATE = 40, 4, 0.2


def input_fn(features, labels):
    batch = {"x": features.astype(np.float32)}, labels
    return lambda: tf.data.Dataset.from_tensors(batch)


def repeated(features, labels):
    make = input_fn(features, labels)
    return lambda: make().repeat()


def columns(features):
    return [tf.feature_column.numeric_column("x", features.shape[1:])]


OPTIONS = {
    "n_trees": TREES,
    "max_depth": DEPTH,
    "learning_rate": RATE,
    "l2_regularization": 1.0 / 400,
    "center_bias": True,
    "train_in_memory": True,
}
THEIRS = {
    "max_iter": TREES,
    "max_depth": DEPTH,
    "max_leaf_nodes": 2**DEPTH,
    "learning_rate": RATE,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "min_samples_leaf": 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
def test_classes_are_told_as_well_as_by_scikit_learn(name):
    """Of digits: whether they are above 4."""
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    labels = (labels > 4).astype(np.int64) if name == "digits" else labels.astype(np.int64)
    a, b, c, d = train_test_split(features, labels, test_size=0.4, random_state=0)
    trees = tf.estimator.BoostedTreesClassifier(columns(features), 1, **OPTIONS)
    found = trees.train(repeated(a, c)).evaluate(input_fn(b, d))
    theirs = ensemble.HistGradientBoostingClassifier(**THEIRS).fit(a, c)
    loss = metrics.log_loss(d, theirs.predict_proba(b))
    assert found["accuracy"] > theirs.score(b, d) - 0.02
    assert found["loss"] < 1.1 * loss


@pytest.mark.slow
def test_numbers_are_predicted_as_well_as_by_scikit_learn():
    features, labels = datasets.load_diabetes(return_X_y=True)
    a, b, c, d = train_test_split(features, labels.astype(np.float32), random_state=0)
    trees = tf.estimator.BoostedTreesRegressor(columns(features), 1, **OPTIONS)
    found = trees.train(repeated(a, c)).evaluate(input_fn(b, d))
    theirs = ensemble.HistGradientBoostingRegressor(**THEIRS).fit(a, c)
    loss = metrics.mean_squared_error(d, theirs.predict(b))
    assert found["average_loss"] < 1.1 * loss
