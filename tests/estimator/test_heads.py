"""Heads: what they refuse, and what their messages say. Their numbers are goldens."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as tf

X = tf.estimator


def _loss(head, labels, logits, features=None):
    with tf.Graph().as_default(), tf.Session() as session:
        loss = head.loss(labels(), tf.constant(logits), features() if features else {})
        session.run([tf.tables_initializer(), tf.local_variables_initializer()])
        return session.run(loss)


THREE = np.zeros([2, 3], np.float32)
ONE = np.zeros([2, 1], np.float32)


@pytest.mark.parametrize(
    ("head", "labels", "logits", "error", "text"),
    [
        pytest.param(
            X.MultiClassHead(3), [0, 3], THREE, tf.errors.InvalidArgumentError,
            "n_classes is 3, so labels are 0 to 2", id="above",
        ),
        pytest.param(
            X.MultiClassHead(3), [0, -1], THREE, tf.errors.InvalidArgumentError,
            "Labels must be >= 0", id="below",
        ),
        pytest.param(
            X.BinaryClassHead(), [0, 2], ONE, tf.errors.InvalidArgumentError,
            "n_classes is 2, so labels are 0 to 1", id="binary",
        ),
        pytest.param(
            X.MultiClassHead(3), [0.0, 1.0], THREE, ValueError,
            "Labels dtype should be integer. Instead got float32", id="float",
        ),
        pytest.param(
            X.MultiClassHead(3), [[0, 0, 1], [1, 0, 0]], THREE, ValueError,
            "Expected labels dimension=1.  Received 3", id="one-hot",
        ),
        pytest.param(
            X.MultiClassHead(3), [[0], [1], [2]], THREE, (ValueError, tf.errors.OpError),
            "labels shape must be [D0, D1, ... DN, 1]", id="batch",
        ),
        pytest.param(
            X.MultiClassHead(3, label_vocabulary=["a", "b", "c"]), [0, 1], THREE, ValueError,
            "Labels dtype should be string if there is a vocabulary. Instead got int32", id="ids",
        ),
        pytest.param(
            X.BinaryClassHead(), ["a", "b"], ONE, ValueError,
            "Give label_vocabulary=[...]", id="names",
        ),
        pytest.param(
            X.BinaryClassHead(label_vocabulary=["a", "b"]), ["a", "c"], ONE,
            tf.errors.InvalidArgumentError, "Labels must be in label_vocabulary ('a', 'b')",
            id="unknown-name",
        ),
        pytest.param(
            X.MultiClassHead(4), [0, 1], THREE, ValueError,
            "The head's logits_dimension is 4", id="logits",
        ),
        pytest.param(
            X.MultiLabelHead(3), [[0, 1, 2], [0, 0, 0]], THREE, tf.errors.InvalidArgumentError,
            "labels must be an integer indicator Tensor", id="indicator",
        ),
        pytest.param(
            X.RegressionHead(), ["a", "b"], ONE, ValueError, "Instead got string", id="regression",
        ),
        pytest.param(
            X.LogisticRegressionHead(), [0.5, 1.5], ONE, tf.errors.InvalidArgumentError,
            "Labels must be in range [0, 1]", id="logistic",
        ),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit_are_refused(head, labels, logits, error, text):
    with pytest.raises(error) as caught:
        _loss(head, lambda: tf.constant(labels), logits)
    assert text in str(caught.value)


def test_missing_and_sparse_labels_are_refused():
    with pytest.raises(ValueError, match="You must provide a labels Tensor"):
        _loss(X.RegressionHead(), lambda: None, ONE)
    with pytest.raises(ValueError, match="SparseTensor labels are not supported"):
        _loss(X.RegressionHead(), lambda: tf.SparseTensor([[0, 0]], [1.0], [2, 1]), ONE)
    with pytest.raises(ValueError, match="Only a multi-head takes labels by name"):
        _loss(X.RegressionHead(), lambda: {"a": tf.zeros([2])}, ONE)


def test_labels_of_unknown_shape_are_checked_when_run():
    with tf.Graph().as_default(), tf.Session() as session:
        labels = tf.placeholder(tf.int64)
        loss = X.MultiClassHead(3).loss(labels, tf.constant(THREE))
        assert session.run(loss, {labels: [[0], [1]]}) == pytest.approx(np.log(3))
        with pytest.raises(tf.errors.InvalidArgumentError, match="labels shape must be"):
            session.run(loss, {labels: [[0], [1], [2]]})


@pytest.mark.parametrize(
    ("features", "column", "text"),
    [
        ({"wieght": [1.0, 1.0]}, "weight", "Did you mean 'wieght'?"),
        ({"weight": ["a", "b"]}, "weight", "castable to float. Given dtype: string"),
        ({"weight": [[1.0, 2.0], [1.0, 2.0]]}, "weight", "weights shape must be"),
        ({"weight": [1.0, 1.0, 1.0]}, "weight", "weights shape must be"),
    ],
)
def test_weights_that_do_not_fit_are_refused(features, column, text):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as caught:
        _loss(
            X.MultiClassHead(3, weight_column=column),
            lambda: tf.constant([0, 1]),
            THREE,
            lambda: {key: tf.constant(value) for key, value in features.items()},
        )
    assert text in str(caught.value)


def test_a_weight_column_is_a_name_or_a_numeric_column():
    column = tf.feature_column.numeric_column("weight", normalizer_fn=lambda w: 2 * w)
    loss = _loss(
        X.RegressionHead(weight_column=column),
        lambda: tf.constant([1.0, 2.0]),
        ONE,
        lambda: {"weight": tf.constant([1.0, 0.0])},
    )
    assert loss == 1.0
    with pytest.raises(TypeError, match="either a string or NumericColumn"):
        _loss(X.RegressionHead(weight_column=3), lambda: tf.zeros([2]), ONE)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: X.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: X.MultiLabelHead(1), "n_classes must be > 1"),
        (lambda: X.BinaryClassHead(thresholds=[1.5]), "Given: 1.5"),
        (lambda: X.MultiClassHead(3, label_vocabulary=["a"]), "must be n_classes (3). Given: 1"),
        (lambda: X.BinaryClassHead(label_vocabulary="ab"), "should be a list or a tuple"),
        (lambda: X.RegressionHead(loss_reduction="summe"), "Invalid loss_reduction: summe"),
        (lambda: X.RegressionHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: X.RegressionHead(loss_fn=lambda labels: 0), "must contain argument: logits"),
        (lambda: X.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: X.MultiHead([]), "Must specify heads"),
        (lambda: X.MultiHead([X.RegressionHead()]), "must have name specified"),
        (lambda: X.MultiHead([X.RegressionHead(name="a")] * 2), "different names"),
        (lambda: X.MultiHead([X.RegressionHead(name="a")], [1, 2]), "must have the same size"),
        (
            lambda: X.MultiLabelHead(
                2, label_vocabulary=["a", "b"], classes_for_class_based_metrics=["c"]
            ),
            "'c' is not in label_vocabulary",
        ),
    ],
)
def test_heads_that_cannot_be_are_refused(make, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        make()


def test_a_multi_head_names_what_is_missing():
    heads = [X.RegressionHead(name="a"), X.MultiClassHead(3, name="b")]
    head = X.MultiHead(heads)
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"should equal 4 but is 3"):
            head.predictions(tf.constant(THREE))
        with pytest.raises(ValueError, match=r"missing values for head\(s\): \['b'\]"):
            head.loss({"a": tf.zeros([2])}, tf.zeros([2, 4]))
        with pytest.raises(ValueError, match="must be a dict by the names"):
            head.loss(tf.zeros([2]), tf.zeros([2, 4]))


def test_training_needs_an_optimizer_or_a_train_op():
    head = X.RegressionHead()
    with tf.Graph().as_default():
        w = tf.get_variable("w", [1, 1])
        given = ({}, "train", tf.constant(ONE) + w, tf.zeros([2]))
        tf.train.create_global_step()
        with pytest.raises(ValueError, match="cannot both be None"):
            head.create_estimator_spec(*given)
        with pytest.raises(ValueError, match="cannot both be set"):
            head.create_estimator_spec(
                *given,
                optimizer=tf.train.GradientDescentOptimizer(0.1),
                train_op_fn=lambda loss: tf.no_op(),
            )
        with pytest.raises(ValueError, match=r"neither a tf.train.Optimizer nor"):
            head.create_estimator_spec(*given, optimizer="Adam")


def test_updates_of_layers_run_with_a_training_step():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.create_global_step()
        net = tf.layers.batch_normalization(tf.constant([[1.0], [3.0]]), training=True)
        spec = X.RegressionHead().create_estimator_spec(
            {}, "train", net, tf.zeros([2]), optimizer=tf.train.GradientDescentOptimizer(0.1)
        )
        mean = next(v for v in tf.global_variables() if "moving_mean" in v.name)
        session.run(tf.global_variables_initializer())
        session.run(spec.train_op)
        assert session.run(mean) == pytest.approx([0.02])


def test_a_loss_fn_of_another_shape_is_refused():
    head = X.MultiClassHead(3, loss_fn=lambda labels, logits: tf.reduce_sum(logits))
    with pytest.raises(ValueError, match=r"must return Tensor of shape \[D0, D1, ... DN, 1\]"):
        _loss(head, lambda: tf.constant([0, 1]), THREE)


def test_empty_batches_have_no_loss():
    loss = _loss(X.MultiClassHead(3), lambda: tf.zeros([0, 1], tf.int64), np.zeros([0, 3]))
    assert loss == 0.0


def test_a_baseline_ends_with_its_input(tmp_path):
    """Its predictions need no feature's value; the end of the input counts all the same."""
    estimator = X.BaselineRegressor(str(tmp_path))
    three = lambda: tf.data.Dataset.from_tensors({"x": tf.zeros([3])})  # noqa: E731
    assert [float(p["predictions"][0]) for p in estimator.predict(three)] == [0.0] * 3
