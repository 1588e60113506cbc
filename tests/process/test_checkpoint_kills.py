"""Servers and their trainer, killed at random moments of sharded saves, on a disk and in S3.

A trainer adds one to variables on two servers and saves after each step. Whoever is killed, the
latest checkpoint holds one step, all of it, and none is older than the last that was reported.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from task_processes import PATIENCE, eventually

import headrace as tf
from headrace.test.cluster import free_ports

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
]

# Waits until it is told which task it is: a task that is killed is replaced by one that has
# imported all it needs.
_TASK = """
import json, sys
import headrace as tf
import jax
from headrace.train.asynchronous_saver import AsynchronousSaver
told = json.loads(sys.stdin.readline())
job, index, directory = told["job"], told["index"], told["directory"]
server = tf.train.Server(told["cluster"], job_name=job, task_index=index)
if job == "ps":
    print("ready", flush=True)
    server.join()

counts = []
for i in range(2):
    with tf.device(f"/job:ps/task:{i}"):
        counts += [
            tf.get_variable(f"c{i}_{size}", initializer=tf.zeros([size], tf.int32))
            for size in (3, 200_000)
        ]
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
train = tf.group(step.assign_add(1), *(c.assign_add(tf.ones_like(c)) for c in counts))
check = [step.read_value(), *(f(c) for c in counts for f in (tf.reduce_min, tf.reduce_max))]
saver = tf.train.Saver(sharded=True, max_to_keep=2)
behind = AsynchronousSaver(saver, tf.get_default_graph()) if told["asynchronous"] else None
init = tf.global_variables_initializer()
lost = (tf.errors.UnavailableError, tf.errors.AbortedError)
while True:
    try:
        with tf.Session(server.target) as session:
            latest = tf.train.latest_checkpoint(directory)
            if latest:
                saver.restore(session, latest)
            else:
                session.run(init)
            found = set(map(int, session.run(check)))
            assert len(found) == 1, f"torn: {found}"
            print("restored", found.pop(), flush=True)
            while True:
                session.run(train)
                if behind is None:
                    path = saver.save(session, directory + "/m", global_step=step)
                elif behind.is_done:  # while one is written, the training goes on
                    path = behind.result() if behind.is_under_way else None
                    behind.begin(session, directory + "/m", global_step=step)
                else:
                    path = None
                if path:
                    print("saved", path.rpartition("-")[2], flush=True)
    except lost:
        if behind is not None:
            behind.forget()
"""


class Job:
    """Two servers and a trainer, and processes that can take the place of one that is killed."""

    def __init__(self, directory: str, asynchronous: bool, spares: int = 1) -> None:
        self._told = {"directory": directory, "asynchronous": asynchronous}
        self.directory = directory
        ports = iter(free_ports(3))
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.cluster = {"ps": addresses[:2], "worker": addresses[2:]}
        self.errors: list[str] = []
        self.saved = self.restored = 0
        self._spares: deque[Any] = deque()
        self._lock = threading.Lock()
        self.processes: dict[tuple[str, int], Any] = {}
        self._listeners: dict[Any, threading.Thread] = {}
        for _ in range(3 + spares):
            self._spare()
        for task in (("ps", 0), ("ps", 1), ("worker", 0)):
            self.start(*task)

    def _spare(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", _TASK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        self._spares.append(process)

    def start(self, job: str, index: int) -> None:
        """A task in its place."""
        process = self.processes[job, index] = self._spares.popleft()
        told = {"job": job, "index": index, "cluster": self.cluster, **self._told}
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        listener = threading.Thread(target=self._listen, args=(process, job), daemon=True)
        listener.start()
        self._listeners[process] = listener
        self._spare()

    def _listen(self, process: Any, job: str) -> None:
        for line in process.stdout:
            what, _, number = line.partition(" ")
            with self._lock:
                if what == "saved":
                    self.saved = max(self.saved, int(number))
                elif what == "restored":
                    if int(number) < self.saved:
                        self.errors.append(f"restored {number} after {self.saved} was saved")
                    self.restored += 1
        said = process.stderr.read()
        if job == "worker" and "Error" in said:
            self.errors.append(said[-3000:])

    def kill(self, job: str, index: int) -> None:
        """kill -9, and the end of the process."""
        process = self.processes.pop((job, index))
        process.kill()
        self._listeners.pop(process).join(PATIENCE)
        process.communicate()

    def check(self) -> int:
        """The step of the latest checkpoint, all of which must be of that step."""
        with self._lock:
            at_least = self.saved
        path = tf.train.latest_checkpoint(self.directory)
        if path is None:
            assert at_least == 0
            return 0
        reader = tf.train.load_checkpoint(path)
        names = reader.get_variable_to_shape_map()
        assert len(names) == 5
        found = set(np.concatenate([np.ravel(reader.get_tensor(n)) for n in names]).tolist())
        assert len(found) == 1, f"torn: {found}"
        (step,) = found
        assert path.endswith(f"-{step}")
        assert step >= at_least, (step, at_least)
        return step

    def trains(self) -> None:
        """Two more checkpoints are saved, or there was an error."""
        wanted = self.saved + 2
        eventually(lambda: self.saved >= wanted or self.errors)
        assert not self.errors, self.errors[0]

    def end(self) -> None:
        """The end of all processes."""
        for task in list(self.processes):
            self.kill(*task)
        for process in self._spares:
            process.kill()
            process.communicate()


def survives(directory: str, kills: int, seed: int, asynchronous: bool = False) -> None:
    """Kill tasks at random moments, and look at the checkpoints."""
    rng = random.Random(seed)
    job = Job(directory, asynchronous)
    try:
        job.trains()
        began, before = time.monotonic(), job.saved
        job.trains()
        pace = (time.monotonic() - began) / (job.saved - before)
        for _ in range(kills):
            task = rng.choice([("ps", 0), ("ps", 1), ("worker", 0)])
            threading.Event().wait(rng.uniform(0, 2 * pace))
            job.kill(*task)
            # The trainer may be reading or replacing checkpoints itself: they go, one by one.
            restored = job.restored
            job.start(*task)
            eventually(lambda: job.restored > restored or job.errors)  # noqa: B023
            job.trains()
        job.kill("worker", 0)
        job.check()
    finally:
        job.end()


def without_leftovers(directory: Path) -> set[str]:
    """The names in a directory after a save that comes a day later."""
    for path in directory.rglob("*"):
        os.utime(path, (1, 1))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=0)
        session.run(v.initializer)
        tf.train.Saver().save(session, str(directory / "m"), 10**9, write_state=False)
    return {p.name for p in directory.iterdir() if not p.name.startswith(f"m-{10**9}.")}


def test_kills_of_saves_to_a_disk(tmp_path: Path) -> None:
    survives(str(tmp_path), 5, seed=1)
    kept = {n.partition(".")[0] for n in without_leftovers(tmp_path)}
    assert len(kept) <= 4, kept  # two, the state file, one that a kill kept from being removed


@pytest.mark.slow
def test_kills_of_asynchronous_saves_to_s3(bucket: str) -> None:
    survives(bucket, 4, seed=2, asynchronous=True)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_many_kills_of_saves_to_a_disk(tmp_path: Path, asynchronous: bool) -> None:
    survives(str(tmp_path), 100, seed=10, asynchronous=asynchronous)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_many_kills_of_saves_to_s3(bucket: str, asynchronous: bool) -> None:
    survives(bucket, 100, seed=20, asynchronous=asynchronous)
