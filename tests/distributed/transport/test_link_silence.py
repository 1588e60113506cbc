"""When a link takes its peer for dead: by a clock that only the test moves."""

import random
import threading

import pytest

from headrace.distributed.transport.base import PeerInfo, Pipe, PipeBroken
from headrace.distributed.transport.link import Link

PEER = PeerInfo("/job:ps/replica:0/task:0", 7, "host:1")
DATA = b"\0" + bytes(8)


class FakePipe(Pipe):
    """A pipe whose reader is the test."""

    kind = "fake"

    def __init__(self):
        self.bytes_in = 0
        self.waiting = 0
        self.sent = []
        self.failed = ""

    def start(self, on_frame, on_lost):
        self.on_frame, self.on_lost = on_frame, on_lost

    def send(self, head, buffers=(), block=True):
        if self.failed:
            raise PipeBroken(self.failed)
        self.sent.append(head)

    def close(self):
        pass

    def fail(self, reason):
        self.failed = self.failed or reason

    @property
    def progress(self):
        return self.bytes_in, 0

    @property
    def unread(self):
        return self.waiting


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Watched:
    """A link, what it has lost, and ticks a quarter of a second apart."""

    def __init__(self, clock, on_frame=lambda *_: None, kind="fake"):
        self.clock = clock
        self.pipe = FakePipe()
        self.pipe.kind = kind
        self.lost = []
        self.link = Link(
            self.pipe,
            PEER,
            on_frame,
            lambda link, reason: self.lost.append(reason),
            clock,
            rng=random.Random(0),
        )

    def tick_for(self, seconds, each=lambda: None):
        end = self.clock.now + seconds
        while self.clock.now < end and not self.lost:
            self.clock.now += 0.25
            each()
            self.link.tick(self.clock.now)


def test_a_silent_peer_is_dead_after_four_seconds(clock):
    watched = Watched(clock)
    watched.tick_for(4.0)
    assert not watched.lost
    watched.tick_for(0.25)
    assert watched.lost == ["nothing came from /job:ps/replica:0/task:0 for 4.2 s"]
    assert watched.pipe.failed == watched.lost[0]
    assert watched.link.lost


def test_a_peer_of_the_same_process_is_never_dead_before_us(clock):
    watched = Watched(clock, kind="inproc")
    watched.tick_for(60.0)
    assert not watched.lost


def test_a_peer_that_sends_a_byte_now_and_then_lives(clock):
    watched = Watched(clock)

    def trickle():
        watched.pipe.bytes_in += clock.now % 2 == 0

    watched.tick_for(60.0, trickle)
    assert not watched.lost


def test_heartbeats_leave_while_nothing_else_does(clock):
    watched = Watched(clock)

    def alive():
        watched.pipe.bytes_in += 1

    watched.tick_for(10.0, alive)
    assert 12 <= len(watched.pipe.sent) <= 20
    assert {head[0] for head in watched.pipe.sent} == {1}


def test_who_looks_too_late_begins_to_count_anew(clock):
    watched = Watched(clock)
    watched.tick_for(3.0)
    clock.now += 10.0  # nothing of this process ran
    watched.link.tick(clock.now)
    assert not watched.lost
    watched.tick_for(4.0)
    assert not watched.lost
    watched.tick_for(0.25)
    assert watched.lost


class BusyReader:
    """A link whose reader is within a frame until the test lets it go."""

    def __init__(self, clock):
        self._inside, self._leave = threading.Event(), threading.Event()
        self.watched = Watched(clock, self._handle)
        self._thread = threading.Thread(target=self.watched.pipe.on_frame, args=(DATA, []))

    def _handle(self, link, head, buffers):
        self._inside.set()
        assert self._leave.wait(30)

    def __enter__(self):
        self._thread.start()
        assert self._inside.wait(30)
        return self.watched

    def __exit__(self, *exc):
        self._leave.set()
        self._thread.join()


def test_while_the_reader_is_busy_what_has_arrived_counts(clock):
    with BusyReader(clock) as watched:

        def heartbeat():
            watched.pipe.waiting += 25

        watched.tick_for(30.0, heartbeat)
        assert not watched.lost
        watched.tick_for(4.5)
        assert watched.lost


def test_a_peer_that_waits_for_our_busy_reader_lives(clock):
    with BusyReader(clock) as watched:
        watched.pipe.waiting = 1 << 20
        watched.tick_for(60.0)
        assert not watched.lost
        watched.pipe.waiting = None  # nobody knows
        watched.tick_for(60.0)
        assert not watched.lost


def test_a_link_that_cannot_send_is_lost_at_once(clock):
    watched = Watched(clock)
    watched.pipe.fail("reset by peer")
    with pytest.raises(PipeBroken, match="reset by peer"):
        watched.link.send(b"hello")
    assert watched.lost == ["reset by peer"]
    with pytest.raises(PipeBroken):
        watched.link.send(b"again")
    assert watched.lost == ["reset by peer"]
