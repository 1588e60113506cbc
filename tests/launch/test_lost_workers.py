"""A plain script without servers loses a worker in one of several trainings of an Estimator."""

import re

import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]

SCRIPT = """
import os, signal
import numpy as np
import tensorflow as tf
from headrace.ops.state import share

tf.logging.set_verbosity(tf.logging.INFO)
xs = np.random.RandomState(3).normal(size=(200, 3)).astype(np.float32)
ys = xs.sum(1, keepdims=True)

def model(features, labels, mode):
    y = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, y)
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, predictions=y, loss=loss, train_op=train)

def data(count=None):
    return tf.data.Dataset.from_tensor_slices((xs, ys)).repeat(count).batch(20)

class Killed(tf.train.SessionRunHook):
    steps = 0

    def after_run(self, context, values):
        self.steps += 1
        if self.steps == 5 and share.current().worker == VICTIM and FIRST_LIFE:
            os.kill(os.getpid(), signal.SIGKILL)

FIRST_LIFE = os.environ["HEADRACE_STARTS"] == "1"
estimator = tf.estimator.Estimator(model, "model")
for k in range(3):
    estimator.train(data, steps=20, hooks=[Killed()] if k == 1 else [])
    found = estimator.evaluate(lambda: data(1))
    print("evaluated", int(found["global_step"]), float(found["loss"]))
"""


def test_the_others_do_not_wait_for_a_worker_that_was_killed(launch):
    run = launch(SCRIPT.replace("VICTIM", "1"), "--workers", "2", "--all-reduce", "script.py")
    status, output, errors = run.end()
    assert status == 137, output + errors
    assert "worker/1 has ended: signal SIGKILL. The others go on without it." in errors
    found = re.findall(r"evaluated (\d+) (\S+)", run.log("worker/0"))
    assert [int(step) for step, _ in found] == [20, 40, 60]
    assert float(found[-1][1]) < 1e-3
    assert "Not all workers have ended their training yet" not in output


def test_without_its_chief_a_script_begins_again_from_the_last_checkpoint(launch):
    run = launch(SCRIPT.replace("VICTIM", "0"), "--workers", "2", "--all-reduce", "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert "all are started again" in errors
    first, second = run.log("worker/1").split("--- start 2 ---")
    assert "The chief has ended: nobody saves what was trained since it last did." in first
    assert re.findall(r"evaluated (\d+) ", second) == ["40", "60", "80"]
