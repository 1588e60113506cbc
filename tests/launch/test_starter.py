"""The parent of tasks, told what to do by the bytes of its connection."""

import json
import select
import signal
import socket
import subprocess
import sys

import pytest
from launches import PATIENCE

from headrace.launch.hosts import Connection

pytestmark = pytest.mark.process


@pytest.fixture
def starter():
    """A connection to a starter in a process of its own, where no thread of JAX is forked."""
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    text = f"from headrace.launch.starter import Starter; Starter({number}, {number}).run()"
    with subprocess.Popen([sys.executable, "-c", text], pass_fds=[number]):
        theirs.close()
        yield Connection(ours.fileno(), ours.fileno()), ours
        ours.close()


def test_a_task_that_is_asked_to_end_at_once_does(starter, tmp_path):
    """It has only just been forked, and is neither a group of its own nor deaf to signals."""
    connection, ours = starter
    (tmp_path / "script.py").write_text("import time\ntime.sleep(1000)\n")
    begin = {"program": "script.py", "module": False, "arguments": [], "environment": {}}
    tasks = [f"worker/{index}" for index in range(8)]
    lines = [
        json.dumps(command)
        for task in tasks
        for command in (
            {"start": task, "folder": str(tmp_path), **begin},
            {"signal": task, "number": int(signal.SIGTERM)},
        )
    ]
    ours.sendall("".join(f"{line}\n" for line in lines).encode())
    ended = {}
    while len(ended) < len(tasks):
        assert select.select([ours], [], [], PATIENCE)[0], f"only {ended} came"
        for event in connection.events():
            if event["event"] == "ended":
                ended[event["task"]] = event["status"]
    assert ended == dict.fromkeys(tasks, -signal.SIGTERM)
