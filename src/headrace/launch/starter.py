"""The parent of the tasks of one machine: it has imported all that they need, and forks.

An import costs more than a second of a processor, and a fork a few milliseconds. At the time of a
fork no thread of ours runs, no device is open, and nothing of gRPC was begun: each task does that
for itself.

The launcher talks with it in lines of JSON, over a pair of sockets or over ssh:

| to it | from it |
|---|---|
| start (task, program, arguments, environment) | host (release, Python, processor cores) |
| signal (task, number) | output (task, lines) |
| port: keep one for a task | port (number) |
| beat: the launcher lives | ended (task, status: negative is a signal) |

The end of the connection ends all, so that tasks do not outlive the launcher; on another machine a
minute without a line does so, too. Each task has a session and process group of its own, which is
killed when it ends; what has left its group is found as an orphan of this process.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from headrace.launch.ports import HeldPorts
from headrace.launch.processes import adopt_orphans, children, kill_group
from headrace.launch.task import become

__all__ = ["Starter", "about_host", "main", "preload"]

_PIECE = 1 << 16
_PATIENCE = 60.0
#: What tasks import on their way to the first step.
_NEEDED = (
    "headrace.compat.older",
    "headrace.compat.older_python",
    "headrace.compat.tensorflow",
    "headrace.data",
    "headrace.data_parallel.engine",
    "headrace.distributed.services.client",
    "headrace.distributed.services.server",
    "headrace.estimator",
    "headrace.train",
)


def preload() -> None:
    """Import what tasks need, and let collections leave it alone: forks share its memory."""
    for name in _NEEDED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@dataclass
class _Child:
    """A task: its process, where its output comes from, and the beginning of a line."""

    task: str
    process: int
    output: int
    rest: bytes = b""


class Starter:
    """Starts tasks as it is told.

    Args:
        commands: where lines come from; `events`: where they go. File descriptors.
        patience: seconds without a line after which the launcher is taken for dead; None: for ever.
        rest: what was read of the commands already.
    """

    def __init__(
        self, commands: int, events: int, patience: float | None = None, rest: bytes = b""
    ) -> None:
        self._commands, self._events, self._patience = commands, events, patience
        self._heard = time.monotonic()
        self._ports = HeldPorts("0.0.0.0")
        self._tasks: dict[str, _Child] = {}
        self._rest = rest
        self._is_over = False
        self._selector = selectors.DefaultSelector()
        self._bell, ring = socket.socketpair()
        for end in (self._bell, ring):
            end.setblocking(False)
        self._ring = ring

    def run(self) -> None:
        """Work until the launcher says `end`, or is gone."""
        adopt_orphans()
        signal.set_wakeup_fd(self._ring.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._selector.register(self._commands, selectors.EVENT_READ, self._hear)
        self._selector.register(self._bell, selectors.EVENT_READ, self._look)
        self._tell(event="host", **about_host())
        try:
            self._take(b"")  # what came before
            while not self._is_over:
                for key, _ in self._selector.select(self._patience and self._patience / 10):
                    key.data()
                if self._patience and time.monotonic() - self._heard > self._patience:
                    self._end()
        finally:
            self._kill_all()

    def _end(self) -> None:
        self._is_over = True

    def _tell(self, **what: Any) -> None:
        data = json.dumps(what).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._events, data) :]
        except OSError:
            self._end()  # nobody is there any more

    # -- commands ---------------------------------------------------------------------------------

    def _hear(self) -> None:
        try:
            data = os.read(self._commands, _PIECE)
        except OSError:
            data = b""
        if not data:
            self._end()
            return
        self._heard = time.monotonic()
        self._take(data)

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if "start" in command:
                self._start(command["start"], command)
            elif "signal" in command:
                child = self._tasks.get(command["signal"])
                if child is not None:
                    kill_group(child.process, command["number"])
            elif "port" in command:
                self._tell(event="port", port=self._ports.take())

    def _start(self, task: str, command: dict[str, Any]) -> None:
        output, theirs = os.pipe()
        # What waits in a buffer would be written by both.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        parent = os.getpid()
        # A request to end that comes before the new process is a task waits until it is one:
        # here, and in a fork at first, it would be heard as one to this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
        try:
            process = os.fork()
            if process == 0:
                self._become(parent, theirs, command)
        finally:  # also where no process can be made
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(theirs)
        os.set_blocking(output, False)
        child = self._tasks[task] = _Child(task, process, output)
        self._selector.register(output, selectors.EVENT_READ, lambda: self._read(child))

    def _become(self, parent: int, output: int, command: dict[str, Any]) -> NoReturn:
        """In the new process: be the task."""
        signal.set_wakeup_fd(-1)
        for child in self._tasks.values():
            if child.output >= 0:
                os.close(child.output)
        self._selector.close()
        self._bell.close()
        self._ring.close()
        self._ports.close()
        for own in {self._commands, self._events} - {0, 1, 2}:
            os.close(own)
        become(parent, output, command)

    # -- what tasks do ----------------------------------------------------------------------------

    def _read(self, child: _Child) -> bool:
        """Pass on what a task has written; whether there may be more."""
        if child.output < 0:
            return False  # it has ended since the selector saw it, and all was read
        try:
            data = os.read(child.output, _PIECE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        *lines, rest = (child.rest + data).split(b"\n")
        if not data:
            self._selector.unregister(child.output)
            os.close(child.output)
            child.output = -1
        if rest and (not data or len(rest) > _PIECE):
            lines, rest = [*lines, rest], b""
        child.rest = rest.rpartition(b"\r")[2]
        if lines:
            # Of a line that was overwritten the last state counts.
            shown = [line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines]
            text = [line.decode("utf-8", "replace") for line in shown]
            self._tell(event="output", task=child.task, lines=text)
        return bool(data)

    def _look(self) -> None:
        """Some signal has come: see which processes have ended."""
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(_PIECE)
        while (ended := self._ended()) is not None:
            child = next((c for c in self._tasks.values() if c.process == ended), None)
            if child is None:
                os.waitpid(ended, 0)  # an orphan
                continue
            # While it is not waited for, its number and that of its group are nobody else's.
            kill_group(ended, signal.SIGKILL)
            self._read_rest(child)
            status = os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1])
            if child.output >= 0:
                self._selector.unregister(child.output)
                os.close(child.output)
            del self._tasks[child.task]
            self._tell(event="ended", task=child.task, status=status)

    def _read_rest(self, child: _Child) -> None:
        """Pass on what a task that has ended left in its pipe, which holds so much at most.

        What has left its group may write for ever.
        """
        if child.output >= 0:
            for _ in range(-(-fcntl.fcntl(child.output, fcntl.F_GETPIPE_SZ) // _PIECE) + 1):
                if child.output < 0 or not self._read(child):
                    return

    @staticmethod
    def _ended() -> int | None:
        """A process that has ended and was not waited for."""
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None
        return None if found is None else found.si_pid

    def _kill_all(self) -> None:
        """Leave no process behind, whatever it has become."""
        for child in self._tasks.values():
            kill_group(child.process, signal.SIGKILL)
        while left := children():
            for process in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, 0)


def about_host() -> dict[str, Any]:
    """What the launcher compares between machines."""
    from headrace.distributed.services.dialling import release

    version = sys.version_info
    return {
        "release": release(),
        "python": f"{version.major}.{version.minor}",
        "cores": os.cpu_count() or 1,
        "name": socket.gethostname(),
        "process": os.getpid(),
    }


def main(rest: bytes = b"", patience: float | None = _PATIENCE) -> None:
    """On another machine: commands come by standard input, events go to standard output.

    Args:
        rest: what was read of the commands already.
        patience: see `Starter`.
    """
    # What is printed by accident must not get among the events.
    events = os.dup(1)
    os.dup2(2, 1)
    commands = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    preload()
    Starter(commands, events, patience, rest).run()
