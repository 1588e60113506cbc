"""Workers that join a running training: how long until their first step.

    python benchmarks/elastic.py              # a model of 100 MB, 5 workers that join
    python benchmarks/elastic.py --megabytes 10 --workers 3

A parameter server and a worker, each a process, train asynchronously in a
`MonitoredTrainingSession`. Then processes are started, one after the other, that know nothing but
the address of the server. Target: 6 s from the start of a process, imports included, to the end of
its first step. What the training that was there notices is the longest pause between two of its
steps, beside the longest one before anybody joined.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

BEGAN = time.time()

import headrace as tf  # noqa: E402
from headrace.test.cluster import free_ports  # noqa: E402

IMPORTED = time.time()
COLUMNS, STEPS_BEFORE = 256, 20


def model(megabytes: int) -> Any:
    """A step of dense training: a gradient as large as the variable."""
    rows = megabytes * (1 << 20) // (4 * COLUMNS)
    weights = tf.get_variable("weights", [rows, COLUMNS], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weights - 1.0))
    step = tf.train.get_or_create_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


def serve(cluster: str) -> None:
    """The parameter server, until its standard input ends."""
    server = tf.train.Server(json.loads(cluster), job_name="ps", task_index=0)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def work(where: str, megabytes: int) -> None:
    """A worker: that of the cluster, or one that joins by an address. Prints each step's time."""
    joins = not where.startswith("{")
    given = where if joins else json.loads(where)
    server = tf.train.Server(given, job_name="worker", task_index=None if joins else 0)
    with tf.device(tf.train.replica_device_setter(cluster=server.cluster)):
        train = model(megabytes)
    session = tf.train.MonitoredTrainingSession(
        server.target, is_chief=not joins, log_step_count_steps=None
    )
    with session:
        while True:
            session.run(train)
            print(f"{time.time():.3f} {BEGAN:.3f} {IMPORTED:.3f}", flush=True)


def start(*args: str) -> subprocess.Popen[str]:
    """A process of this program."""
    return subprocess.Popen(
        [sys.executable, __file__, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args} has ended with {process.wait()}")
    return line


def measure(megabytes: int, workers: int) -> dict[str, Any]:
    """Seconds until first steps, and pauses of the worker that was there."""
    server, worker = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = json.dumps({"ps": [server], "worker": [worker]})
    processes = [start("serve", cluster)]
    try:
        line_of(processes[0])
        first = start("work", cluster, str(megabytes))
        processes.append(first)
        ends = [float(line_of(first).split()[0]) for _ in range(STEPS_BEFORE)]
        quiet = max(b - a for a, b in zip(ends[5:], ends[6:], strict=False))
        joined, imports = [], []
        for _ in range(workers):
            began = time.time()
            newcomer = start("work", server, str(megabytes))
            processes.append(newcomer)
            ended, program, imported = map(float, line_of(newcomer).split())
            joined.append(ended - began)
            imports.append(imported - program)
            newcomer.kill()
            newcomer.wait()
        stop = time.time()
        ends = ends[-1:]
        while ends[-1] < stop:
            ends.append(float(line_of(first).split()[0]))
        pause = max(b - a for a, b in zip(ends, ends[1:], strict=False))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return {"joined": joined, "imports": imports, "quiet": quiet, "pause": pause}


def main() -> None:
    """Print the figures."""
    if len(sys.argv) > 2 and sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif len(sys.argv) > 2 and sys.argv[1] == "work":
        work(sys.argv[2], int(sys.argv[3]))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--megabytes", type=int, default=100)
        parser.add_argument("--workers", type=int, default=5)
        options = parser.parse_args()
        found = measure(options.megabytes, options.workers)
        joined, imports = found["joined"], found["imports"]
        print(f"first step of a worker that joins: {statistics.median(joined):.2f} s, at most")
        print(f"{max(joined):.2f} s, of which imports {statistics.median(imports):.2f} s")
        print(f"longest pause of the other worker: {found['pause']:.2f} s, before: {found['quiet']:.2f} s")


if __name__ == "__main__":
    main()
