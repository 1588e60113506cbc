"""Recurrent premade estimators: what they learn, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

extra = tf.contrib.estimator
HEAT = tf.feature_column.sequence_numeric_column("heat")


def _rows(count):
    """Sequences of one to six numbers, and whether the first one is above zero."""
    random = np.random.RandomState(0)
    rows = [random.uniform(-1, 1, size=random.randint(1, 7)) for _ in range(count)]
    return rows, np.array([row[0] > 0 for row in rows], np.int64)


def _data(rows, labels):
    at = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    heat = tf.SparseTensorValue(at, np.concatenate(rows).astype(np.float32), [len(rows), 6])
    return tf.data.Dataset.from_tensors(({"heat": heat}, labels))


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["lstm", "gru", tf.nn.rnn_cell.BasicRNNCell])
def test_a_network_remembers_the_beginning(tmp_path, cell):
    rows, labels = _rows(400)
    classifier = extra.RNNClassifier(
        [HEAT],
        num_units=[16],
        cell_type=cell,
        optimizer=lambda: tf.train.AdamOptimizer(0.02),
        config=tf.estimator.RunConfig(str(tmp_path), tf_random_seed=1),
    )
    classifier.train(lambda: _data(rows[:300], labels[:300]).repeat(), steps=150)
    found = classifier.evaluate(lambda: _data(rows[300:], labels[300:]))
    assert found["accuracy"] > 0.95


def test_the_last_step_of_each_sequence_counts(tmp_path):
    """Padding changes nothing; an empty sequence has the output of no step, which is zero."""

    def cells(mode):
        return tf.nn.rnn_cell.BasicRNNCell(2)

    head = extra.regression_head()
    estimator = extra.RNNEstimator(head, [HEAT], rnn_cell_fn=cells, model_dir=str(tmp_path))

    def alone():
        heat = tf.SparseTensorValue([[0, 0], [0, 1]], [0.5, -0.3], [1, 2])
        return tf.data.Dataset.from_tensors(({"heat": heat}, [[1.0]]))

    def padded():
        at = [[0, 0], [0, 1], [2, 0], [2, 1], [2, 2], [2, 3]]
        heat = tf.SparseTensorValue(at, [0.5, -0.3, 1.0, 2.0, 3.0, 4.0], [3, 4])
        return tf.data.Dataset.from_tensors({"heat": heat})

    estimator.train(alone)
    [one] = estimator.predict(alone)
    first, empty, _ = estimator.predict(padded)
    np.testing.assert_allclose(first["predictions"], one["predictions"], rtol=1e-6)
    bias = estimator.get_variable_value("rnn/logits/dense/bias")
    np.testing.assert_allclose(empty["predictions"], bias, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"num_units": [2], "cell_type": "lst"},
            r"Supported cell types .*; got lst.*'lstm'",
        ),
        ({"num_units": [2], "cell_type": 3}, "Supported cell types are"),
        ({"num_units": [2], "rnn_cell_fn": len}, "must not be specified when using rnn_cell_fn"),
        ({"cell_type": "gru", "rnn_cell_fn": len}, "must not be specified when using rnn_cell_fn"),
        ({}, "num_units, the sizes of the layers, or rnn_cell_fn must be given"),
        ({"num_units": [2], "return_sequences": True}, "needs a head for sequences"),
    ],
)
def test_what_cannot_be(given, told):
    with pytest.raises(ValueError, match=told):
        extra.RNNEstimator(extra.regression_head(), [HEAT], **given)


def test_columns_that_are_none_of_sequences(tmp_path):
    column = tf.feature_column.numeric_column("x")
    classifier = extra.RNNClassifier([column], num_units=[2], model_dir=str(tmp_path))
    with pytest.raises(ValueError, match="x"):
        classifier.train(lambda: ({"x": tf.zeros([2, 1])}, tf.zeros([2], tf.int32)))
    with pytest.raises(ValueError, match="features should be a dictionary"):
        classifier.train(lambda: (tf.zeros([2, 1]), tf.zeros([2], tf.int32)))
