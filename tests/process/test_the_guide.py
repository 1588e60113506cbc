"""The program of docs/distributed.md, as its readers run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.distributed.services import admin
from headrace.test.cluster import free_ports

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


def program() -> tuple[str, list[int]]:
    """The first program of the guide, on ports that are free here."""
    text = (ROOT / "docs" / "distributed.md").read_text().split("```python\n")[1].split("```")[0]
    ports = free_ports(4)
    for stated, free in zip((2222, 2223, 2224, 2225), ports, strict=True):
        assert str(stated) in text
        text = text.replace(str(stated), str(free))
    return text, ports


def test_the_program_of_the_guide(tmp_path):
    text, ports = program()
    path = tmp_path / "cluster.py"
    path.write_text(text)
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}

    def start(*task: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(path), *task],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    servers = [start("ps", "0"), start("ps", "1")]
    workers = [start("worker", "0"), start("worker", "1")]
    try:
        losses = []
        for worker in workers:
            out, err = worker.communicate(timeout=100)
            assert worker.returncode == 0, err
            losses.append(float(out))
        assert all(loss < 5 for loss in losses)
        tasks = {t.task: t for t in admin.status(f"127.0.0.1:{ports[0]}")}
        (weights,) = tasks["/job:ps/replica:0/task:0"].variables
        assert (weights.name, weights.bytes) == ("weights", 40_000)
        admin.shutdown(f"127.0.0.1:{ports[0]}")
        for server in servers:
            assert server.wait(timeout=30) == 0, server.communicate()
    finally:
        for process in servers + workers:
            process.kill()
            process.communicate()
