"""The links of one process to others: found, made on demand, and given up when silent.

In: the name of a task. Out: a link to it, over which it has spoken. Invariant: who was told that a
link is lost never gets that link again. What it decides, it asks `links.links.LinkTable`; this has
the sockets, the threads and the clock.

    >>> from headrace.harness.cluster import with_cluster
    >>> with tf.Graph().as_default(), with_cluster(worker=2) as cluster:
    ...     with tf.device("/job:worker/task:1"):
    ...         one = tf.constant(1.0) + 0.0
    ...     with tf.Session(cluster.target("worker")) as session:  # the first step makes the link
    ...         float(session.run(one))
    1.0
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

from headrace.distributed.links.links import LinkTable, Roll
from headrace.distributed.links.liveness import Probe
from headrace.distributed.links.timing import DEFAULT_TIMING, Timing
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PeerInfo, Pipe, PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import unavailable
from headrace.distributed.wire.messages import pack, unpack
from headrace.errors import DeadlineExceededError, OpError, UnavailableError
from headrace.executor.threads import step_threads

_log = logging.getLogger("headrace.distributed")

#: A wait for a task is logged this often, in seconds.
NOTICE_SECONDS = 10.0
#: And after so many for the first time: tasks of a cluster are started one after another.
FIRST_NOTICE_SECONDS = 2.0
#: Pause between two attempts to connect, in seconds.
RETRY_SECONDS = 0.2
#: A task that was reached gets at least so many seconds to speak on the new link.
ANSWER_SECONDS = 1.0
#: A silent task is asked whether it is alive after this part of the time that it has.
ASK_AFTER = 0.6
#: The names of clients begin with this.
CLIENT = "client:"
_LINKS = bytes([pb.LINKS])
#: The kind of pipe that goes through the port of the control plane.
_FALLBACK = "grpc"


class Handler(Protocol):
    """Who gets what links bring."""

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None: ...

    def on_lost(self, link: Link, reason: str) -> None:
        """A link is gone, and with it perhaps messages of any step that is open with its peer.

        What begins after this has returned uses no link that the peer has lost, either; see
        `distributed.links.links`. Links that carried nothing go without a word.
        """

    def on_tick(self, now: float) -> None: ...


class Dial(Protocol):
    """Connects to a task; raises UnavailableError when it does not answer in time, other OpErrors
    when it answers wrongly."""

    def __call__(
        self, address: str, task: str, timeout: float, /, *, fallback: bool = True
    ) -> tuple[Pipe, PeerInfo]:
        """``fallback``: through the port of the control plane, if the data port is not there."""


class Peers:
    """The links of one process.

    Args:
        handler: gets frames and losses.
        dial: see `Dial`.
        clock: seconds, monotonic.
        probe: asks a silent task whether it is alive; without it silence means that it is not.

    Attributes:
        is_elsewhere: whether a task is not at an address any more: nobody waits for it there.
    """

    def __init__(
        self,
        handler: Handler,
        dial: Dial,
        timing: Timing = DEFAULT_TIMING,
        clock: Callable[[], float] = time.monotonic,
        probe: Probe | None = None,
    ) -> None:
        self.timing = timing
        self._handler = handler
        self._dial = dial
        self._clock = clock
        self._probe = probe
        self.is_elsewhere: Callable[[str, str], bool] = lambda task, address: False
        #: Links whose peers are asked now.
        self._asking: WeakSet[Link] = WeakSet()
        self._table = LinkTable()
        self._lock = threading.Lock()
        #: A link can be used from now on, or is lost.
        self._changed = threading.Condition()
        self._dialling: dict[str, threading.Lock] = {}
        #: Where the tasks are that are dialled now.
        self._awaited: dict[str, str] = {}
        #: Links that we have dialled past a data port: the address, and when to try that again.
        self._fallbacks: dict[Link, tuple[str, float]] = {}
        self._stop = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="headrace heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to look after links; from now on the handler hears of the time."""
        self._ticker.start()

    def adopt(self, pipe: Pipe, peer: PeerInfo, dialled: bool = False) -> Link:
        """Make a link of a pipe that was connected, by us (``dialled``) or by the peer.

        It is used when the peer has spoken on it. There may be two to one peer, when both have
        dialled at once: the newest is used. Links to an earlier start of the peer are lost by this.

        Raises:
            PipeBroken: the pipe broke before.
        """
        link = Link(
            pipe,
            peer,
            self._arrived,
            self._lost,
            self._clock,
            interval=self.timing.heartbeat,
            # The death of a client breaks its connection; one that is silent may be suspended.
            timeout=self.timing.orphan if is_client(peer.task) else self.timing.silence,
            most=None if is_client(peer.task) else self.timing.longest_silence,
        )
        if not self._table.add(link) and self._stop.is_set():
            link.close()
        self.started_again(peer.task, peer.incarnation)
        if dialled:
            self._tell(link, self._table.introduce(link))
        return link

    def started_again(self, task: str, incarnation: int) -> None:
        """Give up links to other starts of a task than this."""
        for link in self.all():
            if link.peer.task == task and link.peer.incarnation != incarnation:
                link.fail(f"{task} was started again")

    def twin(self, peer: PeerInfo) -> PeerInfo | None:
        """Another start of the same task that is connected here, but is at another address."""
        for link in self.all():
            other: PeerInfo = link.peer
            same = other.task == peer.task and other.incarnation != peer.incarnation
            if same and link.introduced and other.address != peer.address and not link.lost:
                return other
        return None

    def known(self, task: str) -> Link | None:
        """The link to a task, if there is one."""
        link: Link | None = self._table.known(task)
        return link

    def all(self) -> list[Link]:
        """All links."""
        return self._table.all()

    def waits_for(self) -> str:
        """A sentence on the tasks that are being connected to, "" if there are none."""
        waited = sorted(self._awaited.copy().items())
        tasks = ", ".join(f"{task} at {address}" for task, address in waited)
        return f"There was no answer yet from {tasks}." if tasks else ""

    def link(self, task: str, address: str, timeout: float, step: int | None = None) -> Link:
        """The link to a task; connects, and waits for it, where there is none.

        Raises:
            UnavailableError: if the task does not answer within ``timeout`` seconds.
            OpError: if what answers is not that task.
        """
        link = self.known(task)
        if link is not None:
            return link
        with self._lock:
            # One thread dials a task; the others wait for its link.
            dialling = self._dialling.setdefault(task, threading.Lock())
        if not dialling.acquire(timeout=timeout):
            reason = f"no answer at {address} for {timeout:.1f} s"
            raise unavailable(task, step, reason)
        try:
            self._awaited[task] = address
            return self._connect(task, address, timeout, step)
        finally:
            self._awaited.pop(task, None)
            dialling.release()

    def _connect(self, task: str, address: str, timeout: float, step: int | None) -> Link:
        began = self._clock()
        noticed = FIRST_NOTICE_SECONDS - NOTICE_SECONDS
        while True:
            link = self.known(task)  # another thread has dialled, or the task itself
            if link is not None:
                return link
            left = began + timeout - self._clock()
            try:
                # In bites, so that a long wait is logged now and then.
                pipe, peer = self._dial(address, task, max(0.05, min(left, NOTICE_SECONDS)))
                made = self.adopt(pipe, peer, dialled=True)
                if pipe.kind == _FALLBACK:
                    self._fallbacks[made] = address, self._clock() + self.timing.data_port
                return self._answered(made, began + timeout - self._clock())
            except (OpError, PipeBroken) as error:
                # A wrong answer stays wrong; a task that is not there may still come.
                if isinstance(error, OpError) and not may_come(error):
                    raise
                why = error.message if isinstance(error, OpError) else error.reason
            waited = self._clock() - began
            is_elsewhere = self.is_elsewhere(task, address)
            if waited >= timeout or is_elsewhere or self._stop.is_set():
                reason = f"no answer at {address} for {waited:.1f} s ({why})"
                if is_elsewhere:
                    reason = f"it has left {address}"
                raise unavailable(task, step, reason)
            if waited - noticed >= NOTICE_SECONDS:
                noticed = waited
                text = "Waiting for task %s at %s, for %.0f s so far: %s"
                _log.warning(text, task, address, waited, why)
            self._stop.wait(min(RETRY_SECONDS, timeout / 5))

    def _answered(self, made: Link, timeout: float) -> Link:
        """Wait until the peer has spoken on a link that we have dialled.

        Returns:
            That link, or one that came about meanwhile.

        Raises:
            PipeBroken: if there is none in time.
        """
        task = made.peer.task

        def is_clear() -> bool:
            return made.lost or self.known(task) is not None or self._stop.is_set()

        with self._changed:
            self._changed.wait_for(is_clear, max(timeout, ANSWER_SECONDS))
        link = self.known(task)
        if link is None:
            made.fail("the peer does not answer on it")
            raise PipeBroken(made.reason)
        return link

    # -- what links bring -------------------------------------------------------------------------

    def _arrived(self, link: Link, head: bytes, buffers: list[Any]) -> None:
        if head[:1] == _LINKS:
            self._told(link, unpack(head))
        elif link.introduced:
            self._handler.on_frame(link, head, buffers)
        else:
            raise PipeBroken("malformed: the peer has not said which links it has")

    def _told(self, link: Link, message: pb.Links) -> None:
        """The peer says which links to us it has."""
        roll = Roll(message.number, message.upto, frozenset(message.live))
        try:
            answer, gone = self._table.told(link, roll)
        except ValueError as error:
            raise PipeBroken(f"malformed: {error}") from None
        if link not in gone:
            self._tell(link, answer)
            link.introduced = True
            self._table.use(link)
            self._wake()
        for other in gone:
            other.fail(f"{link.peer.task} has lost it")

    def _tell(self, link: Link, roll: Roll | None) -> None:
        if roll is not None:
            message = pb.Links(number=roll.number, upto=roll.upto, live=sorted(roll.live))
            link.send(pack(message), block=False)

    def _lost(self, link: Link, reason: str) -> None:
        # The peer hears of it first: no step that begins later may use what is lost.
        concerns, others = self._table.lost(link)
        self._wake()
        for other, roll in others:
            with contextlib.suppress(PipeBroken):  # that one is lost, too
                self._tell(other, roll)
        if self._stop.is_set() or not concerns:
            return
        if threading.current_thread() is self._ticker:
            # Others must not be thought dead while their loss is dealt with.
            step_threads.submit(self._handler.on_lost, link, reason)
        else:
            self._handler.on_lost(link, reason)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _tick(self) -> None:
        while not self._stop.wait(self.timing.tick):
            now = self._clock()
            for link in self.all():
                self._guarded(self._look_after, link, now)
            self._guarded(self._leave_fallbacks, now)
            self._guarded(self._handler.on_tick, now)

    def _look_after(self, link: Link, now: float) -> None:
        link.tick(now)
        if self._probe is None or is_client(link.peer.task):
            return
        is_silent = now - link.seen_at >= ASK_AFTER * link.suspicion.patience
        may_live = now - link.heard_at <= self.timing.orphan
        if is_silent and may_live and link not in self._asking and not link.lost:
            self._asking.add(link)
            step_threads.submit(self._ask, link)

    def _ask(self, link: Link) -> None:
        """Ask a silent task whether it is alive."""
        assert self._probe is not None
        try:
            if self._probe(link.peer.task, (1 - ASK_AFTER) * link.suspicion.patience):
                _log.info("%s is silent, but alive", link.peer.task)
                link.is_alive(self._clock())
        finally:
            self._asking.discard(link)

    def _leave_fallbacks(self, now: float) -> None:
        """Look whether a data port has come back, where we go past it."""
        for link, (address, due) in list(self._fallbacks.items()):
            if link.lost or self.known(link.peer.task) is not link:
                self._fallbacks.pop(link, None)
            elif now >= due:
                self._fallbacks[link] = address, now + self.timing.data_port
                step_threads.submit(self._leave_fallback, link, address)

    def _leave_fallback(self, link: Link, address: str) -> None:
        """Dial the data port. The new link is used from now on; the old one stays until it is
        lost: messages of steps may be on their way there."""
        task = link.peer.task
        try:
            pipe, peer = self._dial(address, task, self.timing.data_port, fallback=False)
            made = self.adopt(pipe, peer, dialled=True)
        except (OpError, PipeBroken) as error:
            _log.debug("The data port of %s is not back: %s", task, error)
            return
        _log.info("The data port of %s is back, and used instead of gRPC", task)
        if self._stop.is_set():
            made.close()

    def _guarded(self, call: Callable[..., None], *args: Any) -> None:
        """Call; whatever happens, the heart goes on."""
        try:
            call(*args)
        except Exception:
            _log.exception("Something went wrong while links were looked after")

    def close(self) -> None:
        """Close all links."""
        self._stop.set()
        links = self._table.close()
        self._wake()
        for link in links:
            link.close()
        if self._ticker.is_alive() and threading.current_thread() is not self._ticker:
            self._ticker.join()


def is_client(peer: str) -> bool:
    """Whether a peer is a client, rather than a task of the cluster."""
    return peer.startswith(CLIENT)


def may_come(error: OpError) -> bool:
    """Whether the task may only not be there yet."""
    return isinstance(error, (UnavailableError, DeadlineExceededError))
