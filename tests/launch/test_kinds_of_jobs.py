"""`headrace launch` with an evaluator, copies of servers, and workers that come and go."""

import json
import os
import signal

import pytest
from launches import CLUSTER, eventually

from headrace.distributed.services import admin

pytestmark = [pytest.mark.process, pytest.mark.slow]

ESTIMATOR = """
import sys
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.INFO)

def model_fn(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features * w - 2.0 * features))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, features, loss, train)

def numbers():
    return tf.data.Dataset.range(8).map(tf.to_float).batch(4).repeat(2000)

config = tf.estimator.RunConfig(
    "model", save_checkpoints_steps=200, experimental_max_worker_delay_secs=0
)
print("I am", config.task_type, config.task_id)
tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(numbers, max_steps=400),
    tf.estimator.EvalSpec(numbers, steps=2, start_delay_secs=0, throttle_secs=0),
)
"""

TELLING = f"""
import os
print("process", os.getpid())
print("TF_CONFIG=" + os.environ["TF_CONFIG"])
{CLUSTER}
"""


def test_an_estimator_trains_on_workers_and_is_evaluated(launch):
    run = launch(ESTIMATOR, "--ps", "1", "--workers", "2", "--evaluator", "script.py")
    status, output, errors = run.end()
    assert status == 0, output + errors
    for who in ("ps/0] I am ps 0", "worker/0] I am chief 0", "worker/1] I am worker 1"):
        assert f"[{who}" in output
    assert "[evaluator/0] I am evaluator 0" in output
    assert "Saving dict for global step 4" in run.log("evaluator/0")


def test_no_update_is_lost_with_a_standby(launch):
    run = launch(TELLING, "--ps", "2", "--workers", "2", "--standby", "script.py", "100000000")
    eventually(lambda: "loss:" in run.log("worker/0"))
    eventually(lambda: _are_copied(_address(run, 1)))
    os.kill(int(run.log("ps/0").split("process ")[1].split()[0]), signal.SIGKILL)
    eventually(lambda: "--- start 2 ---" in run.log("ps/0"))
    eventually(lambda: all(_steps(run, task) for task in ("worker/0", "worker/1")))
    before = {task: _steps(run, task)[-1] for task in ("worker/0", "worker/1")}
    for task, step in before.items():
        eventually(lambda task=task, step=step: _steps(run, task)[-1] > step)
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 143
    for task in before:
        assert _steps(run, task) == sorted(_steps(run, task))


def _steps(run, task):
    """The steps that a worker has told."""
    lines = [line for line in run.log(task).splitlines() if line.startswith("step ")]
    return [int(line.split()[1]) for line in lines[:-1]]


@pytest.mark.timeout(300)
def test_workers_come_and_go_as_the_cluster_is_resized(launch):
    run = launch(TELLING, "--ps", "1", "--elastic", "1:3", "script.py", "100000000")
    eventually(lambda: "loss:" in run.log("worker/0"))
    address = _address(run)
    admin.resize(address, {"worker": 3})
    eventually(lambda: "loss:" in run.log("worker/1") and "loss:" in run.log("worker/2"))
    # One that has joined is started again as well.
    os.kill(int(run.log("worker/2").split("process ")[1].split()[0]), signal.SIGKILL)
    eventually(lambda: "loss:" in run.log("worker/2").partition("--- start 2 ---")[2])
    admin.resize(address, {"worker": 1})
    notes = run.folder / "headrace-launch" / "launcher.log"
    for task in ("worker/1", "worker/2"):
        words = f"{task} has left, as it was asked to"
        eventually(lambda words=words: words in notes.read_text())
    admin.resize(address, {"worker": 2})
    eventually(lambda: "loss:" in run.log("worker/1").partition("--- start 2 ---")[2])
    run.process.send_signal(signal.SIGTERM)
    status, _, errors = run.end()
    assert status == 143
    for words in ("worker/2 is wanted and is started", "worker/1 has left, as it was asked to"):
        assert words in errors


ALL_REDUCE = """
import json, os, sys
from pathlib import Path
import headrace as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), job, index)
if job == "ps":
    server.join()
    sys.exit()
print("process", os.getpid())
if Path(f"seen-{index}").exists():
    open("others-are-done").read()  # until somebody has written
Path(f"seen-{index}").touch()
with tf.device(f"/job:worker/task:{index}"):
    w = tf.get_variable("w", initializer=tf.zeros([10]))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(0.01), 2)
    train = optimizer.minimize(tf.reduce_sum(tf.square(w - 1.0)), step)
hooks = [optimizer.make_session_run_hook(index == 0)]
with tf.train.MonitoredTrainingSession(server.target, is_chief=True, hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
        print("a step", flush=True)
        if Path("enough").exists():
            break
"""


def test_a_worker_that_comes_back_to_a_group_whose_members_have_ended(launch, tmp_path):
    os.mkfifo(tmp_path / "others-are-done")
    run = launch(ALL_REDUCE, "--ps", "1", "--workers", "2", "script.py")
    eventually(lambda: all("a step" in run.log(f"worker/{i}") for i in (0, 1)))
    os.kill(int(run.log("worker/1").split("process ")[1].split()[0]), signal.SIGKILL)
    (tmp_path / "enough").touch()
    notes = tmp_path / "headrace-launch" / "launcher.log"
    eventually(lambda: "worker/0 is done" in notes.read_text())
    (tmp_path / "others-are-done").write_text("now")
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert "worker/1 was started again, and waits for those that have ended" in errors


def _are_copied(address):
    """Whether each server's variables have a copy that is complete."""
    copies = [task.copy for task in admin.status(address) if "/job:ps/" in task.task]
    return len(copies) == 2 and all("protected" in copy for copy in copies)


def _address(run, index=0):
    """Of a server, as the tasks know it."""
    config = run.log(f"ps/{index}").split("TF_CONFIG=")[1].split("\n")[0]
    return json.loads(config)["cluster"]["ps"][index]
