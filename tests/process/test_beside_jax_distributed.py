"""Sessions and groups of workers in processes that have joined JAX's multi-process runtime."""

import json
import subprocess
import sys

import pytest
from task_processes import PATIENCE

from headrace.test.cluster import free_ports

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(100)]

_WORKER = """
import json, sys
import jax
addresses, coordinator, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(coordinator, 2, index)
import headrace as tf
server = tf.train.Server(addresses, job_name="worker", task_index=index)
with tf.device(f"/job:worker/task:{index}"):
    w = tf.get_variable("w", initializer=tf.fill([50], float(index)))
    loss = tf.reduce_sum(w) * (index + 1.0)
    optimizer = tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    train = optimizer.minimize(loss)
hook = optimizer.make_session_run_hook(is_chief=index == 0)
with tf.train.MonitoredTrainingSession(server.target, hooks=[hook]) as sess:
    for _ in range(3):
        sess.run(train)
    learned = sess.run(w).tolist()
with tf.Graph().as_default(), tf.Session() as alone:
    own = len(alone.list_devices())
print(json.dumps([len(jax.devices()), own, learned]))
"""


def test_sessions_use_the_devices_of_their_own_process():
    *ports, coordinator = free_ports(3)
    addresses = json.dumps({"worker": [f"127.0.0.1:{port}" for port in ports]})
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, addresses, f"127.0.0.1:{coordinator}", str(i)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    try:
        for process in processes:
            words, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
            assert json.loads(words.splitlines()[-1]) == [2, 1, [-4.5] * 50]
    finally:
        for process in processes:
            process.kill()
            process.wait(PATIENCE)
