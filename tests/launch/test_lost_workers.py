"""A plain script loses a worker in one of several trainings."""

import re
import signal

import pytest
from launches import eventually

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


@pytest.mark.parametrize("victim", [0, 1], ids=["chief", "other"])
def test_the_others_do_not_wait_for_a_worker_that_was_killed(launch, victim):
    """If it was the chief, another one saves."""
    run = launch(
        SCRIPT.replace("VICTIM", str(victim)), "--workers", "3", "--all-reduce", "script.py"
    )
    status, output, errors = run.end()
    assert status == 137, output + errors
    words = f"worker/{victim} has ended: signal SIGKILL. The others go on without it."
    assert words in errors
    assert "started again" not in errors
    for other in {0, 1, 2} - {victim}:
        found = re.findall(r"evaluated (\d+) (\S+)", run.log(f"worker/{other}"))
        assert [int(step) for step, _ in found] == [20, 40, 60]
        assert float(found[-1][1]) < 1e-3
    assert "Not all workers have ended their training yet" not in output
    told = "The chief (worker 0) was lost: worker 1 has its duties from now on." in output
    assert told == (victim == 0)


@pytest.mark.parametrize("victim", [0, 1], ids=["chief", "other"])
def test_a_worker_that_is_killed_before_its_group_begins_is_started_again(launch, victim):
    """Whoever has begun waits for all: without that nobody would ever train."""
    text = SCRIPT.replace("VICTIM", "-1").replace(
        "xs = ",
        f"if share.current().worker == {victim} and os.environ['HEADRACE_STARTS'] == '1':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\nxs = ",
        1,
    )
    run = launch(text, "--workers", "2", "--all-reduce", "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert f"the others wait for worker/{victim}, without which their group" in errors
    for worker in (0, 1):
        assert re.findall(r"evaluated (\d+) ", run.log(f"worker/{worker}")) == ["20", "40", "60"]


@pytest.mark.parametrize("victim", [0, 1], ids=["chief", "other"])
@pytest.mark.parametrize("mode", [(), ("--sync",)], ids=["async", "sync"])
def test_who_was_started_again_leaves_out_what_the_others_have_trained(launch, mode, victim):
    text = SCRIPT.replace("VICTIM", str(victim))
    run = launch(text, "--ps", "1", "--workers", "2", *mode, "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    first, second = run.log(f"worker/{victim}").split("--- start 2 ---")
    assert "evaluated 2" in first
    assert "Skipping training since other workers have made it." in second
    for log in (second, run.log(f"worker/{1 - victim}")):
        step, loss = re.findall(r"evaluated (\d+) (\S+)", log)[-1]
        # Another worker may make its last step before it sees that the training is over.
        assert 60 <= int(step) <= 65
        assert float(loss) < 1e-3


EXPORT = """
import os
import numpy as np
import tensorflow as tf

x = np.float32([[1.0], [2.0]])

def model(features, labels, mode):
    y = tf.layers.dense(features["x"], 1)
    loss = None if labels is None else tf.losses.mean_squared_error(labels, y)
    train = None
    if mode == "train":
        step = tf.train.get_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, predictions=y, loss=loss, train_op=train)

def receiver():
    x = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

estimator = tf.estimator.Estimator(model, "model")
def data():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 2.0 * x)).repeat().batch(2)

estimator.train(data, steps=5)
for k in range(2):
    path = tf.compat.as_str(estimator.export_savedmodel("exports", receiver))
    print("exported", k, path, os.path.exists(path + "/saved_model.pb"))
"""


@pytest.mark.parametrize("mode", [("--ps", "1"), ("--all-reduce",)], ids=["async", "all-reduce"])
def test_all_workers_find_the_model_that_the_chief_has_exported(launch, mode):
    status, output, errors = launch(EXPORT, "--workers", "2", *mode, "script.py").end()
    assert status == 0, output + errors
    found = sorted(re.findall(r"exported (\d) (\S+) True", output))
    assert [k for k, _ in found] == ["0", "0", "1", "1"]
    assert len(set(found)) == 2


SESSIONS = """
import os, signal
import tensorflow as tf
from headrace.ops.state import share

for training in range(4):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(w * x))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        hooks = [tf.train.StopAtStepHook(last_step=4)] if training < 3 else []
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train, {x: [1.0, 2.0]})
                is_victim = share.current().worker == VICTIM
                if training == 3 and is_victim and os.environ["HEADRACE_STARTS"] == "1":
                    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("victim", ["0", "1"])
def test_sessions_whose_variables_are_freed_are_not_waited_for(launch, victim):
    script = SESSIONS.replace("VICTIM", victim)
    run = launch(script, "--sync", "--ps", "1", "--workers", "2", "script.py")
    said = "a worker that was started again repeats a training which the others have left"
    eventually(lambda: f"{said} (script.py, line 14)" in run.log(f"worker/{victim}"))
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 143
