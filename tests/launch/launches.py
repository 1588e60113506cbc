"""Runs of the command `headrace launch`, as a user starts it, and a look at what is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

#: However busy the machine is, something has happened within so many seconds.
PATIENCE = 100.0

#: A hand-made cluster, with as many steps as it is told.
CLUSTER = """
import json, os, sys
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
job, index = config["task"]["type"], config["task"]["index"]
print("cluster", cluster.as_dict())
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    v = tf.get_variable("v", [10], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(v))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    while not session.should_stop():
        value, now, _ = session.run([loss, step, train])
        if now % 10 == 0:
            print("step", now, "loss:", value)
        if now >= int(sys.argv[1]):
            break
print("end")
"""


def eventually(what: Callable[[], object]) -> object:
    """The first true value of ``what()``."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, "it does not come about"
        threading.Event().wait(0.02)
    return found


class Run:
    """A launch in a folder.

    Args:
        folder: gets the script, and the logs; no other process may name it.
        text: of the script.
        arguments: of the command; the script's name is `script.py`.
    """

    def __init__(self, folder: Path, text: str, *arguments: str, **options: object) -> None:
        self.folder = folder
        (folder / "script.py").write_text(text)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "launch", *arguments],
            cwd=folder,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "HEADRACE_TEST_LAUNCH": str(folder)},
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def end(self) -> tuple[int, str, str]:
        """Exit status, output and errors, at the end."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output, errors

    def log(self, task: str) -> str:
        """What a task has written until now."""
        path = self.folder / "headrace-launch" / f"{task.replace('/', '-')}.log"
        return path.read_text() if path.exists() else ""

    def ours(self) -> dict[int, str]:
        """The processes of this launch that live, with what they are."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"HEADRACE_TEST_LAUNCH={self.folder}".encode() in environment and state != "Z":
                found[int(entry.name)] = state
        return found

    def task(self, text: str) -> int:
        """The process that a task has told in its output, by a pattern with one group."""
        return int(re.findall(text, "".join(self.log(t) for t in self._tasks()))[-1])

    def _tasks(self) -> list[str]:
        folder = self.folder / "headrace-launch"
        return [p.stem.replace("-", "/") for p in folder.glob("*.log")]

    def kill(self) -> None:
        """The end of all, if the test has failed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.process.wait()
