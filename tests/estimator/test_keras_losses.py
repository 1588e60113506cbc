"""Estimators of Keras models have the losses of plain Keras training, step by step."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import headrace as tf

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="keras is not installed"
)
DRAW = np.random.RandomState(0)
X = DRAW.rand(40, 6).astype(np.float32)
Y = (X.sum(1) * 2).astype(np.int64) % 3
ONE_HOT = np.eye(3, dtype=np.float32)[Y]
STEPS = 8

OPTIMIZERS = {
    "sgd": lambda k: k.SGD(lr=0.3),
    "momentum": lambda k: k.SGD(lr=0.1, momentum=0.9),
    "adam": lambda k: k.Adam(lr=0.01),
    "adagrad": lambda k: k.Adagrad(lr=0.1),
}
#: The same as optimisers of `tf.train`; Keras adds 1e-7 where TensorFlow adds 1e-8.
OF_TRAIN = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.01, epsilon=1e-7),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1, 0.1),
}


class _Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, run_context):
        graph = run_context.session.graph
        return tf.train.SessionRunArgs(graph.get_collection(tf.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.found.append(float(run_values.results))


def _layers():
    layers = tf.keras.layers
    return [
        layers.Dense(8, activation="relu", input_shape=(6,)),
        layers.BatchNormalization(),
        layers.Dense(3, activation="softmax"),
    ]


def _weights(model):
    draw = np.random.RandomState(1)
    return [
        w if w.ndim == 1 else draw.normal(0, 0.4, w.shape).astype(np.float32)
        for w in model.get_weights()
    ]


def _model(optimizer):
    model = tf.keras.Sequential(_layers())
    model.set_weights(_weights(model))
    model.compile(optimizer, "categorical_crossentropy", metrics=["accuracy"])
    return model


def _input_fn():
    return tf.data.Dataset.from_tensor_slices((X, ONE_HOT)).repeat().batch(10)


def _of_keras(optimizer):
    model, found = _model(optimizer), []
    for step in range(STEPS):
        part = slice(step % 4 * 10, step % 4 * 10 + 10)
        found.append(float(model.train_on_batch(X[part], ONE_HOT[part])[0]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_model_to_estimator(tmp_path, name):
    make = OPTIMIZERS[name]
    plain = _of_keras(make(tf.keras.optimizers))
    estimator = tf.keras.estimator.model_to_estimator(
        _model(make(tf.keras.optimizers)), model_dir=str(tmp_path)
    )
    losses = _Losses()
    estimator.train(_input_fn, steps=STEPS, hooks=[losses])
    np.testing.assert_allclose(losses.found, plain, rtol=2e-5)
    assert plain[4] < plain[0]  # the same batch again


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_model_fn(tmp_path, name):
    plain = _of_keras(OPTIMIZERS[name](tf.keras.optimizers))

    def model_fn(features, labels, mode):
        model = tf.keras.Sequential(_layers())
        model.set_weights(_weights(model))
        found = model(features, training=mode == tf.estimator.ModeKeys.TRAIN)
        loss = tf.reduce_mean(tf.keras.losses.categorical_crossentropy(labels, found))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = OF_TRAIN[name]().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, found, loss, train)

    losses = _Losses()
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(_input_fn, steps=STEPS, hooks=[losses])
    np.testing.assert_allclose(losses.found, plain, rtol=2e-5)
