"""Streams that end, stall, lie or are garbage; what is half received; the writer thread."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import struct
import threading
import zlib

import numpy as np
import pytest
from transport_pipes import WAIT, Inbox, held, socket_pipes

from headrace.distributed.transport.base import DEFAULT_LIMITS, Limits, PipeBroken
from headrace.distributed.transport.framing import DATA, ENTRY, FrameReader, frame_bytes
from headrace.distributed.transport.sockets import SocketChannel
from headrace.distributed.transport.stream import StreamPipe


@pytest.fixture
def raw():
    """A pipe, and the bare socket at its other end. Nothing is left of both."""
    before = held()
    bare, sock = socket.socketpair()
    pipe = StreamPipe(SocketChannel(sock), "bare")
    yield pipe, bare
    pipe.close()
    bare.close()
    assert held() == before


def frame(head=b"head", sizes=(), flags=0):
    table = b"".join(ENTRY.pack(size, 0, 0) for size in sizes)
    body = b"".join(bytes([size % 251]) * size for size in sizes)
    return frame_bytes(DATA, flags, head, table, sum(sizes)) + body


def read_all(data):
    """The frames of some bytes, and why they ended."""
    rest = memoryview(data)

    def receive(view, count):
        nonlocal rest
        count = min(count, len(rest))
        view[:count] = rest[:count]
        rest = rest[count:]
        return count

    reader = FrameReader(receive, Limits(max_frame_bytes=1 << 20))
    frames = []
    while True:
        try:
            frames.append(reader.next())
        except PipeBroken as broken:
            return frames, broken.reason


def test_frames_may_come_byte_by_byte(raw):
    pipe, bare = raw
    box = Inbox(pipe)
    for byte in frame(b"slow", [3, 0, 70]):
        bare.send(bytes([byte]))
    ((head, buffers),) = box.wait(1)
    assert (head, [buffer.size for buffer in buffers]) == (b"slow", [3, 0, 70])


def test_many_frames_may_come_at_once(raw):
    pipe, bare = raw
    box = Inbox(pipe)
    threading.Thread(target=bare.sendall, args=(frame(b"x", [5]) * 4000,)).start()
    assert all(head == b"x" and buffers[0].size == 5 for head, buffers in box.wait(4000))


def test_progress_moves_with_a_half_received_frame(raw):
    pipe, bare = raw
    Inbox(pipe)
    whole = frame(b"large", [1 << 20])
    pause = threading.Event()
    for end in (100_000, 200_000, 900_000):
        already = pipe.progress[0]
        bare.sendall(whole[already:end])
        for _ in range(2000):
            if pipe.progress[0] == end:
                break
            pause.wait(0.005)
        assert pipe.progress[0] == end


@pytest.mark.parametrize("tail", [b"", frame()[:5], frame(b"h", [100])[:-1]])
def test_the_peers_half_close_ends_the_pipe(raw, tail):
    pipe, bare = raw
    box = Inbox(pipe)
    bare.sendall(frame(b"whole") + tail)
    bare.shutdown(socket.SHUT_WR)
    assert box.wait_lost() == "the peer closed the connection"
    assert [head for head, _ in box.frames] == [b"whole"]
    with pytest.raises(PipeBroken, match="the peer closed the connection"):
        pipe.send(b"too late")
    assert bare.recv(10) == b""  # and the other half is closed for it


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "no frame header"),
        (b"\0" * 28, "no frame header"),
        (frame_bytes(DATA, 0, b"", b"", 0)[:-1] + b"\1", "no frame header"),
        (frame(b"abc")[:-1] + b"d", "wrong checksum of its head"),
        (frame_bytes(7, 0, b"", b"", 0), "unknown kind 7"),
        (frame_bytes(1, 0, b"", b"", 0), "unknown kind 1"),  # there is no shared memory
        (frame_bytes(DATA, 0, b"", b"", 9), "bytes without a buffer"),
        (frame_bytes(DATA, 0, b"", ENTRY.pack(8, 0, 0), 9), "buffers of 8 bytes in a body of 9"),
        (frame_bytes(DATA, 0, b"", ENTRY.pack(8, 1, 1), 0), "shared memory was not agreed"),
        (frame_bytes(DATA, 0, b"", ENTRY.pack(1 << 41, 0, 0), 1 << 41), "refused: a frame has"),
        (frame_bytes(DATA, 0, b"", ENTRY.pack(0, 0, 0) * 65_537, 0), "refused: .* 65537 buffers"),
    ],
)
def test_what_is_no_frame_ends_the_pipe_with_a_reason(raw, data, reason):
    pipe, bare = raw
    box = Inbox(pipe)
    with contextlib.suppress(OSError):  # it may be cut off in the middle
        bare.sendall(frame(b"fine") + data)
        bare.shutdown(socket.SHUT_WR)
    box.wait_lost()
    assert re.search(reason, box.lost[0]), box.lost
    assert [head for head, _ in box.frames] == [b"fine"]


def test_an_oversized_head_is_refused_before_it_comes(raw):
    pipe, bare = raw
    box = Inbox(pipe)
    header = bytearray(frame_bytes(DATA, 0, b"", b"", 0))
    struct.pack_into("<I", header, 8, (64 << 20) + 1)
    struct.pack_into("<I", header, 0, zlib.crc32(header[4:28]))
    bare.sendall(header)
    assert "head has 67108865 bytes, the limit is 67108864" in box.wait_lost()


def test_random_bytes_are_no_frames():
    random_bytes = random.Random(1)
    for _ in range(300):
        frames, reason = read_all(random_bytes.randbytes(random_bytes.randrange(200)))
        assert frames == []
        assert "malformed frame" in reason or "closed" in reason


def test_any_flipped_bit_before_the_buffers_is_noticed():
    whole = frame(b"some head", [10, 0, 300])
    described = len(whole) - 310
    for place in range(described * 8):
        flipped = bytearray(frame(b"before") + whole + frame(b"after"))
        flipped[len(frame(b"before")) + place // 8] ^= 1 << place % 8
        frames, reason = read_all(flipped)
        assert [f.head for f in frames] == [b"before"]
        assert "malformed frame" in reason or "refused" in reason


def test_cut_frames_are_not_delivered():
    whole = frame(b"some head", [10, 0, 70_000])
    for end in (*range(120), 1000, 66_000, len(whole) - 1):
        frames, reason = read_all(whole[:end])
        assert frames == []
        assert reason == "the peer closed the connection"


def test_the_writer_thread_exists_only_once_a_send_did_not_fit():
    one, other = socket_pipes()
    try:
        box = Inbox(other, keep=False)
        for _ in range(20):
            one.send(b"small", [b"x" * 100])
        box.wait(20)
        assert one._writer is None
        box.gate.clear()
        one.send(b"its reader is held here")  # or it takes all the rest before anybody looks
        one.send(b"", [np.zeros(64 << 20, np.uint8)])
        assert one._writer is not None
        assert one.queued > 0
        assert not one.flush(0.01)
        box.gate.set()
        assert one.flush(WAIT)
        assert one.queued == 0
    finally:
        one.close()
        other.close()


def test_last_words_arrive_also_if_our_own_words_meet_a_closed_door(raw):
    pipe, bare = raw
    bare.sendall(frame(b"last") + frame(b"words", [100_000]))
    bare.close()
    with pytest.raises(PipeBroken, match="the peer closed the connection"):
        pipe.send(b"hello?")
    box = Inbox(pipe)
    assert box.wait_lost() == "the peer closed the connection"
    assert [head for head, _ in box.frames] == [b"last", b"words"]


def test_flush_says_that_the_pipe_broke():
    one, other = socket_pipes()
    one.send(b"", [np.zeros(64 << 20, np.uint8)])
    other.close()
    with pytest.raises(PipeBroken):
        one.flush(WAIT)
    one.close()


def test_a_pipe_starts_once(raw):
    pipe, _ = raw
    Inbox(pipe)
    with pytest.raises(RuntimeError, match="started before"):
        Inbox(pipe)


def test_defaults():
    assert Limits(64 << 20, 65_536, 1 << 40, 64 << 20) == DEFAULT_LIMITS


class _SlowChannel(SocketChannel):
    """Its blocking write ends a while after the channel was shut down."""

    def __init__(self, sock):
        super().__init__(sock)
        self.writing, self.shut = threading.Event(), threading.Event()
        self.open_while_writing = []

    def write(self, parts, descriptors, wait):
        if not wait:
            return super().write(parts, descriptors, wait)
        self.writing.set()
        assert self.shut.wait(WAIT)
        self.open_while_writing.append(self._sock.fileno() >= 0)
        raise BrokenPipeError

    def shutdown(self):
        super().shutdown()
        self.shut.set()


def test_a_pipe_that_was_never_started_is_closed_after_its_writer():
    bare, sock = socket.socketpair()
    channel = _SlowChannel(sock)
    pipe = StreamPipe(channel, "slow")
    pipe.send(b"", [np.zeros(1 << 22, np.uint8)], block=False)
    assert channel.writing.wait(WAIT)
    pipe.close()
    assert channel.open_while_writing == [True]
    bare.close()
