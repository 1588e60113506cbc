"""Faults that a process has to have by itself: slow connections, a slow disk, a wrong clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.distributed.services.server import Server
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.harness.faults import FaultRule, Faults

__all__ = ["DelayedServer", "Delays", "SkewedClock", "SlowDisk"]

#: What takes longer on a slow disk, as the interpreter reports it to audit hooks.
_DISK_EVENTS = frozenset(["open", "os.rename", "os.remove", "os.mkdir", "os.listdir"])


class Delays(Faults):
    """Holds back what pipes send, for a while; heartbeats wait behind it.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._until = float("-inf")
        self._rule = FaultRule("delay")

    def begin(self, seconds: float, by: float) -> None:
        """From now on, for so many seconds, hold back by so many."""
        self._rule = FaultRule("delay", seconds=by)
        self._until = self._clock() + seconds

    def decide(self, sender: str, receiver: str, head: bytes) -> FaultRule | None:
        """The rule for a frame that leaves; nothing is noted, as a run is long."""
        return self._rule if self._clock() < self._until else None


class DelayedServer(Server):
    """A server whose pipes to tasks that it has dialled can be slow."""

    def __init__(self, cluster: ClusterSpec, job: str, index: int, delays: Delays) -> None:
        self._delays = delays
        super().__init__(cluster, job_name=job, task_index=index)

    def _dial(
        self, address: str, task: str, timeout: float, *, fallback: bool = True
    ) -> tuple[Pipe, PeerInfo]:
        pipe, peer = super()._dial(address, task, timeout, fallback=fallback)
        return self._delays.wrap(pipe, self._task_name, task), peer


class SlowDisk:
    """Makes everything slow that this process asks of any disk, for a while.

    The interpreter asks an audit hook before it opens, renames or removes a file; this one keeps it
    waiting. Hooks cannot be taken away: make one for a process.

    Args:
        clock: seconds; wait: waits for so many.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock, self._wait = clock, wait
        self._until, self._by = float("-inf"), 0.0
        sys.addaudithook(self._hook)

    def begin(self, seconds: float, by: float) -> None:
        """From now on, for so many seconds, each takes so much longer."""
        self._by = by
        self._until = self._clock() + seconds

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _DISK_EVENTS and self._clock() < self._until:
            self._wait(self._by)


class SkewedClock:
    """Sets the wall clock of this process wrong for a while, as its Python code sees it.

    Args:
        clock: seconds, monotonic.
        functions: what has ``time`` and ``time_ns``, which are replaced.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, functions: Any = time) -> None:
        self._clock = clock
        self._until, self._by = float("-inf"), 0.0
        seconds, nanoseconds = functions.time, functions.time_ns
        functions.time = lambda: seconds() + self._error()
        functions.time_ns = lambda: nanoseconds() + int(self._error() * 1e9)

    def begin(self, seconds: float, by: float) -> None:
        """From now on, for so many seconds, be wrong by so many."""
        self._by = by
        self._until = self._clock() + seconds

    def _error(self) -> float:
        return self._by if self._clock() < self._until else 0.0
