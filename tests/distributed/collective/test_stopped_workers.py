"""Real processes: one is stopped for so long that it is taken for dead, and then goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from headrace.test.cluster import free_ports

pytestmark = [pytest.mark.process]

#: Trains with all workers, again and again, and says the step and how many values were added up.
_WORKER = """
import sys
import headrace as tf
index, addresses = int(sys.argv[1]), sys.argv[2].split(",")
cluster = tf.train.ClusterSpec({"worker": addresses})
server = tf.train.Server(cluster, job_name="worker", task_index=index)
with tf.device(f"/job:worker/task:{index}"):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=[float(index)])
    optimizer = tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(0.01), 3)
    train = optimizer.minimize(tf.square(w), global_step=step)
    here = tf.collective.all_reduce(tf.constant(1.0), 3, 1, 7, merge_op="Add", final_op="Id")
hook = optimizer.make_session_run_hook(index == 0)
with tf.train.MonitoredTrainingSession(server.target, True, hooks=[hook]) as sess:
    while True:
        print(*sess.run([step, here, train])[:2], flush=True)
"""


def _read_until(worker: subprocess.Popen[str], members: float) -> int:
    """The step of the first line with so many members."""
    assert worker.stdout is not None
    for line in worker.stdout:
        step, here = line.split()
        if float(here) == members:
            return int(step)
    raise AssertionError(f"the worker ended with {worker.wait()}")


@pytest.mark.parametrize("stopped", [0, 2])
def test_a_stopped_worker_joins_again(stopped):
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(i), addresses],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        for i in range(3)
    ]
    try:
        for worker in workers:
            assert _read_until(worker, 3.0) >= 0
        workers[stopped].send_signal(signal.SIGSTOP)
        others = [w for i, w in enumerate(workers) if i != stopped]
        left = [_read_until(worker, 2.0) for worker in others]
        workers[stopped].send_signal(signal.SIGCONT)
        for worker in others:
            assert _read_until(worker, 3.0) > max(left)
        # What it said before it was stopped is read first.
        assert workers[stopped].stdout is not None
        assert any(int(line.split()[0]) > max(left) for line in workers[stopped].stdout)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
