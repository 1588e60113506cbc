"""Steps that change variables in the middle of a training that is synchronous: who waits for the
others' part in such a step is no part of updates that others wait for."""

import re

import numpy as np
import pytest

pytestmark = [pytest.mark.process, pytest.mark.slow]

MODEL = """
import os, pathlib, signal, threading
import numpy as np
import tensorflow as tf
from headrace.ops.state import share

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
rate = tf.get_variable("rate", [], initializer=tf.constant_initializer(0.1), trainable=False)
lower = rate.assign(0.05)
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(rate).minimize(loss, step)
rank, wait = share.current().worker, threading.Event().wait

def train_by(sess, i):
    rows = slice(i % 3 * 20, i % 3 * 20 + 20)
    sess.run(train, {x: xs[rows], y: ys[rows]})
"""

RUNS = f"""{MODEL}
with tf.Session() as sess:
    for run in range(2):
        sess.run(tf.global_variables_initializer())
        for i in range(12):
            train_by(sess, i)
        print("w", *sess.run(w).ravel(), "after", sess.run(step))
"""

#: The chief is killed, and has begun again before the other worker comes to the assignment.
KILLED = f"""{MODEL}
killed, again = pathlib.Path("killed"), pathlib.Path("again")
was_killed = rank == 0 and killed.exists()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(100):
        if was_killed and i == 5:
            again.touch()
        elif rank == 0 and i == 10 and not was_killed:
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while rank == 1 and i == 20 and not again.exists():
            wait(0.02)
        if i == 50:
            sess.run(lower.op)
        train_by(sess, i)
    print("w", *sess.run(w).ravel(), "after", sess.run(rate))
"""

#: The chief is slow: an update has the gradients of the others.
SLOW = f"""{MODEL}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(120):
        if i % 20 == 10 and CHANGES:
            sess.run(CHANGE)
        wait(0.02 if rank == 0 else 0.002)
        train_by(sess, i)
    print("w", *sess.run(w).ravel(), "after", sess.run(rate))
"""

TRUE = [1.0, -2.0, 3.0, 0.5]


def ends(run):
    """What each worker has printed: the variable, and a number."""
    status, output, errors = run.end()
    assert status == 0, output + errors
    found = re.findall(r"\] w (.*) after (.*)", output)
    return [([float(v) for v in w.split()], float(n)) for w, n in found]


def by_numpy(steps):
    """What gradient descent on the whole batches comes to."""
    xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
    ys, w = xs @ np.float32(TRUE), np.zeros(4, np.float32)
    for i in range(steps):
        x, y = (a[i % 3 * 20 : i % 3 * 20 + 20] for a in (xs, ys))
        w -= 0.1 * 2 / 20 * (x @ w - y) @ x
    return w.tolist()


def test_a_second_training_with_a_global_step_begins_at_0_again(launch):
    found = ends(launch(RUNS, "--ps", "1", "--workers", "2", "--sync", "script.py"))
    assert found == [(pytest.approx(by_numpy(12), rel=1e-4), 12)] * 4


def test_a_chief_that_was_started_again_comes_to_the_step_where_others_wait(launch):
    run = launch(KILLED, "--ps", "1", "--workers", "2", "--sync", "script.py")
    found = ends(run)
    assert "--- start 2 ---" in run.log("worker/0")
    assert found == [(pytest.approx(TRUE, abs=0.01), pytest.approx(0.05))] * 2


@pytest.mark.parametrize(
    ("change", "when", "rate"),
    [("lower.op", "True", 0.05), ("w.initializer", "i < 40", 0.1)],
    ids=["assign", "initialise"],
)
def test_a_slow_chief_comes_to_the_step_where_others_wait(launch, change, when, rate):
    text = SLOW.replace("CHANGES", when).replace("CHANGE", change)
    own = ("--sync", "--backup", "1")
    found = ends(launch(text, "--ps", "1", "--workers", "3", *own, "script.py"))
    assert found == [(pytest.approx(TRUE, abs=0.1), pytest.approx(rate))] * 3
