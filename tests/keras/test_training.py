"""Models of Keras with compile, fit, evaluate and predict, and values shared with sessions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf

layers = tf.keras.layers
RNG = np.random.RandomState(0)
X = RNG.rand(32, 4).astype(np.float32)
Y = (X.sum(1, keepdims=True) > 2).astype(np.float32)


def _model(name="model"):
    return tf.keras.Sequential(
        [
            layers.Dense(5, activation=tf.nn.tanh, input_shape=(4,)),
            layers.Dense(1, activation="sigmoid"),
        ],
        name=name,
    )


def _start(model):
    model.set_weights([np.full(w.shape, 0.1, np.float32) for w in model.get_weights()])
    return model


def test_losses_in_a_session_are_those_of_plain_keras():
    model = _start(_model())
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
    loss = tf.reduce_mean(tf.keras.losses.binary_crossentropy(y, model(x)))
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-7).minimize(loss)
    plain = _start(_model("plain"))
    plain.compile(tf.keras.optimizers.Adam(lr=0.01), "binary_crossentropy")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ours = [session.run([loss, train], {x: X, y: Y})[0] for _ in range(10)]
    theirs = [plain.train_on_batch(X, Y) for _ in range(10)]
    np.testing.assert_allclose(ours, np.ravel(theirs), rtol=1e-5)


@pytest.mark.parametrize("kind", ["arrays", "dataset", "iterator"])
def test_fit_evaluate_and_predict(kind):
    model = _start(_model())
    model.compile(tf.train.AdamOptimizer(0.05), "binary_crossentropy", metrics=["acc"])
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    if kind == "arrays":
        history = model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    elif kind == "dataset":
        history = model.fit(data, epochs=3, verbose=0)
    else:
        iterator = data.repeat().make_one_shot_iterator()
        history = model.fit(iterator, epochs=3, steps_per_epoch=4, verbose=0)
    assert set(history.history) == {"loss", "acc"}
    assert history.history["loss"][-1] < history.history["loss"][0]
    scores = model.evaluate(
        data if kind == "dataset" else X, None if kind == "dataset" else Y, verbose=0
    )
    assert len(scores) == 2
    assert model.predict(X, verbose=0).shape == (32, 1)


@pytest.mark.parametrize("overwrite_frequency", [None, 2])
def test_averages_of_weights_stay_when_the_model_goes_on(overwrite_frequency):
    model = _start(_model())
    optimizer = tf.keras.optimizers.SGD(
        0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=overwrite_frequency
    )
    model.compile(optimizer, "binary_crossentropy")
    for _ in range(2):
        model.fit(X, Y, batch_size=8, epochs=1, shuffle=False, verbose=0)
        weights = model.get_weights()
        model.evaluate(X, Y, verbose=0)
        for weight, average in zip(weights, optimizer.variables[2:], strict=True):
            np.testing.assert_array_equal(average, weight)
    assert int(optimizer.iterations) == 8


def test_values_of_a_session_count_and_go_back_to_it():
    model = _start(_model())
    x = tf.placeholder(tf.float32, [None, 4])
    y = model(x)
    model.compile("sgd", "mse")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(y, {x: X}), model.predict(X, verbose=0), rtol=1e-5)
        session.run(model.weights[0].assign(tf.ones([4, 5])))
        assert model.get_weights()[0].min() == 1.0
        np.testing.assert_allclose(session.run(y, {x: X}), model.predict(X, verbose=0), rtol=1e-5)
        model.fit(X, Y, epochs=1, verbose=0)
        np.testing.assert_allclose(session.run(y, {x: X}), model.predict(X, verbose=0), rtol=1e-5)
        assert session.run(model.weights[0]).min() != 1.0


def test_callbacks_and_files(tmp_path):
    model = _start(_model())
    model.compile("sgd", "mse")
    best = str(tmp_path / "best.h5")
    model.fit(
        X,
        Y,
        epochs=3,
        validation_split=0.25,
        verbose=0,
        callbacks=[
            tf.keras.callbacks.TensorBoard(str(tmp_path / "logs")),
            tf.keras.callbacks.ModelCheckpoint(str(tmp_path / "best.keras"), save_best_only=True),
            tf.keras.callbacks.EarlyStopping(patience=5),
        ],
    )
    for kind in ("train", "validation"):
        (events,) = (tmp_path / "logs" / kind).iterdir()
        found = [
            (e.step, v.tag) for e in tf.train.summary_iterator(str(events)) for v in e.summary.value
        ]
        assert found == [(i, "epoch_loss") for i in range(3)]
    expected = model.predict(X, verbose=0)
    model.save_weights(best)
    for name in ("whole.keras", "new.weights.h5"):
        path = str(tmp_path / name)
        model.save(path) if name == "whole.keras" else model.save_weights(path)
    for name in ("best.h5", "new.weights.h5"):
        other = _start(_model("other"))
        other.load_weights(str(tmp_path / name))
        np.testing.assert_allclose(other.predict(X, verbose=0), expected, rtol=1e-5)


def test_losses_of_programs_call_our_operations():
    model = _start(_model())
    backend = tf.keras.backend
    model.compile("sgd", lambda y, p: backend.mean(backend.square(y - p)) + tf.reduce_sum(p) * 0.0)
    plain = _start(_model("plain"))
    plain.compile("sgd", "mse")
    np.testing.assert_allclose(model.train_on_batch(X, Y), plain.train_on_batch(X, Y), rtol=1e-5)


def test_optimisers_take_the_arguments_of_1x():
    optimizer = tf.keras.optimizers.SGD(lr=0.5, decay=1.0, momentum=0.9)
    assert float(optimizer.learning_rate) == 0.5
    with pytest.raises(ValueError, match="cannot take RMSPropOptimizer: Keras has no optimiser"):
        _model().compile(tf.train.RMSPropOptimizer(0.1), "mse")
    with pytest.raises(ValueError, match="whose arguments are numbers"):
        _model().compile(tf.train.GradientDescentOptimizer(tf.constant(0.1)), "mse")


def test_functions_of_the_backend():
    backend = tf.keras.backend
    x = backend.placeholder((None, 2))
    y = layers.Dense(1, kernel_initializer="ones")(x)
    total = backend.variable(0.0)
    run = backend.function([x], [y, backend.sum(y)], updates=[(total, backend.sum(y))])
    found, summed = run([np.ones((3, 2))])
    assert (found.tolist(), summed) == ([[2.0]] * 3, 6.0)
    assert backend.get_value(total) == 6.0
    backend.set_value(total, 1.0)
    assert backend.eval(total) == 1.0
    assert backend.int_shape(x) == (None, 2)
    with pytest.raises(ValueError, match="has 1 inputs and was given 2 values"):
        run([1, 2])


def test_a_data_set_that_is_not_there_says_where_to_put_it(monkeypatch):
    from keras.src.datasets import mnist

    def fetch(*args, **kwargs):
        raise Exception("URL fetch failure on https://example.org: None -- no network")

    monkeypatch.setattr(mnist, "get_file", fetch)
    with pytest.raises(FileNotFoundError, match=r"Put its file there: .*datasets.mnist\.npz"):
        tf.keras.datasets.mnist.load_data()


def test_to_categorical_takes_a_type():
    assert tf.keras.utils.to_categorical([1], 2, "int32").tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="call the model on the tensor"):
        tf.keras.Input(tensor=tf.ones([1]))


def test_a_layer_of_a_graph_has_arrays_when_keras_works_on_it():
    layer = layers.Dense(2, kernel_initializer=tf.constant_initializer(3.0))
    layer(tf.ones([1, 4]))
    assert all(v._value is None for v in layer._trainable_variables)
    plain = _start(_model())
    plain.compile("sgd", "mse")
    plain.fit(X, Y, epochs=1, verbose=0)
    assert all(v._value is None for v in layer._trainable_variables)
    assert np.asarray(layer(np.ones((1, 4)))).tolist() == [[12.0, 12.0]]
    assert layer.get_weights()[0].tolist() == [[3.0, 3.0]] * 4


@pytest.mark.slow
@pytest.mark.process
def test_a_model_is_saved_where_tensorflow_means_headrace(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_SAVING)
    command = [sys.executable, "-m", "headrace", "run", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["(None,", "2)"]


_SAVING = """
import tensorflow as tf
from tensorflow.keras import backend as K
from tensorflow.python.keras.layers import Dense

model = tf.keras.Sequential([Dense(2, input_shape=(3,))])
model.compile(loss="mean_squared_error", optimizer="adam")
for name in ("model.h5", "model.keras"):
    model.save(name)
    found = tf.keras.models.load_model(name)
assert K.get_session() is not None
print(found.output_shape)
"""
