"""`headrace launch`: how long from the command to the first training step.

    python benchmarks/launch.py                # 2 servers and 2 workers, 5 launches of each way
    python benchmarks/launch.py --ps 1 --workers 4 --repeat 3

The script makes a `tf.train.Server` and a `MonitoredTrainingSession`, and each worker writes down
when its first step has ended. Counted are the first and the last of the workers, from the moment
before the command was started, so imports are a part. Beside it the same script is started as a
shell script would, a process for each task. Both take turns. Target: the first step within 6 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headrace.test.cluster import free_ports

SCRIPT = """
import json, os, sys, time
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    x = tf.random_normal([32, 100])
    w = tf.get_variable("w", [100, 10], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    session.run(train)
    with open(f"first-{index}", "w") as file:
        file.write(str(time.time()))
"""


def first_steps(folder: Path, workers: int, began: float) -> tuple[float, float]:
    """Seconds until the first and the last worker had made a step."""
    times = [float((folder / f"first-{i}").read_text()) - began for i in range(workers)]
    return min(times), max(times)


def launched(ps: int, workers: int) -> tuple[float, float]:
    """By `headrace launch`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "headrace", "launch", "--ps", str(ps)]
        began = time.time()
        subprocess.run(
            [*command, "--workers", str(workers), "script.py"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        return first_steps(folder, workers, began)


def by_hand(ps: int, workers: int) -> tuple[float, float]:
    """A process for each task, as a shell script starts them."""
    ports = [f"127.0.0.1:{port}" for port in free_ports(ps + workers)]
    cluster = {"ps": ports[:ps], "worker": ports[ps:]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        began = time.time()
        processes = []
        for job in ("ps", "worker"):
            for index in range(len(cluster[job])):
                config = {"cluster": cluster, "task": {"type": job, "index": index}}
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "script.py"],
                        cwd=folder,
                        env={**os.environ, "TF_CONFIG": json.dumps(config)},
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                )
        for process in processes[ps:]:
            process.wait()
        for process in processes[:ps]:
            process.terminate()
            process.wait()
        return first_steps(folder, workers, began)


def show(ps: int, workers: int, found: dict[str, list[tuple[float, float]]]) -> None:
    """Print how long it took in each way until the first step, and until those of all workers."""
    print(f"{ps} servers, {workers} workers; load average {os.getloadavg()[0]:.1f}")
    for name, times in found.items():
        first = statistics.median(t[0] for t in times)
        last = statistics.median(t[1] for t in times)
        best = min(t[0] for t in times)
        print(f"{name:16} first step {first:5.2f} s (best {best:.2f}), all workers {last:5.2f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    ways = {"headrace launch": launched, "a process each": by_hand}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(options.repeat):
        for name, start in ways.items():
            found[name].append(start(options.ps, options.workers))
    show(options.ps, options.workers, found)


if __name__ == "__main__":
    main()
