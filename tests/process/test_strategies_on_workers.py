"""An Estimator with a strategy, in real processes: equal to the plain one on the whole batch."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.test.cluster import free_ports

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="starts processes"),
    pytest.mark.timeout(120),
]

PROGRAM = """
import json, os, sys
import numpy as np
import headrace as tf

X = np.linspace(-1, 1, 24).reshape(12, 2).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0]], np.float32) + 0.5).astype(np.float32)

def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1, kernel_initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(labels, out)
    train = tf.train.AdagradOptimizer(0.3).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, out, loss, train)

def batches(count, index):
    return lambda: tf.data.Dataset.from_tensor_slices((X, Y)).shard(count, index).batch(
        12 // count).repeat()

def main(kind, folder, steps):
    if kind == "plain":
        config = tf.estimator.RunConfig()
        given = batches(1, 0)
    else:
        if kind == "collective":
            strategy = tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0)
        else:
            strategy = tf.distribute.experimental.ParameterServerStrategy()
        config = tf.estimator.RunConfig(
            train_distribute=strategy, experimental_max_worker_delay_secs=0)
        shards = (2, int(config.global_id_in_cluster or 0)) if kind == "collective" else (1, 0)
        given = batches(*shards)
    estimator = tf.estimator.Estimator(model_fn, folder, config)
    spec = tf.estimator.TrainSpec(given, max_steps=steps)
    tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(given, steps=1))

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


@pytest.fixture
def start(tmp_path):
    """Starts the program as the tasks of a cluster, and waits for their end."""
    processes = []

    def run(kind, cluster, folder, steps):
        ports = iter(free_ports(sum(cluster.values())))
        addresses = {
            job: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for job, n in cluster.items()
        }
        for job, count in cluster.items():
            for index in range(count):
                config = {"cluster": addresses, "task": {"type": job, "index": index}}
                command = [sys.executable, "-c", PROGRAM, kind, str(folder), str(steps)]
                environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
                with open(tmp_path / f"{job}{index}.log", "w") as log:
                    processes.append(
                        subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                    )
        for process in processes:
            assert process.wait(100) == 0, logs(tmp_path)
        return folder

    yield run
    for process in processes:
        process.kill()
        process.wait()


def logs(folder):
    return "\n".join(f"{p.name}: {p.read_text()[-3000:]}" for p in folder.glob("*.log"))


def plain(folder, steps):
    space = {"__name__": "plain"}
    exec(PROGRAM, space)
    space["main"]("plain", str(folder), steps)
    tf.summary.FileWriterCache.clear()
    return values(folder)


def values(folder):
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.slow
def test_two_workers_that_reduce(start, tmp_path):
    found = values(start("collective", {"worker": 2}, tmp_path / "two", 10))
    wanted = plain(tmp_path / "one", 10)
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_two_workers_and_a_parameter_server(start, tmp_path):
    """Asynchronous: each step is one of a worker, so the model is that of as many steps or so."""
    found = values(start("ps", {"ps": 1, "chief": 1, "worker": 1}, tmp_path / "two", 200))
    wanted = plain(tmp_path / "one", 200)
    assert sorted(found) == sorted(wanted)
    assert found["global_step"] >= 200
    for name in ("dense/kernel", "dense/bias"):
        np.testing.assert_allclose(found[name], wanted[name], atol=0.1, err_msg=name)
