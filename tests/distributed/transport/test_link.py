"""Numbers, heartbeats and silence, with a pipe that does what the test says and no real time."""

from __future__ import annotations

import random

import numpy as np
import pytest
from transport_pipes import PS

from headrace.distributed.transport.base import Pipe, PipeBroken
from headrace.distributed.transport.link import Link


class FakePipe(Pipe):
    """Keeps what is sent; `deliver` and `lose` act for the peer."""

    kind = "fake"

    def __init__(self):
        self.sent = []
        self.bytes_in = 0
        self.waiting = 0
        self.failed = []
        self.closed = self.trimmed = 0

    def start(self, on_frame, on_lost):
        self.on_frame, self.lose = on_frame, on_lost

    def send(self, head, buffers=(), block=True):
        assert not block
        if self.failed:
            raise PipeBroken(self.failed[0])
        self.sent.append((head, list(buffers)))

    def deliver(self, frame):
        self.bytes_in += 1
        self.on_frame(*frame)

    def close(self):
        self.closed += 1

    def fail(self, reason):
        self.failed.append(reason)

    def trim(self, now):
        self.trimmed += 1

    @property
    def queued(self):
        return self.waiting

    @property
    def progress(self):
        return self.bytes_in, len(self.sent)


class Side:
    def __init__(self, **options):
        self.pipe = FakePipe()
        self.heads = []
        self.lost = []
        self.link = Link(
            self.pipe,
            PS,
            lambda link, head, buffers: self.heads.append(head),
            lambda link, reason: self.lost.append(reason),
            clock=lambda: 0.0,
            rng=random.Random(3),
            **options,
        )


@pytest.fixture
def two():
    return Side(), Side()


def carry(one, other, frames=slice(None)):
    for frame in one.pipe.sent[frames]:
        other.pipe.deliver(frame)


def test_frames_carry_their_numbers_and_duplicates_are_dropped(two):
    one, other = two
    for head in (b"a", b"", b"c"):
        one.link.send(head)
    carry(one, other)
    carry(one, other, slice(1, 3))
    assert other.heads == [b"a", b"", b"c"]
    assert other.link.stats.duplicates == 2
    assert other.link.stats.frames_in == one.link.stats.frames_out == 3
    assert other.lost == []


def test_a_gap_breaks_the_pipe(two):
    one, other = two
    for head in (b"a", b"b", b"c", b"d"):
        one.link.send(head)
    other.pipe.deliver(one.pipe.sent[0])
    with pytest.raises(PipeBroken, match="frames 1 to 2 were lost"):
        other.pipe.deliver(one.pipe.sent[3])
    assert other.heads == [b"a"]


def test_a_heartbeat_shows_that_the_last_frame_was_lost(two):
    one, other = two
    one.link.send(b"lost")
    one.link.tick(1.0)  # says nothing: a frame just left
    one.link.tick(2.0)
    assert len(one.pipe.sent) == 2
    with pytest.raises(PipeBroken, match="frames 0 to 0 were lost"):
        other.pipe.deliver(one.pipe.sent[1])


def test_an_old_heartbeat_is_harmless(two):
    one, other = two
    one.link.tick(1.0)
    one.link.send(b"a")
    carry(one, other)
    carry(one, other, slice(0, 1))
    assert other.heads == [b"a"]


@pytest.mark.parametrize("head", [b"", b"\0" * 8, b"\7" + b"\0" * 8])
def test_what_is_no_frame_of_a_link_breaks_the_pipe(two, head):
    with pytest.raises(PipeBroken, match="malformed"):
        two[0].pipe.deliver((head, []))


def test_heartbeats_come_half_a_second_apart_with_jitter(two):
    one, _ = two
    beats = []
    for step in range(1, 10_001):
        now = step / 100
        one.pipe.bytes_in += 1  # the peer is alive
        before = len(one.pipe.sent)
        one.link.tick(now)
        if len(one.pipe.sent) > before:
            beats.append(now)
    gaps = np.diff([0, *beats])
    assert 0.4 <= gaps.min() < 0.43
    assert 0.57 < gaps.max() <= 0.615
    assert abs(gaps.mean() - 0.5) < 0.02
    assert one.pipe.trimmed in (19, 20)
    assert one.lost == []


def test_no_heartbeat_while_frames_leave_or_wait(two):
    one, _ = two
    for step in range(1, 20):
        one.pipe.bytes_in += 1
        one.link.send(b"work")
        one.link.tick(step / 1.0)
    assert len(one.pipe.sent) == 19
    one.pipe.waiting = 5
    for step in range(20, 40):
        one.pipe.bytes_in += 1
        one.link.tick(step / 1.0)
    assert len(one.pipe.sent) == 19


def test_silence_loses_the_link_once():
    side = Side(timeout=4.0)
    for tenths in range(40):
        side.link.tick(tenths / 10)
    side.pipe.bytes_in += 1  # a byte of a half-received frame is life
    for tenths in range(40, 81):
        side.link.tick(tenths / 10)
    assert side.lost == []
    for tenths in range(81, 120):
        side.link.tick(tenths / 10)
    side.pipe.lose("the peer was silent")
    assert side.lost == ["nothing came from /job:ps/replica:0/task:0 for 4.1 s"]
    assert side.pipe.failed == side.lost
    assert side.link.lost
    with pytest.raises(PipeBroken):
        side.link.send(b"too late")


def test_the_pipes_end_is_the_links_end(two):
    one, other = two
    one.pipe.lose("cut")
    one.pipe.lose("again")
    assert one.lost == ["cut"]
    one.pipe.deliver((b"\0" * 9, []))
    assert one.heads == []
    other.link.close()
    other.link.close()
    other.pipe.lose("closed")
    other.link.tick(100.0)
    assert other.lost == []
    assert other.pipe.closed == 2


def test_a_broken_pipe_does_not_break_the_heart(two):
    one, _ = two
    one.pipe.failed.append("cut")
    one.link.tick(1.0)
    assert one.lost == []  # the reader of the pipe says it
