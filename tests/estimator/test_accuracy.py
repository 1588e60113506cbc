"""Premade estimators on real data reach scikit-learn's nearest equivalent within two points."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

sklearn = pytest.importorskip("sklearn")

from sklearn import datasets  # noqa: E402
from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.metrics import r2_score  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402


def _housing():
    """Prices as in California, by a formula: income counts most, the coast and crowds too."""
    draw = np.random.RandomState(0)
    income, age, rooms, coast = draw.gamma(4, 1, 1500), *draw.uniform(0, 1, (3, 1500))
    price = 0.45 * income + 0.3 * age + np.sin(3 * rooms) - 0.8 * coast * coast
    return np.stack([income, age, rooms, coast], 1), price + draw.normal(0, 0.2, 1500)


def _data(name, split=0):
    if name == "housing":
        x, y = _housing()
    else:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    regression = name in ("housing", "diabetes")
    parts = train_test_split(
        x, y, test_size=0.3, random_state=split, stratify=None if regression else y
    )
    scaler = StandardScaler().fit(parts[0])
    train, test = (scaler.transform(p).astype(np.float32) for p in parts[:2])
    if regression:
        mean, deviation = parts[2].mean(), parts[2].std()
        labels = [((p - mean) / deviation).astype(np.float32) for p in parts[2:]]
    else:
        labels = [p.astype(np.int64) for p in parts[2:]]
    return train, test, *labels


def _batches(x, y, steps=None):
    def input_fn():
        rows = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        if steps:
            return rows.shuffle(len(x), seed=0).repeat().batch(64).take(steps)
        return rows.batch(64)

    return input_fn


def _common(x):
    column = tf.feature_column.numeric_column("x", shape=[x.shape[1]])
    return column, tf.estimator.RunConfig(tf_random_seed=0)


def _adam():
    return tf.train.AdamOptimizer(0.005)


def _classifier(kind, x, classes):
    column, config = _common(x)
    e = tf.estimator
    if kind == "linear":
        return e.LinearClassifier([column], n_classes=classes, optimizer=_adam, config=config)
    if kind == "dnn":
        return e.DNNClassifier([64], [column], n_classes=classes, optimizer=_adam, config=config)
    if kind == "combined":
        return e.DNNLinearCombinedClassifier(
            linear_feature_columns=[column],
            linear_optimizer=_adam,
            dnn_feature_columns=[column],
            dnn_optimizer=_adam,
            dnn_hidden_units=[64],
            n_classes=classes,
            config=config,
        )
    return e.BaselineClassifier(n_classes=classes, config=config)


def _regressor(kind, x):
    column, config = _common(x)
    e = tf.estimator
    if kind == "linear":
        return e.LinearRegressor([column], optimizer=_adam, config=config)
    if kind == "dnn":
        return e.DNNRegressor([32], [column], optimizer=_adam, config=config)
    return e.DNNLinearCombinedRegressor(
        linear_feature_columns=[column],
        linear_optimizer=_adam,
        dnn_feature_columns=[column],
        dnn_optimizer=_adam,
        dnn_hidden_units=[32],
        config=config,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "dnn", "combined", "baseline"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_classifiers(name, kind):
    # One example of iris' test part is over two points of it: the mean of three splits.
    splits = range(3) if name == "iris" else range(1)
    scores = np.mean([_accuracies(kind, *_data(name, split)) for split in splits], axis=0)
    print(f"{name} {kind}: {scores[0]:.3f} {scores[1]:.3f}")
    assert scores[0] >= scores[1] - 0.02


def _accuracies(kind, x, x_test, y, y_test):
    """Ours and theirs."""
    estimator = _classifier(kind, x, int(y.max()) + 1)
    estimator.train(_batches(x, y, 1500))
    ours = float(estimator.evaluate(_batches(x_test, y_test))["accuracy"])
    other = {
        "linear": LogisticRegression(max_iter=2000),
        "baseline": DummyClassifier(),
    }.get(kind, MLPClassifier(hidden_layer_sizes=(64,), max_iter=3000, random_state=0))
    return ours, other.fit(x, y).score(x_test, y_test)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("diabetes", "linear"), ("housing", "linear"), ("housing", "dnn"), ("housing", "combined")],
)
def test_regressors(name, kind):
    """Networks overfit few examples: both see as many, as the other's rule of stopping says."""
    x, x_test, y, y_test = _data(name)
    network = MLPRegressor(
        hidden_layer_sizes=(32,), max_iter=3000, random_state=0, learning_rate_init=0.005
    )
    other = (Ridge() if kind == "linear" else network).fit(x, y)
    steps = 1500 if kind == "linear" else other.n_iter_ * len(x) // 64
    estimator = _regressor(kind, x).train(_batches(x, y, steps))
    predicted = [p["predictions"][0] for p in estimator.predict(_batches(x_test, y_test))]
    ours, theirs = r2_score(y_test, predicted), other.score(x_test, y_test)
    print(f"{name} {kind}: {ours:.3f} {theirs:.3f}")
    assert ours >= theirs - 0.02
