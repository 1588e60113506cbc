"""How the worked models of `examples/` wait for the processes that they start."""

from __future__ import annotations

import subprocess
import sys

import pytest
from example_cases import EXAMPLES

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="statuses of signals"),
]


@pytest.fixture
def modes(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from shared import modes

    return modes


@pytest.fixture
def waiting():
    """Makes processes that end when they are told to."""
    made = []

    def make(count):
        made.extend(subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(count))
        return made

    yield make
    for process in made:
        process.kill()
        process.wait()
        process.stdin.close()


def test_a_server_that_is_killed_ends_the_run(modes, waiting):
    """The workers would wait for another one for ever."""
    processes = waiting(4)
    processes[3].kill()
    with pytest.raises(SystemExit, match=r"Server 1 ended with status -9"):
        modes.wait_for(processes, 2, needed=2)


def test_a_worker_with_a_part_of_the_model_that_is_killed_ends_the_run(modes, waiting):
    processes = waiting(3)
    processes[1].kill()
    with pytest.raises(SystemExit, match=r"Worker 1 ended with status -9"):
        modes.wait_for(processes, 3, needed=1)


def test_a_worker_that_is_killed_is_told_when_the_others_have_ended(modes, waiting):
    processes = waiting(4)
    processes[1].kill()
    processes[1].wait()
    for process in (processes[0], processes[2]):
        process.stdin.close()
    with pytest.raises(SystemExit, match=r"Worker 1 ended with status -9"):
        modes.wait_for(processes, 3, needed=3)
    assert processes[0].returncode == processes[2].returncode == 0


def test_the_chief_ends_the_run_if_it_fails(modes, waiting):
    processes = waiting(3)
    processes[0].kill()
    with pytest.raises(SystemExit, match=r"Worker 0 ended with status -9"):
        modes.wait_for(processes, 3, needed=3)


def test_servers_need_not_end(modes, waiting):
    processes = waiting(3)
    for process in processes[:2]:
        process.stdin.close()
    modes.wait_for(processes, 2, needed=2)
    assert processes[2].poll() is None
