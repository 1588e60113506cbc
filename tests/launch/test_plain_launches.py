"""Plain scripts by `headrace launch`: what comes of them is what the same program, distributed by
hand, comes to."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launches import PATIENCE, eventually

pytestmark = pytest.mark.process

DATA = Path(__file__).parents[1] / "data" / "mnist5k"
PAGE = Path(__file__).parents[2] / "docs" / "plain-scripts.md"

MODEL = """
import sys
import numpy as np
import tensorflow as tf

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)

def model():
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    return x, y, w, tf.reduce_mean(tf.square(tf.matmul(x, w) - y))

def rows(i):
    return slice(i % 3 * 20, i % 3 * 20 + 20)
"""

PLAIN = f"""{MODEL}
x, y, w, loss = model()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(int(sys.argv[1])):
        sess.run(train, {{x: xs[rows(i)], y: ys[rows(i)]}})
    print("w", *sess.run(w).ravel())
"""

BY_HAND = f"""{MODEL}
import json, os
config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
mode, workers = sys.argv[2], cluster.num_tasks("worker")
setter = tf.train.replica_device_setter(cluster=cluster)
with tf.device(setter or f"/job:worker/task:{{index}}"):
    x, y, w, loss = model()
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    if mode == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
    elif mode == "all-reduce":
        optimizer = tf.train.AllReduceOptimizer(optimizer, workers)
    train = optimizer.minimize(loss, step)
hooks = [] if mode == "async" else [optimizer.make_session_run_hook(index == 0)]
if mode == "sync":
    hooks = [optimizer.make_session_run_hook(index == 0, num_tokens=0)]
begins = index == 0 or mode == "all-reduce"  # there each has variables of its own
with tf.train.MonitoredTrainingSession(server.target, begins, hooks=hooks) as sess:
    for i in range(int(sys.argv[1])):
        own = slice(rows(i).start + index, rows(i).stop, workers)
        sess.run(train, {{x: xs[own], y: ys[own]}})
    print("w", *sess.run(w).ravel())
"""

#: Those who began wait after an epoch until another worker has begun, too.
KERAS = """
import pathlib, threading
import numpy as np
import tensorflow as tf

xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
data = DATA
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.05), "mse")

class Joined(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, flush=True)
        pathlib.Path(f"ended_{epoch}_{rank}").touch()
        while not pathlib.Path("ended_0_LAST").exists():
            threading.Event().wait(0.05)

from headrace.ops.state import share
rank = share.current().worker
model.fit(*data, epochs=40, verbose=0, callbacks=[Joined()])
print("w", *np.ravel(model.get_weights()[0]))
"""

TRUE = [1.0, -2.0, 3.0, 0.5]


def values(launch, text, *arguments):
    """What each worker has printed of the variable."""
    status, output, errors = launch(text, *arguments).end()
    assert status == 0, output + errors
    found = re.findall(r"\] w (.*)", output)
    assert found, output
    return [[float(v) for v in line.split()] for line in found]


def by_numpy(steps):
    """What gradient descent on the whole batches comes to."""
    xs = np.random.RandomState(1).randn(60, 4).astype(np.float32)
    ys, w = xs @ np.float32(TRUE), np.zeros(4, np.float32)
    for i in range(steps):
        x, y = (a[i % 3 * 20 : i % 3 * 20 + 20] for a in (xs, ys))
        w -= 0.1 * 2 / 20 * (x @ w - y) @ x
    return w.tolist()


def test_workers_in_step_do_what_the_script_does(launch):
    found = values(launch, PLAIN, "--ps", "1", "--workers", "2", "--sync", "script.py", "12")
    assert found[0] == found[1] == pytest.approx(by_numpy(12), rel=1e-4)


@pytest.mark.slow
def test_a_loss_that_is_a_sum_is_that_of_the_whole_batch(launch):
    """With a rate of a 20th; of 20 rows 7, 7 and 6 are those of the three workers."""
    text = PLAIN.replace("tf.reduce_mean", "tf.reduce_sum").replace("(0.1)", "(0.005)")
    found = values(launch, text, "--ps", "1", "--workers", "3", "--sync", "script.py", "12")
    assert found == [pytest.approx(by_numpy(12), rel=1e-4)] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "option", "mode"),
    [
        (("--ps", "1", "--workers", "2"), "--sync", "sync"),
        (("--workers", "2"), "--all-reduce", "all-reduce"),
        (("--ps", "1", "--workers", "1"), None, "async"),
    ],
)
def test_what_comes_of_it_is_what_the_program_distributed_by_hand_comes_to(
    launch, tasks, option, mode
):
    own = () if option is None else (option,)
    plain = values(launch, PLAIN, *tasks, *own, "script.py", "12")
    hand = values(launch, BY_HAND, *tasks, "script.py", "12", mode)
    for found in (*plain, *hand):
        assert found == pytest.approx(by_numpy(12), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("own", [(), ("--sync", "--backup", "1")], ids=["async", "backup"])
def test_workers_that_do_not_wait_for_all_come_to_the_same_end(launch, own):
    found = values(launch, PLAIN, "--ps", "1", "--workers", "3", *own, "script.py", "100")
    for w in found:
        assert w == pytest.approx(TRUE, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "own", [("--ps", "2", "--sync"), ("--all-reduce",)], ids=["sync", "all-reduce"]
)
def test_the_example_of_the_page_prints_what_it_prints_alone(launch, tmp_path, own):
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "MNIST_data").symlink_to(DATA)
    _, output, errors = launch(text, "--workers", "2", *own, "script.py").end()
    found = re.findall(r"\] (0\.\d+)$", output, re.MULTILINE)
    alone = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found == [alone.stdout.strip()] * 2, output + errors


@pytest.mark.slow
def test_what_a_plain_script_forks_is_no_worker(launch):
    text = f"""{PLAIN}
import os, subprocess
child = "import headrace as tf; print(tf.Session().run(tf.constant(3) + 4))"
print("child", subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
"""
    _, output, errors = launch(text, "--ps", "1", "--workers", "1", "script.py", "1").end()
    assert "child 7" in output, output + errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    ["xs, ys", "tf.data.Dataset.from_tensor_slices((xs, ys)).batch(20),"],
    ids=["arrays", "dataset"],
)
@pytest.mark.parametrize("first", [1, 2])
def test_a_worker_joins_a_fit_of_keras(launch, data, first):
    text = KERAS.replace("DATA", data).replace("LAST", str(first))
    options = ("--ps", "1", "--workers", str(first), "--elastic", f"{first}:{first + 1}")
    run = launch(text, *options, "script.py")
    address = re.search(r"at (\S+:\d+)", run.process.stderr.readline()).group(1)
    eventually(lambda: list(run.folder.glob("ended_0_*")))
    resize = [sys.executable, "-m", "headrace", "resize", "--workers", str(first + 1), address]
    subprocess.run(resize, check=True, timeout=PATIENCE)
    status, output, errors = run.end()
    assert status == 0, output + errors
    found = re.findall(r"\[worker/(\d)\] w (.*)", output)
    assert sorted(worker for worker, _ in found) == ["0", "1", "2"][: first + 1], output + errors
    for _, line in found:
        assert [float(v) for v in line.split()] == pytest.approx(TRUE, abs=0.05)
