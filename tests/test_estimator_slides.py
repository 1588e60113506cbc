"""The programs of the 2018 talk, as one types them from the slides.

What is not on the slides: the data, a seed, ports that are free, fewer steps.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

import headrace as tf
from headrace.test.cluster import free_ports

ROOT = pathlib.Path(__file__).resolve().parents[1]


def _last_accuracy(folder):
    """The accuracy that the evaluator wrote last."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag == "accuracy":
                    found[event.step] = value.simple_value
    assert max(found) >= 300
    return found[max(found)]


@pytest.mark.process
@pytest.mark.timeout(170)
def test_train_and_evaluate_on_a_cluster(tmp_path):
    """A worker at the chief's address, as the slide has it, is the chief."""
    host = [f"127.0.0.1:{port}" for port in free_ports(5)]
    # fmt: off
    cluster = {"chief": [host[0]], "worker": [host[0], host[1], host[2]], "ps": [host[3], host[4]]}
    # fmt: on
    tasks = [("ps", 0), ("ps", 1), ("chief", 0), ("worker", 1), ("worker", 2), ("evaluator", 0)]
    program = str(ROOT / "examples" / "train_and_evaluate.py")
    command = [sys.executable, "-m", "headrace", "run", program]
    command += ["--steps=300", f"--model_dir={tmp_path}/model"]
    processes = {}
    for kind, index in tasks:
        config = {"cluster": cluster, "task": {"type": kind, "index": index}}
        processes[kind, index] = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "TF_CONFIG": json.dumps(config)},
        )
    try:
        printed = {}
        for task, process in processes.items():
            if task[0] != "ps":
                printed[task], errors = process.communicate(timeout=150)
                assert process.returncode == 0, (task, errors[-3000:])
        assert printed["chief", 0] == "chief 0 is done\n"
        assert _last_accuracy(tmp_path / "model" / "eval") > 0.9
        assert len(list((tmp_path / "model" / "export" / "final").iterdir())) == 1
        for index in (0, 1):  # servers end when the training has
            processes["ps", index].communicate(timeout=60)
            assert processes["ps", index].returncode == 0
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()
