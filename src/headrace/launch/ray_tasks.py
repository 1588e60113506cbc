"""The Ray actors of a launch, one for each task.

An actor has a place in the cluster that Ray has given it, and keeps a port there. `ScriptTask` runs
scripts in processes of a starter (`shared_starter.py`), `FunctionTask` a Python function in its
own. When Ray starts an actor again, on this node or another one, it knows nothing of its earlier
life: whoever launched it asks for its place anew.

Ray carries these classes as text of this file (`by_value`), so that an actor imports no more than
it says itself: nothing of Headrace, whose imports take longer than all else that a `ScriptTask`
does.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["FunctionTask", "ScriptTask", "by_value"]

_LOOPBACK = "127.0.0.1"
#: Becomes a child of nobody: it outlives the actor that has started it.
_STARTER = """
import os
if os.fork():
    os._exit(0)
os.setsid()
from headrace.launch.shared_starter import main
main({listener}, {folder!r})
"""


@contextlib.contextmanager
def by_value(ray: Any) -> Iterator[None]:
    """Within this block Ray takes classes of this file with their text."""
    this = sys.modules[__name__]
    ray.cloudpickle.register_pickle_by_value(this)
    try:
        yield
    finally:
        ray.cloudpickle.unregister_pickle_by_value(this)


class _Placed:
    """Has an address on its node.

    Args:
        name: of the task; launch: what no other launch is called.
    """

    def __init__(self, name: str, launch: str) -> None:
        self._name, self._launch = name, launch
        self._held: socket.socket | None = None

    def __repr__(self) -> str:
        return self._name  # Ray puts it in front of what the actor prints

    def place(self, is_here: bool, port: int, node: str) -> tuple[str, int, str]:
        """The host and port at which the task may listen, and its node.

        Args:
            is_here: whether all tasks are on one machine, which loopback is enough for.
            port, node: earlier ones; on the same node the port is given again, if it is free.
        """
        ray: Any = importlib.import_module("ray")
        host = _LOOPBACK if is_here else ray.util.get_node_ip_address()
        own = ray.get_runtime_context().get_node_id()
        if self._held is not None:
            self._held.close()
        try:
            self._held = _hold(host, port if node == own else 0)
        except OSError:
            self._held = _hold(host, 0)
        return host, self._held.getsockname()[1], own


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
    """Has a starter run the processes of a task, and passes on what they write.

    The starter is forked from one that has imported what tasks need, while Ray places the others.
    It ends, and kills what it has started, when this process does.
    """

    def __init__(self, name: str, launch: str) -> None:
        super().__init__(name, launch)
        self._line = _reach_starter(launch)
        self.send({**os.environ, "PYTHONUNBUFFERED": "1"})
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="starter", daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._line, self._line.makefile("rb") as lines:
            for line in lines:
                self._events.put(json.loads(line))
        self._events.put({"event": "gone"})

    def send(self, command: Mapping[str, Any]) -> None:
        """Tell the starter a command; one that is gone hears nothing."""
        with contextlib.suppress(OSError):
            self._line.sendall(json.dumps(command).encode() + b"\n")

    def close(self) -> None:
        """End the starter and what it has started, as the end of this process does."""
        self._line.shutdown(socket.SHUT_RDWR)

    def events(self) -> list[dict[str, Any]]:
        """What has happened since the last call; waits for something."""
        found = [self._events.get()]
        while not self._events.empty():
            found.append(self._events.get())
        return found


def _reach_starter(launch: str) -> socket.socket:
    """A connection to the process of this machine that forks starters, which is begun for it."""
    folder = os.path.join(tempfile.gettempdir(), f"headrace-{launch}")
    path = os.path.join(folder, "starter")
    with _locked(folder):
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(path)
            return line
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(128)
            number = listener.fileno()
            program = _STARTER.format(listener=number, folder=folder)
            command = [sys.executable, "-c", program]
            subprocess.run(command, stdin=subprocess.DEVNULL, pass_fds=[number], check=True)
        line.connect(path)
        return line


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """A folder that is there, and that nobody else has locked."""
    while True:
        os.makedirs(folder, 0o700, exist_ok=True)
        try:
            place = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(place, fcntl.LOCK_EX)
            if _is_there(place, folder):
                yield
                return
        finally:
            os.close(place)


def _is_there(place: int, folder: str) -> bool:
    """Whether an open folder still has its name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(place), os.stat(folder))
    return False


class FunctionTask(_Placed):
    """Runs a function in this process, or serves."""

    def __init__(self, name: str, launch: str) -> None:
        super().__init__(name, launch)
        importlib.import_module("headrace")  # while Ray places the others

    def run(self, function: Callable[[], Any] | None, environment: Mapping[str, str]) -> Any:
        """The value of a function; without one the task serves until its process is ended."""
        os.environ.update(environment)
        importlib.import_module("headrace.settings").reload()
        if function is not None:
            try:
                return function()
            except SystemExit as error:
                # It would end the process of the actor, which nobody could tell from a kill.
                if error.code not in (None, 0):
                    raise RuntimeError(f"It has called sys.exit({error.code!r}).") from None
                return None
        importlib.import_module("headrace.launch.task").serve()
        return None
