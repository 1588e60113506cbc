"""train_and_evaluate as real processes on loopback, checkpoints in a shared folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.estimator.early_stopping import read_eval_metrics
from headrace.test.cluster import free_ports

PROGRAM = Path(__file__).with_name("cluster_program.py")
TREES = Path(__file__).with_name("cluster_trees.py")
ALGORITHMS = Path(__file__).with_name("cluster_algorithms.py")

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(180)]


class Cluster:
    """Processes of one program, a TF_CONFIG for each."""

    def __init__(
        self,
        cluster: dict[str, list[str]],
        folder: Path,
        *arguments: str,
        program: Path = PROGRAM,
    ) -> None:
        self._cluster, self._program = cluster, program
        self._arguments = [str(folder), *arguments]
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, job: str, index: int) -> None:
        config = {"cluster": self._cluster, "task": {"type": job, "index": index}}
        self.processes[f"{job}{index}"] = subprocess.Popen(
            [sys.executable, str(self._program), *self._arguments],
            env={**os.environ, "TF_CONFIG": json.dumps(config)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for(self, task: str, line: str) -> None:
        for found in self.processes[task].stdout:
            if found.strip() == line:
                return
        raise AssertionError(f"{task} has ended without {line!r}")

    def ends(self) -> dict[str, tuple[int, str]]:
        found = {}
        for task, process in self.processes.items():
            text, _ = process.communicate(timeout=120)
            found[task] = process.returncode, text
        return found

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.communicate()


def _addresses(count: int) -> list[str]:
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


def test_chief_workers_servers_and_an_evaluator(tmp_path):
    """As the slide has it: the first worker is at the chief's address."""
    a, b, c, d, e = _addresses(5)
    cluster = {"chief": [a], "worker": [a, b, c], "ps": [d, e]}
    with Cluster(cluster, tmp_path, "300", "0.001") as tasks:
        for job, index in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2)]:
            tasks.start(job, index)
        tasks.start("evaluator", 0)
        ends = tasks.ends()
    for task, (status, text) in ends.items():
        assert status == 0, (task, text[-2000:])
        assert "done []" in text, (task, text[-2000:])
    assert ends["worker0"][1].startswith("chief 0\n")
    assert ends["worker1"][1].startswith("worker 1\n")
    assert all("trains" in ends[f"worker{i}"][1] for i in (0, 1, 2))
    metrics = read_eval_metrics(str(tmp_path / "eval"))
    assert max(metrics) >= 300
    assert metrics[max(metrics)]["loss"] < 1
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None


def test_a_worker_is_killed(tmp_path):
    a, b, c, d, e = _addresses(5)
    cluster = {"chief": [a], "worker": [b, c], "ps": [d, e]}
    with Cluster(cluster, tmp_path, "300", "0.01") as tasks:
        for job, index in [("ps", 0), ("ps", 1), ("chief", 0), ("worker", 0), ("worker", 1)]:
            tasks.start(job, index)
        tasks.wait_for("worker1", "trains")
        tasks.processes["worker1"].send_signal(signal.SIGKILL)
        tasks.start("evaluator", 0)
        ends = tasks.ends()
    assert ends.pop("worker1")[0] == -signal.SIGKILL
    for task, (status, text) in ends.items():
        assert status == 0, (task, text[-2000:])
        assert "done []" in text, (task, text[-2000:])
    assert max(read_eval_metrics(str(tmp_path / "eval"))) >= 300


def test_each_worker_has_its_own_epoch(tmp_path):
    """The end of the input ends the pass of one worker: two workers train two epochs."""
    a, b, c = _addresses(3)
    with Cluster({"chief": [a], "worker": [b], "ps": [c]}, tmp_path, "0", "0.001") as tasks:
        for job in ("ps", "chief", "worker"):
            tasks.start(job, 0)
        ends = tasks.ends()
    assert {task: status for task, (status, _) in ends.items()} == dict.fromkeys(ends, 0), ends
    assert "steps 8\n" in ends["chief0"][1]
    assert "steps 8\n" in ends["worker0"][1]
    assert 8 <= max(map(int, _steps_saved(tmp_path))) <= 16


def test_boosted_trees_grow_on_a_cluster(tmp_path):
    """Workers add to sums on the server, which the chief makes layers of."""
    a, b, c = _addresses(3)
    cluster = {"chief": [a], "worker": [b], "ps": [c]}
    with Cluster(cluster, tmp_path, program=TREES) as tasks:
        for job in ("ps", "chief", "worker"):
            tasks.start(job, 0)
        ends = tasks.ends()
    for task, (status, text) in ends.items():
        assert (status, "done" in text) == (0, True), (task, text[-2000:])
    from headrace.graph.proto.boosted_trees.ensemble_pb2 import TreeEnsemble

    reader = tf.train.load_checkpoint(str(tmp_path))
    ensemble = TreeEnsemble.FromString(reader.get_tensor("boosted_trees:0_serialized"))
    assert sum(tree.is_finalized for tree in ensemble.tree_metadata) == 4
    gains = [node.metadata.gain for node in ensemble.trees[0].nodes]
    assert max(gains) > 0


def _steps_saved(folder):
    return [path.suffixes[0].partition("-")[2] for path in folder.glob("model.ckpt-*.index")]


def test_workers_move_the_centres_of_k_means(tmp_path):
    """The chief chooses the first centres; those on the server are moved by both workers."""
    a, b, c = _addresses(3)
    cluster = {"chief": [a], "worker": [b], "ps": [c]}
    with Cluster(cluster, tmp_path, program=ALGORITHMS) as tasks:
        for job in ("ps", "chief", "worker"):
            tasks.start(job, 0)
        ends = tasks.ends()
    for task, (status, text) in ends.items():
        assert (status, "done" in text) == (0, True), (task, text[-2000:])
    centers = tf.train.load_variable(str(tmp_path), "clusters")
    middles = centers[centers[:, 0].argsort()]
    np.testing.assert_allclose(middles, [[-9, -9], [0, 9], [9, 0]], atol=0.5)
