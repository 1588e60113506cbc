"""Real processes: one is killed in the middle of an all-reduce, the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from headrace.test.cluster import free_ports

pytestmark = [pytest.mark.process, pytest.mark.slow]

#: Sums 8 MB over all workers, again and again, and says what an element of the sum is.
_WORKER = """
import sys
import headrace as tf
index, addresses = int(sys.argv[1]), sys.argv[2].split(",")
cluster = tf.train.ClusterSpec({"worker": addresses})
server = tf.train.Server(cluster, job_name="worker", task_index=index)
with tf.device(f"/job:worker/task:{index}"):
    total = tf.collective.all_reduce(tf.fill([2_000_000], 10.0 ** index), len(addresses), 1, 1)
    shown = tf.stack([tf.reduce_min(total), tf.reduce_max(total)])
with tf.Session(server.target) as sess:
    while True:
        print(*sess.run(shown), flush=True)
"""


def _is_said(worker: subprocess.Popen[str], text: str) -> bool:
    assert worker.stdout is not None
    return any(line.strip() == text for line in worker.stdout)


@pytest.mark.parametrize(("killed", "sign"), [(2, signal.SIGKILL), (0, signal.SIGKILL)])
def test_the_others_go_on_within_five_seconds(killed, sign):
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
            assert _is_said(worker, "111.0 111.0")
        began = time.monotonic()
        workers[killed].send_signal(sign)
        left = 111.0 - 10.0**killed
        for i, worker in enumerate(workers):
            if i != killed:
                assert _is_said(worker, f"{left} {left}")
        assert time.monotonic() - began < 5
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
