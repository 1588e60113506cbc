"""Synchronous training through Estimators, in processes that TF_CONFIG makes a cluster of."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.test.cluster import free_ports

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

_PROGRAM = """
import json, os, sys
import numpy as np
import headrace as tf
task = json.loads(os.environ["TF_CONFIG"])["task"]
batches, last = int(sys.argv[2]), int(sys.argv[3])

def model_fn(features, labels, mode, config):
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    found = tf.matmul(features, w)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, found)
    loss = tf.reduce_mean(tf.square(found - labels))
    opt = tf.train.GradientDescentOptimizer(0.1)
    opt = tf.train.SyncReplicasOptimizer(opt, config.num_worker_replicas)
    train = opt.minimize(loss, global_step=tf.train.get_global_step())
    hook = opt.make_session_run_hook(config.is_chief, num_tokens=0)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, training_hooks=[hook])

def input_fn():
    rng = np.random.RandomState(1 if task["type"] == "chief" else 2)
    x = rng.normal(size=[batches * 8, 3]).astype(np.float32)
    y = x @ np.float32([[1.0], [-2.0], [0.5]])
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)

config = tf.estimator.RunConfig(model_dir=sys.argv[1], tf_random_seed=1, log_step_count_steps=None)
estimator = tf.estimator.Estimator(model_fn, config=config)
training = tf.estimator.TrainSpec(input_fn, max_steps=last)
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(input_fn, steps=1))
"""


def alone(steps):
    """What one process learns from the batches of both."""
    x = [np.random.RandomState(seed).normal(size=[steps * 8, 3]).astype("f4") for seed in (1, 2)]
    x = np.concatenate([part.reshape(steps, 8, 3) for part in x], 1)
    y = x @ np.float32([[1.0], [-2.0], [0.5]])
    w = np.zeros([3, 1], np.float32)
    for i in range(steps):
        w -= 0.1 * 2 * x[i].T @ (x[i] @ w - y[i]) / 16
    return w


def train(model_dir, batches, last):
    """Processes of a chief, a worker and a server; ``batches``: of the chief and the worker."""
    ports = free_ports(3)
    addresses = [[f"127.0.0.1:{port}"] for port in ports]
    cluster = dict(zip(("chief", "worker", "ps"), addresses, strict=True))
    processes = {}
    for kind, own in (("ps", 1), ("chief", batches[0]), ("worker", batches[1])):
        config = {"cluster": cluster, "task": {"type": kind, "index": 0}}
        processes[kind] = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(model_dir), str(own), str(last)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": json.dumps(config)},
        )
    try:
        for kind in ("chief", "worker", "ps"):
            _, errors = processes[kind].communicate(timeout=100)
            assert processes[kind].returncode == 0, (kind, errors[-3000:])
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
    path = tf.train.latest_checkpoint(str(model_dir))
    return [tf.train.load_variable(path, name) for name in ("global_step", "w")]


@pytest.mark.slow
def test_what_two_learn_is_what_one_learns_from_both(tmp_path):
    step, w = train(tmp_path, batches=(20, 20), last=12)
    assert step == 12
    np.testing.assert_allclose(w, alone(12), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("batches", "least"), [((4, 40), 4), ((40, 4), 30)])
def test_one_has_no_more_batches(batches, least, tmp_path):
    """A chief ends the training with its batches; with those of a worker the others go on."""
    step, w = train(tmp_path, batches, last=30)
    assert least <= step <= 30
    assert np.isfinite(w).all()
