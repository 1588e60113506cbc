"""Modes that a launch is asked for, and scripts that distribute themselves."""

import re

import numpy as np
import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]

ESTIMATOR = """
import numpy as np
import tensorflow as tf

xs = np.random.RandomState(1).randn(30, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)

def model_fn(features, labels, mode):
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], w) - labels))
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

def read(times):
    return tf.data.Dataset.from_tensor_slices(({"x": xs}, ys)).batch(30).repeat(times)

estimator = tf.estimator.Estimator(model_fn, "model")
train = tf.estimator.TrainSpec(lambda: read(None), max_steps=12)
test = tf.estimator.EvalSpec(lambda: read(1), steps=None)
found = tf.estimator.train_and_evaluate(estimator, train, test)
print("w", *estimator.get_variable_value("w").ravel(), "at", found[0]["global_step"])
"""


def by_numpy(steps):
    """What gradient descent on all rows comes to."""
    xs = np.random.RandomState(1).randn(30, 4).astype(np.float32)
    ys, w = xs @ [1.0, -2.0, 3.0, 0.5], 0 * xs[0]
    for _ in range(steps):
        w = w - 0.1 * 2 / 30 * (xs @ w - ys) @ xs
    return w.tolist()


@pytest.mark.parametrize(
    "own", [(), ("--all-reduce",), ("--ps", "1", "--sync")], ids=["no servers", "all", "sync"]
)
def test_estimators_train_and_evaluate_in_the_mode_that_was_asked_for(launch, own):
    status, output, errors = launch(ESTIMATOR, "--workers", "2", *own, "script.py").end()
    assert status == 0, output + errors
    found = re.findall(r"\] w (.*) at 12", output)
    expected = [pytest.approx(by_numpy(12), rel=1e-3)] * 2
    assert [[float(v) for v in line.split()] for line in found] == expected


def test_a_script_that_names_train_and_evaluate_and_only_trains(launch):
    both = "found = tf.estimator.train_and_evaluate(estimator, train, test)"
    train = "estimator.train(train.input_fn, max_steps=12)"
    evaluate = "found = [estimator.evaluate(lambda: read(1))]"
    text = ESTIMATOR.replace(both, f"if False:\n    {both}\n{train}\n{evaluate}")
    status, output, errors = launch(text, "--workers", "2", "script.py").end()
    assert status == 0, output + errors
    assert len(re.findall(r"\] w .* at 12", output)) == 2
    status, output, errors = launch(text, "--workers", "1", "--ps", "1", "script.py").end()
    assert status == 1
    assert "Or let `headrace launch` spread it over the workers: with --sync." in output + errors


def test_a_mode_that_is_not_heeded_is_named_before_the_first_step(launch):
    text = "import sys\nsigns = ['ClusterSpec']\n"
    status, _, errors = launch(text, "--workers", "1", "--ps", "1", "--sync", "script.py").end()
    assert status == 0
    told = "script.py names ClusterSpec (script.py, line 2), so it distributes itself"
    assert f"headrace: {told}: --sync is not heeded." in errors
