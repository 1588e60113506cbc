"""Checkpoints of a model on two parameter servers: how fast they are, and what they cost the steps.

    python benchmarks/checkpoints.py                    # 2 GB over two servers
    python benchmarks/checkpoints.py --megabytes 512 --folder /mnt/disk

The model is tables of 256 columns; a step of the worker trains some rows of each. Every server is a
process. Beside a save stands what the disk does: as many processes that write as many bytes, and
wait until these are on the disk. Targets: half of the disk's speed, and 0.8 of the steps while an
asynchronous save is under way. Saves and raw writes take turns; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import headrace as tf
from headrace.test.cluster import free_ports
from headrace.train.asynchronous_saver import AsynchronousSaver

SERVERS, TABLES, COLUMNS, ROWS = 2, 4, 256, 500


def serve(cluster: str, index: int) -> None:
    """A parameter server, until its standard input ends."""
    server = tf.train.Server(json.loads(cluster), job_name="ps", task_index=index)
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def write(path: str, megabytes: int) -> None:
    """A file of so many megabytes, on the disk."""
    block = np.random.default_rng(0).bytes(16 << 20)
    print("ready", flush=True)
    sys.stdin.readline()
    with open(path, "wb", buffering=0) as file:
        for _ in range(0, megabytes, 16):
            file.write(block)
        os.fsync(file.fileno())
    print("written", flush=True)


def started(*args: object) -> subprocess.Popen[str]:
    """A process of this program, when it is ready."""
    process = subprocess.Popen(
        [sys.executable, __file__, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def raw_speed(folder: str, megabytes: int) -> float:
    """Megabytes per second that as many processes as servers write."""
    paths = [f"{folder}/raw-{i}" for i in range(SERVERS)]
    writers = [started("write", path, megabytes // SERVERS) for path in paths]
    os.sync()
    begin = time.perf_counter()
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout.readline() == "written\n"
    taken = time.perf_counter() - begin
    for writer, path in zip(writers, paths, strict=True):
        writer.communicate()
        os.remove(path)
    return megabytes / taken


class Training:
    """A worker of a cluster, its model, and how to save it."""

    def __init__(self, megabytes: int, folder: str) -> None:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(SERVERS + 1)]
        cluster = {"ps": addresses[:SERVERS], "worker": addresses[SERVERS:]}
        self.megabytes, self.path = megabytes, f"{folder}/model"
        self.servers = [started("serve", json.dumps(cluster), i) for i in range(SERVERS)]
        self.worker = tf.train.Server(cluster, job_name="worker", task_index=0)
        rows = (megabytes << 20) // (4 * COLUMNS * TABLES * SERVERS)
        ids = tf.random_uniform([ROWS], maxval=rows, dtype=tf.int32)
        losses = []
        for i in range(SERVERS):
            with tf.device(f"/job:ps/task:{i}"):
                tables = [
                    tf.get_variable(f"t{i}_{j}", [rows, COLUMNS], initializer=tf.ones_initializer())
                    for j in range(TABLES)
                ]
            losses += [tf.reduce_sum(tf.square(tf.nn.embedding_lookup(t, ids))) for t in tables]
        with tf.device("/job:ps/task:0"):
            self.step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(1e-3)
        self.train = optimizer.minimize(tf.add_n(losses), global_step=self.step)
        self.saver = tf.train.Saver(sharded=True, max_to_keep=1)
        self.background = AsynchronousSaver(self.saver, tf.get_default_graph())
        self.session = tf.Session(self.worker.target)
        self.session.run(tf.global_variables_initializer())
        for _ in range(20):
            self.session.run(self.train)

    def save(self) -> float:
        """Megabytes per second of a save for which the training waits."""
        os.sync()
        begin = time.perf_counter()
        self.saver.save(self.session, self.path, global_step=self.step, write_meta_graph=False)
        return self.megabytes / (time.perf_counter() - begin)

    def steps_per_second(self, seconds: float) -> float:
        """How fast the steps are when nothing is saved."""
        begin, count = time.perf_counter(), 0
        while time.perf_counter() < begin + seconds:
            self.session.run(self.train)
            count += 1
        return count / (time.perf_counter() - begin)

    def steps_beside_a_save(self) -> tuple[float, float, float]:
        """Steps per second while a checkpoint is written, how long it takes, the longest step."""
        os.sync()
        begin, count, longest = time.perf_counter(), 0, 0.0
        self.background.begin(self.session, self.path, global_step=self.step)
        longest = time.perf_counter() - begin
        while not self.background.is_done:
            last = time.perf_counter()
            self.session.run(self.train)
            count += 1
            longest = max(longest, time.perf_counter() - last)
        taken = time.perf_counter() - begin
        self.background.result()
        return count / taken, taken, longest

    def close(self) -> None:
        self.session.close()
        for server in self.servers:
            server.communicate()


def median(values: list[float]) -> float:
    return statistics.median(values)


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--folder", default=None, help="where to write; a folder in it is made")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="headrace-bench-", dir=args.folder)
    training = Training(args.megabytes, folder)
    try:
        raw, saves = [], []
        for _ in range(args.repeat):
            raw.append(raw_speed(folder, args.megabytes))
            saves.append(training.save())
        print(
            f"save {args.megabytes} MB over {SERVERS} servers: {median(saves):.0f} MB/s, the disk "
            f"{median(raw):.0f} MB/s: {median(saves) / median(raw):.2f} (target 0.5)"
        )
        alone, beside, lasts, longest = [], [], [], []
        for _ in range(args.repeat):
            alone.append(training.steps_per_second(3.0))
            rate, taken, stall = training.steps_beside_a_save()
            beside.append(rate)
            lasts.append(taken)
            longest.append(stall)
        ratios = [b / a for a, b in zip(alone, beside, strict=True)]
        print(
            f"steps during an asynchronous save of {median(lasts):.1f} s: {median(beside):.1f} a "
            f"second, {median(alone):.1f} without: {median(ratios):.2f} (target 0.8); longest "
            f"{median(longest):.2f} s"
        )
    finally:
        training.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["write"]:
        write(sys.argv[2], int(sys.argv[3]))
    else:
        main()
