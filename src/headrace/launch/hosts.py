"""The machines of a launch: each has a parent of tasks, and a connection to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from typing import Any, Protocol

from headrace.launch.ports import HeldPorts
from headrace.launch.processes import die_with_parent
from headrace.launch.starter import Starter, preload

__all__ = ["Connection", "HeldPorts", "Host", "LocalHost"]

_PIECE = 1 << 16
#: Bytes of a line at most: a parent of tasks tells less than a tenth at once.
_LONGEST = 1 << 22
#: What the parents of tasks tell, see `starter`.
_EVENTS: dict[str, dict[str, type]] = {
    "host": {"release": str, "python": str, "cores": int, "name": str, "process": int},
    "port": {"port": int},
    "output": {"task": str, "lines": list},
    "ended": {"task": str, "status": int},
}


class Host(Protocol):
    """A machine that runs tasks.

    Attributes:
        name: as the user calls it; "" for this machine.
    """

    name: str

    def address(self) -> str:
        """``host:port`` of one more task there, which nobody else gets."""

    def fileno(self) -> int:
        """What to wait for events by."""

    def send(self, **command: Any) -> None:
        """Tell it a command; one that is gone hears nothing."""

    def events(self) -> list[dict[str, Any]] | None:
        """What has come, at least a part of a line; None at the end of the connection.

        Raises:
            ConnectionError: if it is nothing that a host tells.
        """

    def close(self) -> str:
        """End all that is left there; tells how the connection has ended, "" if well."""


class Connection:
    """Lines of JSON both ways.

    Args:
        incoming, outgoing: file descriptors, perhaps the same one.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._in, self._out = incoming, outgoing
        self._rest = b""

    def fileno(self) -> int:
        """What to wait for."""
        return self._in

    def send(self, **command: Any) -> None:
        """Write a line."""
        data = json.dumps(command).encode() + b"\n"
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._out, data) :]

    def events(self) -> list[dict[str, Any]] | None:
        """Whole lines that have come; None at the end.

        Raises:
            ConnectionError: for what a parent of tasks does not write.
        """
        try:
            data = os.read(self._in, _PIECE)
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:
            raise ConnectionError(f"a line of more than {_LONGEST} bytes came from it")
        return [_event(line) for line in lines]

    def close(self) -> None:
        """Let the other side see the end."""
        for end in {self._in, self._out}:
            os.close(end)


def _event(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
        fields = _EVENTS[found["event"]]
        lines = found.get("lines", ())
        if (
            all(type(found[name]) is kind for name, kind in fields.items())
            and all(isinstance(text, str) for text in lines)
            and 0 < found.get("port", 1) < 1 << 16
        ):
            return dict(found)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass  # it is none of these
    shown = line[:200].decode("utf-8", "replace")
    raise ConnectionError(
        f"{shown!r} came from it, where lines of the parent of its tasks should. A login shell "
        "must print nothing when it runs a command: see its .bashrc or .profile."
    )


class LocalHost:
    """This machine: the parent of its tasks is a fork of this process.

    Make it before any thread is started. It leaves the terminal alone: Ctrl-C and a closed
    terminal are this process's business, which then ends the others.
    """

    name = ""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        launcher = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            status = 1
            with contextlib.suppress(BaseException):
                ours.close()
                os.setsid()
                die_with_parent(launcher, signal.SIGTERM)
                preload()
                Starter(theirs.fileno(), theirs.fileno()).run()
                status = 0
            os._exit(status)
        theirs.close()
        self._ours = ours
        self._ports = HeldPorts("127.0.0.1")
        self._line = Connection(ours.fileno(), ours.fileno())

    def address(self) -> str:
        """A port of 127.0.0.1."""
        return f"127.0.0.1:{self._ports.take()}"

    def fileno(self) -> int:
        """What to wait for."""
        return self._line.fileno()

    def send(self, **command: Any) -> None:
        """Tell the parent of the tasks."""
        self._line.send(**command)

    def events(self) -> list[dict[str, Any]] | None:
        """What it tells."""
        return self._line.events()

    def close(self) -> str:
        """End it, and whatever it has left."""
        self._ours.close()
        self._ports.close()
        with contextlib.suppress(ChildProcessError):
            status = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
            return "" if status == 0 else f"the parent of the tasks has ended with {status}"
        return ""
