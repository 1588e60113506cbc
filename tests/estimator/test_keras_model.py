"""`tf.keras.estimator.model_to_estimator`."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import headrace as tf

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="keras is not installed"
)
X = np.random.RandomState(0).rand(32, 4).astype(np.float32)
Y = (X.sum(1, keepdims=True) > 2).astype(np.float32)


def _model():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(3, activation="tanh", input_shape=(4,)),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.set_weights([np.full(w.shape, 0.1, np.float32) for w in model.get_weights()])
    model.compile(tf.keras.optimizers.SGD(lr=0.5), "binary_crossentropy", metrics=["acc"])
    return model


def _input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(32)


def test_an_estimator_of_a_model_learns_as_the_model_does(tmp_path):
    model = _model()
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    estimator.train(_input_fn, steps=5)
    found = estimator.evaluate(_input_fn, steps=1)
    for _ in range(5):
        model.train_on_batch(X, Y)
    loss, accuracy = model.evaluate(X, Y, verbose=0)
    np.testing.assert_allclose([found["loss"], found["acc"]], [loss, accuracy], rtol=1e-5)
    names = [n for n, _ in tf.train.list_variables(str(tmp_path))]
    assert {"dense/kernel", "dense_1/bias", "global_step"} <= {*names}
    one_way = next(iter(estimator.predict(_input_fn)))
    (row,) = one_way.values()
    np.testing.assert_allclose(row, model.predict(X, verbose=0)[0], rtol=1e-5)


def test_an_estimator_with_layers_of_keras_is_exported(tmp_path):
    estimator = tf.keras.estimator.model_to_estimator(_model(), model_dir=str(tmp_path / "model"))
    estimator.train(_input_fn, steps=1)
    wanted = [next(iter(p.values())) for p in estimator.predict(lambda: _input_fn().take(1))]
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 4])}
    )
    folder = estimator.export_saved_model(str(tmp_path / "served"), receiver)
    message = tf.saved_model.loader.load(
        tf.Session(graph=tf.Graph()), ["serve"], tf.compat.as_text(folder)
    )
    assert "XlaCallModule" in {n.op for n in message.graph_def.node}
    predict = tf.contrib.predictor.from_saved_model(folder)
    (found,) = predict({"x": X}).values()
    np.testing.assert_allclose(found, wanted[: len(X)], rtol=1e-6)


def test_what_cannot_be_an_estimator_is_refused():
    convert = tf.keras.estimator.model_to_estimator
    with pytest.raises(ValueError, match="one of them"):
        convert()
    with pytest.raises(ValueError, match="call its compile first"):
        convert(tf.keras.Sequential([tf.keras.layers.Dense(1)]))
    model = _model()
    model.compile("rmsprop", "mse")
    with pytest.raises(ValueError, match="does the same as RMSprop"):
        convert(model)
