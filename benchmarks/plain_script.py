"""A plain script's step on one worker and one server, beside the program distributed by hand.

    python benchmarks/plain_script.py
    python benchmarks/plain_script.py --rounds 31 --steps 400 --mode sync

Both programs train the same model with the same batches: one says nothing of clusters and is run as
`headrace launch` runs it, one makes its `tf.train.Server`, places its variables by
`tf.train.replica_device_setter` and opens its session on the server. Each has a cluster of its own;
they take turns, some hundred steps each. A step is as long as the round divided by its steps; shown
are medians of rounds, and the median of the ratios of rounds next to each other. Target: 1.05.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from headrace.test.cluster import free_ports

TARGET = 1.05

MODEL = """
import sys, time
import numpy as np

def layer(x, rows, columns, name):
    w = tf.get_variable(name, [rows, columns], initializer=tf.random_normal_initializer(0.0, 0.05))
    zeros = tf.zeros_initializer()
    return tf.matmul(x, w) + tf.get_variable(name + "_b", [columns], initializer=zeros)

def build():
    x = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int64, [None])
    hidden = x if KIND == "softmax" else tf.nn.relu(layer(x, 784, 500, "hidden"))
    logits = layer(hidden, 784 if KIND == "softmax" else 500, 10, "out")
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    return x, labels, loss

def rounds(session, train, x, labels):
    random = np.random.RandomState(1)
    feeds = {x: random.rand(100, 784).astype("f"), labels: random.randint(0, 10, 100)}
    for _ in range(50):
        session.run(train, feeds)
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line)
        began = time.perf_counter()
        for _ in range(count):
            session.run(train, feeds)
        print((time.perf_counter() - began) / count, flush=True)
"""

PLAIN = """
import headrace as tf
x, labels, loss = build()
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
if MODE == "sync":
    with tf.train.MonitoredTrainingSession() as session:
        rounds(session, train, x, labels)
else:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rounds(session, train, x, labels)
"""

BY_HAND = """
import json, os
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name="worker", task_index=0)
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    x, labels, loss = build()
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    if MODE == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, 1, 1)
    train = optimizer.minimize(loss, step)
if MODE == "sync":
    hooks = [optimizer.make_session_run_hook(True)]
    with tf.train.MonitoredTrainingSession(server.target, hooks=hooks) as session:
        rounds(session, train, x, labels)
else:
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        rounds(session, train, x, labels)
"""

SERVER = """
import json, os
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
tf.train.Server(tf.train.ClusterSpec(config["cluster"]), job_name="ps", task_index=0).join()
"""


class Worker:
    """A worker that makes steps when it is asked to, and its server."""

    def __init__(self, text: str, kind: str, mode: str, is_plain: bool) -> None:
        hosts = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self._cluster = {"ps": hosts[:1], "worker": hosts[1:]}
        settings = {"HEADRACE_DATA_PARALLEL": mode} if is_plain else {}
        self._server = self._start("ps", SERVER, {})
        text = f"KIND, MODE = {kind!r}, {mode!r}\n{MODEL}\n{text}"
        self._worker = self._start("worker", text, settings)
        if self._line() != "ready":
            raise RuntimeError("The worker has not begun.")

    def _start(self, job: str, text: str, settings: dict[str, str]) -> Any:
        task = {"cluster": self._cluster, "task": {"type": job, "index": 0}}
        return subprocess.Popen(
            [sys.executable, "-c", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": json.dumps(task), **settings},
        )

    def _line(self) -> str:
        return str(self._worker.stdout.readline()).strip()

    def seconds(self, steps: int) -> float:
        """How long a step takes, by so many in a row."""
        self._worker.stdin.write(f"{steps}\n")
        self._worker.stdin.flush()
        return float(self._line())

    def end(self) -> None:
        """End both processes."""
        for process in (self._worker, self._server):
            process.kill()
            process.communicate()


@contextlib.contextmanager
def workers(kind: str, mode: str) -> Iterator[tuple[Worker, Worker]]:
    """The plain script, and the program that distributes itself."""
    with contextlib.ExitStack() as stack:
        found = []
        for text, is_plain in ((PLAIN, True), (BY_HAND, False)):
            found.append(Worker(text, kind, mode, is_plain))
            stack.callback(found[-1].end)
        yield found[0], found[1]


def measure(kind: str, mode: str, rounds: int, steps: int) -> float:
    """Print a line; the ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    with workers(kind, mode) as both:
        for i in range(rounds):
            for which in (0, 1) if i % 2 else (1, 0):
                times[which].append(both[which].seconds(steps))
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    plain, by_hand = (statistics.median(t) * 1e3 for t in times)
    print(
        f"{kind:8} {mode:6} plain {plain:6.3f} ms, by hand {by_hand:6.3f} ms, ratio {ratio:.3f}",
        flush=True,
    )
    return ratio


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--mode", choices=["async", "sync"])
    parser.add_argument("--model", choices=["softmax", "mlp"])
    options = parser.parse_args()
    kinds = [options.model] if options.model else ["softmax", "mlp"]
    modes = [options.mode] if options.mode else ["async", "sync"]
    found = [measure(kind, mode, options.rounds, options.steps) for kind in kinds for mode in modes]
    print(f"load average {os.getloadavg()[0]:.1f}; the largest ratio {max(found):.3f}")
    if max(found) > TARGET:
        print(f"that is more than the target {TARGET}")


if __name__ == "__main__":
    main()
