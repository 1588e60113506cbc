"""Servers of plain scripts that are killed in the first seconds of a launch."""

import os
import re
import signal
from pathlib import Path

import pytest
from launches import eventually

pytestmark = [pytest.mark.process, pytest.mark.slow]

SCRIPT = """
import numpy as np
import tensorflow as tf

x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
w = tf.Variable([[0.0]])
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
xs = np.ones((8, 1), np.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(600):
        sess.run(train, {x: xs, y: 3 * xs})
        if i == 100:
            print("trains", flush=True)
    print("w", *sess.run(w).ravel())
"""


def _parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _first_server(run):
    """The first process that the launch has started for a task."""
    ours = run.ours()
    (starter,) = [p for p in ours if p != run.process.pid and _parent(p) == run.process.pid]
    return min(p for p in ours if p != run.process.pid and _parent(p) == starter)


@pytest.mark.parametrize(
    "own",
    [(), ("--standby",), ("--sync",), ("--sync", "--standby")],
    ids=["alone", "with standby", "synchronous", "synchronous with standby"],
)
def test_workers_that_fail_by_the_loss_of_a_server_are_started_again(launch, own):
    run = launch(SCRIPT, "--ps", "2", "--workers", "2", *own, "script.py")
    eventually(lambda: "trains" in run.log("worker/0"))
    os.kill(_first_server(run), signal.SIGKILL)
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert "headrace: ps/0 has ended: signal SIGKILL. It is started again" in errors
    assert [float(w) for w in re.findall(r"\] w (.*)", output)] == [pytest.approx(3, rel=1e-3)] * 2
