"""Faults on the way between tasks: chosen frames are dropped, delayed, doubled, or the link is cut.

    faults = Faults()
    with with_cluster(faults=faults, ps=1, worker=1) as cluster:
        faults.add(FaultRule("drop", kind="TENSORS", number=2))
        ...

`faults.seen` lists the frames that have left since `faults.watch()`, so that a test can first look
at a step and then apply a fault to each of its frames.
"""

from __future__ import annotations

import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import OnFrame, OnPipeLost, Pipe, PipeBroken

__all__ = ["ACTIONS", "HEARTBEAT", "FaultPipe", "FaultRule", "Faults", "PassingFrame"]

ACTIONS: Final = ("drop", "delay", "duplicate", "cut", "restart")
HEARTBEAT: Final = "HEARTBEAT"
#: A link puts this in front of its frames: a byte, which is 0 but for heartbeats, and a number.
_LINK_PREFIX: Final = 9


class PassingFrame(NamedTuple):
    """A frame on its way: who sends it to whom, the name of its kind, and the how-manieth such."""

    sender: str
    receiver: str
    kind: str
    number: int


@dataclass
class FaultRule:
    """What to do with which frames.

    Attributes:
        action: "drop"; "delay" for ``seconds``, and what follows it on that pipe with it;
            "duplicate"; "cut" the link in place of sending; "restart": the receiver says and hears
            nothing more, and `Faults.on_restart` is called with its name in another thread.
        sender, receiver, kind: of the frames; None is any. Heartbeats only by their name.
        number: which of the frames that match, from 1; None is each.
        chance: of frames that match so many, chosen at random, are hit.
    """

    action: str
    sender: str | None = None
    receiver: str | None = None
    kind: str | None = None
    number: int | None = None
    seconds: float = 0.02
    chance: float = 1.0
    matched: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ValueError(f"Unknown fault {self.action!r}: there are {', '.join(ACTIONS)}.")

    def takes(self, sender: str, receiver: str, kind: str, rng: random.Random) -> bool:
        """Whether the rule hits this frame; counts it."""
        if kind == HEARTBEAT and self.kind != HEARTBEAT:
            return False
        wanted = ((self.sender, sender), (self.receiver, receiver), (self.kind, kind))
        if any(want is not None and want != is_ for want, is_ in wanted):
            return False
        self.matched += 1
        if self.number is not None and self.number != self.matched:
            return False
        hit = self.chance >= 1 or rng.random() < self.chance
        self.hits += hit
        return hit


class Faults:
    """The rules for all pipes of a cluster, and what they have seen.

    Args:
        seed: of what is random.

    Attributes:
        on_restart: ends a task and starts it again.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seen: list[PassingFrame] = []
        self.on_restart: Callable[[str], None] = lambda task: None
        self._rng = random.Random(seed)
        self._rules: list[FaultRule] = []
        self._counts: dict[tuple[str, str, str], int] = {}
        self._lock = threading.Lock()
        self._restarts: list[threading.Thread] = []
        self._pipes: weakref.WeakSet[FaultPipe] = weakref.WeakSet()

    def add(self, *rules: FaultRule) -> None:
        """Follow these rules, too; the first that takes a frame decides."""
        with self._lock:
            self._rules += rules

    def clear(self) -> None:
        """No more faults."""
        with self._lock:
            self._rules.clear()

    def watch(self) -> None:
        """Begin to note frames anew."""
        with self._lock:
            self.seen.clear()
            self._counts.clear()

    def wrap(self, pipe: Pipe, sender: str, receiver: str) -> FaultPipe:
        """A pipe of ``sender`` to ``receiver`` that follows the rules."""
        made = FaultPipe(pipe, sender, receiver, self)
        with self._lock:
            self._pipes.add(made)
        return made

    def isolate(self, task: str) -> None:
        """Break all pipes of a task, as the end of its process does: nothing more leaves it."""
        with self._lock:
            pipes = [p for p in self._pipes if task in (p.sender, p.receiver)]
        for pipe in pipes:
            pipe.gone = True
        for pipe in pipes:
            pipe.fail("the process has died")

    def join(self) -> None:
        """Wait until the tasks that are being restarted run again."""
        with self._lock:
            restarts, self._restarts = self._restarts, []
        for thread in restarts:
            thread.join()

    def decide(self, sender: str, receiver: str, head: bytes) -> FaultRule | None:
        """The rule for a frame that leaves; notes it."""
        kind = HEARTBEAT if head[0] else pb.Kind.Name(pb.Kind.ValueType(head[_LINK_PREFIX]))
        with self._lock:
            if kind != HEARTBEAT:
                key = (sender, receiver, kind)
                self._counts[key] = self._counts.get(key, 0) + 1
                self.seen.append(PassingFrame(*key, self._counts[key]))
            return next(
                (r for r in self._rules if r.takes(sender, receiver, kind, self._rng)), None
            )

    def restart(self, task: str) -> None:
        """Start a task again, in another thread: the caller may be one that it waits for."""
        self.isolate(task)
        thread = threading.Thread(target=lambda: self.on_restart(task), name="headrace restart")
        with self._lock:
            self._restarts.append(thread)
            thread.start()


class FaultPipe(Pipe):
    """A pipe whose frames may meet a fault on their way out."""

    def __init__(self, pipe: Pipe, sender: str, receiver: str, faults: Faults) -> None:
        self._pipe = pipe
        self.kind = pipe.kind
        self.sender, self.receiver = sender, receiver
        self.gone = False
        self._faults = faults
        self._lock = threading.Lock()
        self._delayed: deque[tuple[bytes, Sequence[Any]]] = deque()
        self._timer: threading.Timer | None = None

    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        self._pipe.start(on_frame, on_lost)

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        rule = self._faults.decide(self.sender, self.receiver, head)
        action = "" if rule is None else rule.action
        if action == "drop":
            return
        if action == "cut":
            self._pipe.fail("cut by a rule")
        elif action == "restart":
            self._faults.restart(self.receiver)
        if self.gone:
            raise PipeBroken("the process has died")
        with self._lock:
            if rule is not None and action == "delay" and self._timer is None:
                self._timer = threading.Timer(rule.seconds, self._release)
                self._timer.daemon = True
                self._timer.start()
            if self._timer is not None:
                self._delayed.append((head, buffers))
                return
            self._pipe.send(head, buffers, block)
            if action == "duplicate":
                self._pipe.send(head, buffers, block)

    def _release(self) -> None:
        with self._lock:
            self._timer = None
            while self._delayed:
                head, buffers = self._delayed.popleft()
                try:
                    self._pipe.send(head, buffers, False)
                except Exception:  # broken meanwhile: its reader tells
                    self._delayed.clear()

    def close(self) -> None:
        timer = self._timer
        if timer is not None:
            timer.cancel()
        self._pipe.close()

    def fail(self, reason: str) -> None:
        self._pipe.fail(reason)

    @property
    def progress(self) -> tuple[int, int]:
        return self._pipe.progress

    @property
    def queued(self) -> int:
        return self._pipe.queued

    @property
    def unread(self) -> int | None:
        return self._pipe.unread

    def stage(self, buffers: Sequence[Any]) -> Sequence[Any]:
        return self._pipe.stage(buffers)

    def wait_room(self) -> None:
        self._pipe.wait_room()

    def flush(self, timeout: float | None = None) -> bool:
        return self._pipe.flush(timeout)

    def trim(self, now: float) -> None:
        self._pipe.trim(now)
