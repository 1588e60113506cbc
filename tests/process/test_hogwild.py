"""Processes that train the same variables at once, without waiting for each other: Hogwild.

Niu et al., "Hogwild!" (2011), train without locks: updates that add up must all be there at the
end, in whatever order they came, and no row may be half of one update and half of another.
"""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from task_processes import PATIENCE, Tasks

import headrace as tf

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

WORKERS, STEPS, ROWS = 2, 100, 40

_WORK = """
import json, sys
import numpy as np
import headrace as tf
cluster, index, locking = json.loads(sys.argv[1]), int(sys.argv[2]), bool(int(sys.argv[3]))
with tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(cluster))):
    step = tf.train.get_or_create_global_step()
    dense = tf.get_variable("dense", initializer=tf.zeros([1000]))
    table = tf.get_variable("table", initializer=tf.zeros([40, 64]))
ids = tf.placeholder(tf.int64, [None])
rows = tf.nn.embedding_lookup(table, ids)
same = tf.reduce_all(tf.equal(rows, rows[:, :1])), tf.reduce_all(tf.equal(dense, dense[0]))
loss = tf.reduce_sum(dense) + tf.reduce_sum(rows)
sgd = tf.train.GradientDescentOptimizer(1.0, use_locking=locking)
train = sgd.minimize(loss, global_step=step)
random = np.random.RandomState(index)
target = "grpc://" + cluster["worker"][index]
with tf.train.MonitoredTrainingSession(target, index == 0, log_step_count_steps=None) as session:
    print("ready", flush=True)
    sys.stdin.readline()
    counts = np.zeros(40, int)
    for _ in range(int(sys.argv[4])):
        batch = random.randint(0, 40, random.randint(1, 30))
        np.add.at(counts, batch, 1)
        _, whole = session.run([train, same], {ids: batch})
        assert all(whole), "half of an update was read"
    print(json.dumps(counts.tolist()), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("locking", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_processes_lose_no_update_and_tear_no_row(locking):
    tasks = Tasks({"ps": 1, "worker": WORKERS})
    options = (str(int(locking)), str(STEPS))
    work = [
        tasks.run((), _WORK, json.dumps(tasks.addresses), str(i), *options, stdin=subprocess.PIPE)
        for i in range(WORKERS)
    ]
    try:
        for process in work:
            assert process.stdout.readline() == "ready\n"
        for process in work:
            process.stdin.write("go\n")
            process.stdin.flush()
        counts = sum(np.array(json.loads(process.stdout.readline())) for process in work)
        with tf.device("/job:ps/task:0"):
            step = tf.get_variable("global_step", initializer=np.int64(0))
            dense = tf.get_variable("dense", initializer=tf.zeros([1000]))
            table = tf.get_variable("table", initializer=tf.zeros([ROWS, 64]))
        with tf.Session(tasks.target("worker", 0)) as session:
            steps, values, rows = session.run([step, dense, table])
        assert steps == WORKERS * STEPS
        np.testing.assert_array_equal(values, np.full(1000, -WORKERS * STEPS, np.float32))
        np.testing.assert_array_equal(rows, np.repeat(-np.float32(counts)[:, None], 64, 1))
        for process in work:
            process.communicate("end\n", timeout=PATIENCE)
            assert process.returncode == 0
    finally:
        for process in work:
            process.kill()
            process.communicate()
        tasks.kill_all()
