"""The Ray actors of a launch, one for each task. Ray itself is imported where it runs already.

An actor has a place in the cluster that Ray has given it, and keeps a port there. `ScriptTask` runs
scripts in processes of a starter (`starter.py`), `FunctionTask` a Python function in its own. When
Ray starts an actor again, on this node or another one, it knows nothing of its earlier life:
whoever launched it asks for its place anew.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from headrace import settings
from headrace.distributed.cluster.cluster_spec import join_address, split_address

__all__ = ["FunctionTask", "ScriptTask"]

_LOOPBACK = "127.0.0.1"
#: Without a limit to silence: the actor closes the pipe when it ends.
_STARTER = "from headrace.launch.starter import main; main(patience=None)"


class _Placed:
    """Has an address on its node."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: socket.socket | None = None

    def __repr__(self) -> str:
        return self._name  # Ray puts it in front of what the actor prints

    def place(self, is_here: bool, address: str, node: str) -> dict[str, str]:
        """The address at which the task may listen, and its node.

        Args:
            is_here: whether all tasks are on one machine, which loopback is enough for.
            address, node: earlier ones; on the same node the address is given again, if it is free.
        """
        ray: Any = importlib.import_module("ray")
        host = _LOOPBACK if is_here else ray.util.get_node_ip_address()
        own = ray.get_runtime_context().get_node_id()
        port = split_address(address)[1] if node == own else 0
        if self._held is not None:
            self._held.close()
        try:
            self._held = _hold(host, port)
        except OSError:
            self._held = _hold(host, 0)
        return {"address": join_address(host, self._held.getsockname()[1]), "node": own}


def _hold(host: str, port: int) -> socket.socket:
    """A port that nobody else gets; a server of ours may still listen there."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    return held


class ScriptTask(_Placed):
    """Starts the processes of a task, and passes on what they write.

    The starter imports what tasks need while Ray places the others. It ends, and kills what it has
    started, when this process does.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._starter = subprocess.Popen(
            [sys.executable, "-c", _STARTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="starter", daemon=True).start()

    def _read(self) -> None:
        assert self._starter.stdout is not None
        for line in self._starter.stdout:
            self._events.put(json.loads(line))
        self._events.put({"event": "gone", "status": self._starter.wait()})

    def send(self, command: Mapping[str, Any]) -> None:
        """Tell the starter a command."""
        assert self._starter.stdin is not None
        self._starter.stdin.write(json.dumps(command).encode() + b"\n")
        self._starter.stdin.flush()

    def events(self) -> list[dict[str, Any]]:
        """What has happened since the last call; waits for something."""
        found = [self._events.get()]
        while not self._events.empty():
            found.append(self._events.get())
        return found


class FunctionTask(_Placed):
    """Runs a function in this process, or serves."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        import headrace  # noqa: F401  (while Ray places the others)

    def run(self, function: Callable[[], Any] | None, environment: Mapping[str, str]) -> Any:
        """The value of a function; without one the task serves until its process is ended."""
        os.environ.update(environment)
        settings.reload()
        if function is not None:
            return function()
        from headrace.launch.task import serve

        serve()
        return None
