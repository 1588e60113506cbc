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
import itertools
import json
import queue
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

#: The import is a part of what is measured.
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


class Process:
    """A process of this program, whose lines are read as they come."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def line(self) -> str:
        """The next line that it prints."""
        found = self._lines.get()
        if not found:
            raise RuntimeError(f"{self.process.args} has ended with {self.process.wait()}")
        return found

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


def measure(megabytes: int, workers: int) -> dict[str, Any]:
    """Seconds until first steps, and pauses of the worker that was there."""
    server, worker = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = json.dumps({"ps": [server], "worker": [worker]})
    processes = [Process("serve", cluster)]
    try:
        processes[0].line()
        first = Process("work", cluster, str(megabytes))
        processes.append(first)
        ends = [float(first.line().split()[0]) for _ in range(STEPS_BEFORE)]
        quiet = max(b - a for a, b in itertools.pairwise(ends[5:]))
        joined, imports = [], []
        for _ in range(workers):
            began = time.time()
            newcomer = Process("work", server, str(megabytes))
            processes.append(newcomer)
            ended, program, imported = map(float, newcomer.line().split())
            joined.append(ended - began)
            imports.append(imported - program)
            newcomer.kill()
        stop = time.time()
        ends = ends[-1:]
        while ends[-1] < stop:
            ends.append(float(first.line().split()[0]))
        pause = max(b - a for a, b in itertools.pairwise(ends))
    finally:
        for process in processes:
            process.kill()
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
        middle, of_imports = statistics.median(joined), statistics.median(imports)
        print(f"first step of a worker that joins: {middle:.2f} s, at most {max(joined):.2f} s")
        print(f"of which imports: {of_imports:.2f} s")
        print(f"longest pause of the other worker: {found['pause']:.2f} s")
        print(f"longest pause before anybody joined: {found['quiet']:.2f} s")


if __name__ == "__main__":
    main()
