"""Recurrent estimators, towers and metrics of heads. Python 3.7: TensorFlow 1.15 runs this."""

import itertools
import shutil
import tempfile

import numpy as np

from . import golden
from .estimators import (
    BINARY,
    CLASSES,
    INDICATORS,
    LOGITS,
    NAMES,
    NUMBERS,
    PAIRS,
    WEIGHT,
    N,
    _start,
)

HEAT = [[0.5, -1.0], [2.0], [0.25, 1.5, -0.5], [1.0], [0.1, 0.2, 0.3], [-2.0, 1.0]]
WORDS = [["a", "b"], ["c"], ["b", "a", "z"], ["a"], ["c", "c", "b"], ["z", "a"]]


def _sparse(tf, rows):
    at = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    return tf.SparseTensor(at, tf.constant([x for row in rows for x in row]), [len(rows), 3])


def _sequences(tf):
    c = tf.contrib.feature_column
    words = c.sequence_categorical_column_with_vocabulary_list("words", ["a", "b", "c"])
    return [c.sequence_numeric_column("heat"), tf.feature_column.embedding_column(words, 2)]


def _input(tf, labels):
    def input_fn():
        features = {
            "heat": _sparse(tf, HEAT),
            "words": _sparse(tf, WORDS),
            "age": tf.constant(NUMBERS),
            "weight": tf.constant(WEIGHT),
        }
        return features, tf.constant(labels)

    return input_fn


def _of_estimator(tf, make, labels):
    folder = tempfile.mkdtemp()
    try:
        estimator = make(tf.estimator.RunConfig(folder, tf_random_seed=1))
        input_fn = _input(tf, labels)
        estimator.train(input_fn, hooks=[_start(tf, tf.train.SessionRunHook)], steps=3)
        results = {"names": sorted(estimator.get_variable_names())}
        for name in estimator.get_variable_names():
            results["variables/" + name] = estimator.get_variable_value(name)
        metrics = estimator.evaluate(input_fn, steps=1)
        results.update({"metrics/" + key: value for key, value in metrics.items()})
        predicted = list(itertools.islice(estimator.predict(input_fn), N))
        for key in predicted[0]:
            results["predictions/" + key] = np.stack([p[key] for p in predicted])
        return results
    finally:
        tf.summary.FileWriterCache.clear()
        shutil.rmtree(folder)


@golden(with_session=True, slow=True)
def rnn_classifier(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.contrib.estimator.RNNClassifier(
            _sequences(tf),
            context_feature_columns=[tf.feature_column.numeric_column("age")],
            num_units=[3, 2],
            cell_type="lstm",
            n_classes=3,
            weight_column="weight",
            config=config,
        ),
        CLASSES,
    )


@golden(with_session=True, slow=True)
def rnn_classifier_of_two(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.contrib.estimator.RNNClassifier(
            _sequences(tf), num_units=[4], optimizer=tf.train.AdamOptimizer(0.1), config=config
        ),
        BINARY,
    )


@golden(with_session=True, slow=True)
def rnn_estimator(tf, session):
    return _of_estimator(
        tf,
        lambda config: tf.contrib.estimator.RNNEstimator(
            tf.contrib.estimator.regression_head(),
            _sequences(tf),
            rnn_cell_fn=lambda mode: tf.nn.rnn_cell.GRUCell(3),
            optimizer="SGD",
            config=config,
        ),
        NUMBERS,
    )


@golden(with_session=True, slow=True)
def towers(tf, session):
    def model_fn(features, labels, mode, params):
        net = tf.layers.dense(features["age"][:, None], 3, tf.nn.tanh, name="hidden")
        y = tf.layers.dense(net, 1, name="y")[:, 0]
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, {"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        optimizer = tf.contrib.estimator.TowerOptimizer(tf.train.AdamOptimizer(0.1))
        train = optimizer.minimize(loss, tf.train.get_global_step())
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train, metrics)

    devices = ["/cpu:0", "/cpu:0", "/cpu:0"]
    replicated = tf.contrib.estimator.replicate_model_fn(model_fn, devices=devices)

    def of_age(features, labels, mode, params, config):
        return replicated({"age": features["age"]}, labels, mode, params, config)

    return _of_estimator(
        tf, lambda config: tf.estimator.Estimator(of_age, config=config, params={}), NUMBERS
    )


def _metrics(tf, head, logits, labels, features=None):
    """The metrics of two batches."""
    with tf.Graph().as_default(), tf.Session() as session:
        placed = {key: tf.constant(value) for key, value in (features or {}).items()}
        penalty = [tf.constant(0.25), tf.constant(0.5)]
        metrics = head.metrics(regularization_losses=penalty)
        metrics = head.update_metrics(
            metrics, placed, tf.constant(logits), labels(tf), regularization_losses=penalty
        )
        session.run(
            [
                tf.global_variables_initializer(),
                tf.local_variables_initializer(),
                tf.tables_initializer(),
            ]
        )
        session.run([variable.initializer for m in metrics.values() for variable in m.variables])
        for _ in range(2):
            session.run([metric.updates for metric in metrics.values()])
        return {key: session.run(metric.result()) for key, metric in metrics.items()}


@golden(with_session=True)
def binary_metrics(tf, session):
    head = tf.estimator.BinaryClassHead("weight", thresholds=[0.25, 0.6], name="own")
    return _metrics(tf, head, LOGITS[:, :1], lambda tf: tf.constant(BINARY), {"weight": WEIGHT})


@golden(with_session=True)
def multi_class_metrics(tf, session):
    head = tf.estimator.MultiClassHead(3, label_vocabulary=NAMES)
    labels = np.array(NAMES)[CLASSES].astype("S")
    return _metrics(tf, head, LOGITS, lambda tf: tf.constant(labels))


@golden(with_session=True)
def multi_label_metrics(tf, session):
    head = tf.estimator.MultiLabelHead(
        3, "weight", thresholds=[0.4], classes_for_class_based_metrics=[0, 2]
    )
    return _metrics(tf, head, LOGITS, lambda tf: tf.constant(INDICATORS), {"weight": WEIGHT})


@golden(with_session=True)
def regression_metrics(tf, session):
    head = tf.estimator.RegressionHead(2, "weight")
    return _metrics(tf, head, LOGITS[:, :2], lambda tf: tf.constant(PAIRS), {"weight": WEIGHT})


@golden(with_session=True)
def poisson_metrics(tf, session):
    head = tf.estimator.PoissonRegressionHead(name="own")
    return _metrics(tf, head, LOGITS[:, :1], lambda tf: tf.constant(NUMBERS))
