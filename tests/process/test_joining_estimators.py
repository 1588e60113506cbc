"""`train_and_evaluate` of a process that knows a running job by an address only."""

import json
import os
import subprocess
import sys
import threading

import pytest
from task_processes import eventually

import headrace as tf
from headrace.distributed.services import admin
from headrace.test.cluster import free_ports

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(240)]

_PROGRAM = """
import sys
import numpy as np
import headrace as tf

def model_fn(features, labels, mode, config):
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

def input_fn():
    x = np.random.RandomState(1).normal(size=[64, 3]).astype(np.float32)
    y = x @ np.float32([[1.0], [-2.0], [0.5]])
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)

class Counted(tf.train.SessionRunHook):
    def after_run(self, context, values):
        print("step", flush=True)

config = tf.estimator.RunConfig(
    model_dir=sys.argv[1], log_step_count_steps=None, experimental_max_worker_delay_secs=0
)
print(config.task_type, config.task_id, flush=True)
estimator = tf.estimator.Estimator(model_fn, config=config)
training = tf.estimator.TrainSpec(input_fn, max_steps=int(sys.argv[2]), hooks=[Counted()])
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(input_fn, steps=1))
print("ended", flush=True)
"""


class Process:
    """A process of the program; ``lines`` are what it has printed."""

    def __init__(self, model_dir, most, **config):
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(model_dir), str(most)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": json.dumps(config)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.strip())

    def trains(self):
        wanted = len(self.lines) + 20
        eventually(lambda: len(self.lines) > wanted, 60)

    def ends(self):
        assert self.process.wait(100) == 0
        self._reader.join()
        assert self.lines[-1] == "ended"


def test_a_newcomer_trains_is_asked_to_leave_and_another_one_sees_the_end(tmp_path):
    ports = free_ports(2)
    cluster = {"chief": [f"127.0.0.1:{ports[0]}"], "ps": [f"127.0.0.1:{ports[1]}"]}
    (contact,) = cluster["ps"]
    made = []

    def start(most, **config):
        made.append(Process(tmp_path, most, **config))
        return made[-1]

    most = 20000
    try:
        server = start(most, cluster=cluster, task={"type": "ps", "index": 0})
        chief = start(most, cluster=cluster, task={"type": "chief", "index": 0})
        chief.trains()
        joining = {"cluster_address": contact, "task": {"type": "worker"}}
        one = start(most, **joining)
        one.trains()
        assert one.lines[0] == "worker 0"
        answer = admin.resize(contact, {"chief": 1, "worker": 1})
        assert not answer.leaving
        other = start(most, **joining)
        eventually(lambda: other.lines[:1] == ["worker 1"], 60)
        answer = admin.resize(contact, {"worker": 1})
        assert list(answer.leaving) == ["/job:worker/replica:0/task:1"]
        other.ends()
        chief.trains()
        for process in (one, chief, server):
            process.ends()
    finally:
        for process in made:
            process.process.kill()
            process.process.wait()
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(path, "global_step") >= most
