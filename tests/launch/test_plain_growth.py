"""A plain script of `headrace launch --elastic` that workers come to in the middle of training."""

import re

import pytest
from launches import eventually

from headrace.distributed.services import admin

pytestmark = [pytest.mark.process, pytest.mark.slow]

#: Those of the beginning wait in the middle until the one that joins has made some steps.
SCRIPT = """
import pathlib, threading
import numpy as np
import tensorflow as tf
from headrace.ops.state import share

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
rank, joined = share.current().worker, pathlib.Path("joined")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(40):
        if rank < 2 and i >= 30:
            while not joined.exists():
                sess.run(train, {x: xs, y: ys})
        sess.run(train, {x: xs, y: ys})
        if i == 5:
            pathlib.Path(f"trains_{rank}").touch()
            if rank == 2:
                joined.touch()
                break
    print("w", *sess.run(w).ravel())
"""


@pytest.mark.parametrize("mode", [(), ("--sync",), ("--sync", "--backup", "1")])
def test_a_worker_joins_in_each_mode(launch, mode):
    options = ("--ps", "1", "--workers", "2", *mode, "--elastic", "1:3", "script.py")
    run = launch(SCRIPT, *options)
    address = re.search(r"at (\S+:\d+)", run.process.stderr.readline()).group(1)
    eventually(lambda: all((run.folder / f"trains_{i}").exists() for i in range(2)))
    admin.resize(address, {"worker": 3})
    status, output, errors = run.end()
    assert status == 0, output + errors
    found = re.findall(r"\[worker/(\d)\] w (.*)", output)
    assert sorted(worker for worker, _ in found) == ["0", "1", "2"]
    for _, line in found:
        assert [float(v) for v in line.split()] == pytest.approx([1.0, -2.0, 3.0, 0.5], abs=0.1)
