"""Dual coordinate ascent: optima of scikit-learn, the gap, estimators, a cluster, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, svm
from tests.contrib.real_data import real

import headrace as tf
from headrace.contrib.linear_optimizer import SdcaModel, SDCAOptimizer, SparseFeatureColumn
from headrace.harness.cluster import with_cluster

CANCER, LABELS = real("breast_cancer")
#: With a feature that is 1 in place of a bias.
POINTS = np.concatenate([CANCER, np.ones([len(CANCER), 1], np.float32)], 1)
COUNT, DIMS = POINTS.shape
SIGNS = np.where(LABELS > 0, 1, -1)


def model_of(loss: str, labels: Any, l1: float = 0.0, sparse: bool = False, **options: Any) -> Any:
    """(the model, its weights, its examples)."""
    weights = tf.Variable(tf.zeros([DIMS]), name="weights")
    rows, columns = np.nonzero(POINTS)
    column = SparseFeatureColumn(rows, columns, POINTS[rows, columns])
    examples = {
        "sparse_features": [column] if sparse else [],
        "dense_features": [] if sparse else [POINTS],
        "example_labels": tf.constant(labels, tf.float32),
        "example_weights": tf.ones([COUNT]),
        "example_ids": tf.as_string(tf.range(COUNT)),
    }
    variables = {
        "sparse_features_weights": [weights] if sparse else [],
        "dense_features_weights": [] if sparse else [weights],
    }
    given = {
        "loss_type": loss,
        "symmetric_l1_regularization": l1,
        "symmetric_l2_regularization": 1.0,
        **options,
    }
    return SdcaModel(examples, variables, given), weights, examples


def trained(*args: Any, steps: int = 200, **kwargs: Any) -> tuple[float, float, Any]:
    """The regularized loss of all data, the gap, and the weights."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        model, weights, examples = model_of(*args, **kwargs)
        train = model.minimize()
        found = (model.regularized_loss(examples), model.approximate_duality_gap(), weights)
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(train)
        loss, gap, values = sess.run(found)
        return loss * COUNT, gap * COUNT, values


def logistic_optimum() -> float:
    fitted = linear_model.LogisticRegression(fit_intercept=False, tol=1e-8, max_iter=1000)
    w = fitted.fit(POINTS, LABELS).coef_[0]
    return float(np.logaddexp(0, -SIGNS * (POINTS @ w)).sum() + w @ w / 2)


@pytest.mark.parametrize(
    ("sparse", "shards"), [(False, 1), pytest.param(True, 3, marks=pytest.mark.slow)]
)
def test_logistic_regression_ends_where_scikit_learn_does(sparse: bool, shards: int) -> None:
    loss, gap, _ = trained("logistic_loss", LABELS, sparse=sparse, num_table_shards=shards)
    assert loss == pytest.approx(logistic_optimum(), rel=1e-3)
    assert -1e-3 < gap < 0.04


@pytest.mark.slow
def test_ridge_regression_ends_where_scikit_learn_does() -> None:
    w = linear_model.Ridge(alpha=1.0, fit_intercept=False).fit(POINTS, LABELS).coef_
    best = ((POINTS @ w - LABELS) ** 2).sum() / 2 + w @ w / 2
    loss, gap, _ = trained("squared_loss", LABELS, steps=400)
    assert loss == pytest.approx(best, rel=1e-3)
    assert gap < 0.02


@pytest.mark.slow
def test_an_elastic_net_has_the_zeros_of_scikit_learn() -> None:
    net = linear_model.ElasticNet(6 / COUNT, l1_ratio=5 / 6, fit_intercept=False, max_iter=10000)
    w = net.fit(POINTS.astype(np.float64), LABELS).coef_
    best = ((POINTS @ w - LABELS) ** 2).sum() / 2 + w @ w / 2 + 5 * np.abs(w).sum()
    loss, _, weights = trained("squared_loss", LABELS, l1=5.0, steps=300)
    assert loss == pytest.approx(best, rel=1e-3)
    np.testing.assert_array_equal(weights == 0, w == 0)


@pytest.mark.slow
def test_a_support_vector_machine_ends_where_scikit_learn_does() -> None:
    machine = svm.LinearSVC(loss="hinge", fit_intercept=False, max_iter=10**6, tol=1e-5)
    w = machine.fit(POINTS, LABELS).coef_[0]
    best = np.maximum(0, 1 - SIGNS * (POINTS @ w)).sum() + w @ w / 2
    loss, gap, _ = trained("hinge_loss", LABELS, steps=400)
    assert loss == pytest.approx(best, rel=1e-3)
    assert gap < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["smooth_hinge_loss", "poisson_loss"])
def test_the_gap_of_other_losses_closes(loss: str) -> None:
    rates = np.exp(POINTS[:, :3] @ [0.3, -0.2, 0.5])
    counts = np.random.default_rng(0).poisson(rates)
    labels = counts if loss == "poisson_loss" else LABELS
    before = trained(loss, labels, steps=1)[1]
    assert trained(loss, labels, steps=1000)[1] < 0.02 * before


def test_predictions_and_losses_are_those_of_the_formulas() -> None:
    w = np.random.default_rng(1).standard_normal(DIMS).astype(np.float32) * 0.1
    a, y = POINTS @ w, SIGNS
    short = np.maximum(0, 1 - y * a)
    formulas = {
        "logistic_loss": (1 / (1 + np.exp(-a)), np.logaddexp(0, -y * a)),
        "squared_loss": (a, (a - LABELS) ** 2 / 2),
        "hinge_loss": (a, short),
        "smooth_hinge_loss": (a, np.where(short < 1, short**2 / 2, short - 0.5)),
        "poisson_loss": (np.exp(a), np.exp(a) - LABELS * a),
    }
    for loss, (predicted, losses) in formulas.items():
        with tf.Graph().as_default(), tf.Session() as sess:
            model, weights, examples = model_of(loss, LABELS, sparse=loss == "hinge_loss")
            found = model.predictions(examples), model.unregularized_loss(examples)
            sess.run(weights.assign(w))
            predictions, mean = sess.run(found)
        np.testing.assert_allclose(predictions, predicted, rtol=1e-3, atol=1e-5)
        assert mean == pytest.approx(losses.mean(), rel=1e-5)


def test_an_example_that_comes_twice_counts_once() -> None:
    """Batches that wrap around the end of the data have an example twice."""
    with tf.Session() as sess:
        w = tf.Variable([0.0])
        examples = {
            "sparse_features": [],
            "dense_features": [tf.constant([[1.0], [2.0], [1.0]])],
            "example_labels": tf.constant([1.0, 3.0, 1.0]),
            "example_weights": tf.ones([3]),
            "example_ids": tf.constant([7, 8, 7], tf.int64),
        }
        variables = {"sparse_features_weights": [], "dense_features_weights": [w]}
        options = {
            "loss_type": "squared_loss",
            "symmetric_l1_regularization": 0.0,
            "symmetric_l2_regularization": 0.0,  # is 1
        }
        train = SdcaModel(examples, variables, options).minimize()
        sess.run(tf.global_variables_initializer())
        for _ in range(30):
            sess.run(train)
        assert sess.run(w)[0] == pytest.approx(7 / 6, rel=1e-4)


# -- estimators ---------------------------------------------------------------------------------


def batches(size: int = COUNT) -> Any:
    ids = np.arange(COUNT).astype(str)
    features = {"x": CANCER, "id": ids, "kind": (CANCER[:, 0] > 0).astype(np.int64)}
    return tf.data.Dataset.from_tensor_slices((features, LABELS)).batch(size)


def objective(sums: Any, weights: list[Any]) -> float:
    norms = sum(float((np.asarray(w) ** 2).sum()) for w in weights)
    return float(np.logaddexp(0, -SIGNS * sums).sum()) + norms / 2


@pytest.mark.slow
def test_linear_classifiers_reach_the_optimum() -> None:
    columns = [tf.feature_column.numeric_column("x", [30])]
    classifier = tf.estimator.LinearClassifier(
        columns, optimizer=tf.estimator.experimental.LinearSDCA("id")
    )
    classifier.train(lambda: batches(100).repeat(150))
    names = [f"linear/linear_model/{name}" for name in ("x/weights", "bias_weights")]
    w, b = (classifier.get_variable_value(name) for name in names)
    assert objective(CANCER @ w[:, 0] + b, [w, b]) == pytest.approx(logistic_optimum(), rel=1e-3)
    old = tf.contrib.learn.LinearClassifier(
        [tf.contrib.layers.real_valued_column("x", dimension=30)], optimizer=SDCAOptimizer("id")
    )
    old.fit(input_fn=lambda: batches().repeat(150).make_one_shot_iterator().get_next())
    w, b = (old.get_variable_value(f"linear/{name}") for name in ("x/weight", "bias_weight"))
    assert objective(CANCER @ w[:, 0] + b, [w, b]) == pytest.approx(logistic_optimum(), rel=1e-3)


@pytest.mark.slow
def test_categories_and_numbers_are_weighed_together() -> None:
    kind = tf.feature_column.categorical_column_with_identity("kind", 2)
    regressor = tf.estimator.LinearRegressor(
        [kind, tf.feature_column.numeric_column("x", [30])],
        optimizer=tf.estimator.experimental.LinearSDCA("id", symmetric_l1_regularization=0.1),
    )
    found = regressor.train(lambda: batches().repeat(60)).evaluate(batches)
    assert found["average_loss"] < 0.07


@pytest.mark.slow
def test_a_support_vector_machine_is_an_estimator() -> None:
    machine = tf.contrib.learn.SVM(
        "id", [tf.contrib.layers.real_valued_column("x", dimension=30)], l2_regularization=1.0
    )
    machine.fit(input_fn=lambda: batches().repeat(100).make_one_shot_iterator().get_next())
    found = machine.evaluate(input_fn=lambda: batches().make_one_shot_iterator().get_next())
    assert found["accuracy"] > 0.98


@pytest.mark.slow
def test_two_workers_reach_the_optimum() -> None:
    """Each has half of the examples; weights and states of examples are on a server."""
    with with_cluster(ps=1, worker=2) as local:
        sessions = []
        for task in (0, 1):
            device = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{task}")
            with tf.Graph().as_default(), tf.device(device):
                w = tf.Variable(tf.zeros([DIMS]), name="w")
                half = slice(task, None, 2)
                ids = np.arange(COUNT)[half]
                examples = {
                    "sparse_features": [],
                    "dense_features": [POINTS[half]],
                    "example_labels": tf.constant(LABELS[half], tf.float32),
                    "example_weights": tf.ones([len(ids)]),
                    "example_ids": tf.constant(ids),
                }
                model = SdcaModel(
                    examples,
                    {"sparse_features_weights": [], "dense_features_weights": [w]},
                    {
                        "loss_type": "logistic_loss",
                        "symmetric_l1_regularization": 0.0,
                        "symmetric_l2_regularization": 1.0,
                        "num_loss_partitions": 2,
                    },
                )
                train, gap = model.minimize(), model.approximate_duality_gap()
                session = tf.Session(local.target("worker", task))
                if not sessions:
                    session.run(tf.global_variables_initializer())
                sessions.append((session, train, gap, w))
        for _ in range(400):
            for session, train, _, _ in sessions:
                session.run(train)
        session, _, gap, w = sessions[0]
        found = session.run(w)
        loss = np.logaddexp(0, -SIGNS * (POINTS @ found)).sum() + found @ found / 2
        assert loss == pytest.approx(logistic_optimum(), rel=1e-3)
        assert session.run(gap) < 2e-4
        for each in sessions:
            each[0].close()


# -- what is refused ----------------------------------------------------------------------------


def test_models_that_are_refused() -> None:
    with pytest.raises(ValueError, match="must all be specified"):
        SdcaModel({}, {}, {})
    with pytest.raises(ValueError, match=r"Unsupported loss_type: 'log_loss'; there are logistic"):
        model_of("log_loss", LABELS)
    with pytest.raises(ValueError, match=r"l1_regularization should be non-negative. Found \(-1"):
        model_of("hinge_loss", LABELS, l1=-1.0)
    _, w, examples = model_of("hinge_loss", LABELS)
    options = {
        "loss_type": "hinge_loss",
        "symmetric_l1_regularization": 0.0,
        "symmetric_l2_regularization": 1.0,
    }
    weights = {"sparse_features_weights": [], "dense_features_weights": [w]}
    with pytest.raises(ValueError, match="example_ids must be specified in examples"):
        SdcaModel({**examples, "example_ids": None}, weights, options)
    with pytest.raises(ValueError, match="dense_features must be a list"):
        SdcaModel({**examples, "dense_features": POINTS}, weights, options)
    with pytest.raises(ValueError, match="1 dense_features need as many dense_features_weights"):
        SdcaModel(examples, {**weights, "dense_features_weights": []}, options)


def test_examples_that_do_not_fit() -> None:
    fed = {
        "dense_features": tf.placeholder(tf.float32, [None, 1]),
        "example_labels": tf.placeholder(tf.float32, [None]),
        "example_weights": tf.placeholder(tf.float32, [None]),
    }
    w = tf.Variable([0.0])
    model = SdcaModel(
        {
            **fed,
            "dense_features": [fed["dense_features"]],
            "sparse_features": [],
            "example_ids": tf.constant(["a", "b", "c"]),
        },
        {"sparse_features_weights": [], "dense_features_weights": [w]},
        {
            "loss_type": "logistic_loss",
            "symmetric_l1_regularization": 0.0,
            "symmetric_l2_regularization": 1.0,
        },
    )
    train = model.minimize()
    cases = (
        ("example_labels", 2.0, r"labels of logistic_loss must be 0 or 1; not so labels\[1\]"),
        ("example_weights", -1.0, "example_weights must not be below 0"),
        ("example_weights", np.nan, "example 1 of the batch holds NaN or infinity"),
        ("dense_features", np.inf, "example 1 of the batch holds NaN or infinity"),
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for name, value, message in cases:
            arrays = {key: np.ones([3, 1][: x.shape.ndims], np.float32) for key, x in fed.items()}
            arrays[name][1] = value
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                sess.run(train, {fed[key]: array for key, array in arrays.items()})
            assert sess.run(w) == 0


def test_estimators_that_are_refused() -> None:
    x = tf.feature_column.numeric_column("x", [30])
    sdca = tf.estimator.experimental.LinearSDCA("number")
    with pytest.raises(
        ValueError, match=r"no feature 'number' with the ids.*there are id, kind, x"
    ):
        tf.estimator.LinearClassifier([x], optimizer=sdca).train(batches)
    with pytest.raises(ValueError, match="the head is MultiClassHead with 3 logits"):
        tf.estimator.LinearClassifier([x], n_classes=3, optimizer=sdca).train(batches)
    with pytest.raises(ValueError, match='sparse_combiner must be "sum" with LinearSDCA'):
        tf.estimator.LinearClassifier([x], optimizer=sdca, sparse_combiner="mean").train(batches)
    kind = tf.feature_column.categorical_column_with_identity("kind", 2)
    table = tf.feature_column.embedding_column(kind, 3)
    with pytest.raises(ValueError, match="Column kind_embedding has variables of its own"):
        tf.estimator.LinearClassifier([table], optimizer=sdca).train(batches)
    old = tf.contrib.learn.LinearClassifier(
        [tf.contrib.layers.real_valued_column("x")], n_classes=3, optimizer=SDCAOptimizer("id")
    )
    with pytest.raises(ValueError, match="the head is MultiClassHead with 3 logits"):
        old.fit({"x": CANCER[:, :1]}, LABELS)
    with pytest.raises(NotImplementedError, match="map the features beforehand"):
        tf.contrib.learn.SVM("id", [tf.contrib.layers.real_valued_column("x")], kernels={})
