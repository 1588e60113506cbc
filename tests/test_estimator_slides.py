"""The programs of the 2018 talk, as one types them from the slides.

What is not on the slides: the data, a seed, ports that are free, fewer steps.
"""

# ruff: noqa: E501  (the slides put much on a line)

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.examples.tutorials.mnist import input_data
from headrace.test.cluster import free_ports

ROOT = pathlib.Path(__file__).resolve().parents[1]
MNIST = str(ROOT / "tests" / "data" / "mnist5k")


def _need_keras():
    if importlib.util.find_spec("keras") is None:
        pytest.skip("the extra keras is not installed")


@pytest.fixture(scope="module")
def mnist():
    return input_data.read_data_sets(MNIST, one_hot=True, reshape=False, validation_size=0)


def test_a_premade_estimator(tmp_path, mnist):
    pixels = tf.feature_column.numeric_column("x", shape=[28, 28, 1])
    x_train, y_train = mnist.train.images, mnist.train.labels.argmax(1)
    x_test, y_test = mnist.test.images, mnist.test.labels.argmax(1)

    def input_fn(x, y, epochs):
        dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        dataset = dataset.repeat(epochs).batch(64)
        return dataset.make_one_shot_iterator().get_next()

    # fmt: off
    classifier = tf.estimator.DNNClassifier(hidden_units=[64, 32], feature_columns=[pixels], n_classes=10, model_dir=str(tmp_path))
    classifier.train(input_fn=lambda: input_fn(x_train, y_train, 4))
    metrics = classifier.evaluate(input_fn=lambda: input_fn(x_test, y_test, 1))
    predictions = classifier.predict(input_fn=lambda: input_fn(x_test, y_test, 1))
    # fmt: on

    assert metrics["accuracy"] > 0.9
    found = [p["class_ids"][0] for p in predictions]
    assert np.mean(found == y_test) == pytest.approx(metrics["accuracy"])


def _dataset(part, epochs):
    data = tf.data.Dataset.from_tensor_slices((part.images, part.labels))
    return data.repeat(epochs).batch(64)


@pytest.mark.slow
def test_a_model_fn_of_keras_layers(tmp_path, mnist):
    _need_keras()

    def model_fn(features, labels, mode):
        # fmt: off
        model = tf.keras.models.Sequential([
            tf.keras.layers.Conv2D(32, (3, 3), activation='relu', input_shape=(28, 28, 1)),
            tf.keras.layers.MaxPooling2D((2, 2)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation='relu'),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10, activation='softmax'),
        ])
        predictions = model(features, training=mode == tf.estimator.ModeKeys.TRAIN)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        loss = tf.reduce_mean(tf.keras.losses.categorical_crossentropy(labels, predictions))
        accuracy = tf.metrics.accuracy(tf.argmax(labels, 1), tf.argmax(predictions, 1))
        train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops={'accuracy': accuracy})
        # fmt: on

    estimator = tf.estimator.Estimator(model_fn, model_dir=str(tmp_path))
    estimator.train(lambda: _dataset(mnist.train, None), steps=120)
    assert estimator.evaluate(lambda: _dataset(mnist.test, 1))["accuracy"] > 0.9
    first = next(estimator.predict(lambda: _dataset(mnist.test, 1)))
    assert first.shape == (10,)
    assert first.sum() == pytest.approx(1.0, abs=1e-5)


def _keras_model():
    # fmt: off
    model = tf.keras.models.Sequential([
        tf.keras.layers.Conv2D(32, (3, 3), activation='relu', input_shape=(28, 28, 1)),
        tf.keras.layers.MaxPooling2D((2, 2)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation='relu'),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10, activation='softmax'),
    ])
    model.compile(loss='categorical_crossentropy', optimizer='adam', metrics=['accuracy'])
    # fmt: on
    return model


def _accuracy(metrics):
    return metrics["acc" if "acc" in metrics else "accuracy"]


@pytest.mark.slow
def test_a_keras_model_as_an_estimator(tmp_path, mnist):
    _need_keras()
    model = _keras_model()
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    estimator.train(input_fn=lambda: _dataset(mnist.train, None), steps=120)
    assert _accuracy(estimator.evaluate(input_fn=lambda: _dataset(mnist.test, 1))) > 0.9


@pytest.mark.slow
def test_train_and_evaluate_of_a_keras_model(tmp_path, mnist):
    _need_keras()
    # fmt: off
    estimator = tf.keras.estimator.model_to_estimator(_keras_model(), model_dir=str(tmp_path))
    train_spec = tf.estimator.TrainSpec(input_fn=lambda: _dataset(mnist.train, None), max_steps=120)
    eval_spec = tf.estimator.EvalSpec(input_fn=lambda: _dataset(mnist.test, 1), steps=None)
    metrics, _ = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    # fmt: on
    assert _accuracy(metrics) > 0.9


def _last_accuracy(folder):
    """The accuracy that the evaluator wrote last."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag == "accuracy":
                    found[event.step] = value.simple_value
    assert max(found) >= 300
    return found[max(found)]


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(170)
def test_train_and_evaluate_on_a_cluster(tmp_path):
    """A worker at the chief's address, as the slide has it, is the chief."""
    host = [f"127.0.0.1:{port}" for port in free_ports(5)]
    # fmt: off
    cluster = {"chief": [host[0]], "worker": [host[0], host[1], host[2]], "ps": [host[3], host[4]]}
    # fmt: on
    tasks = [("ps", 0), ("ps", 1), ("chief", 0), ("worker", 1), ("worker", 2), ("evaluator", 0)]
    program = str(ROOT / "examples" / "train_and_evaluate.py")
    command = [sys.executable, "-m", "headrace", "run", program]
    command += ["--steps=300", f"--model_dir={tmp_path}/model"]
    processes = {}
    for kind, index in tasks:
        config = {"cluster": cluster, "task": {"type": kind, "index": index}}
        processes[kind, index] = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": json.dumps(config)},
        )
    try:
        printed = {}
        for task, process in processes.items():
            if task[0] != "ps":
                printed[task], errors = process.communicate(timeout=150)
                assert process.returncode == 0, (task, errors[-3000:])
        assert printed["chief", 0] == "chief 0 is done\n"
        assert _last_accuracy(tmp_path / "model" / "eval") > 0.9
        assert len(list((tmp_path / "model" / "export" / "final").iterdir())) == 1
        for index in (0, 1):  # servers end when the training has
            processes["ps", index].communicate(timeout=60)
            assert processes["ps", index].returncode == 0
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
