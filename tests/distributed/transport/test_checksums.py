"""CRC32C: its values, where it is made, and that no damaged buffer comes through."""

from __future__ import annotations

import queue

import numpy as np
import pytest
from test_stream import read_all
from transport_pipes import PS, WAIT, WORKER, Inbox, certified, socket_pipes

from headrace import errors
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport import checksum, frame_body
from headrace.distributed.transport.base import DEFAULT_LIMITS, PipeBroken
from headrace.distributed.transport.checksum import crc32c, wanted_between
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.stream import StreamPipe
from headrace.settings import flags


def test_known_values():
    """RFC 3720, appendix B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


def test_pieces_and_kinds_of_memory_make_no_difference(monkeypatch):
    data = np.random.RandomState(0).bytes(1000)
    expected = crc32c(data)
    array = np.frombuffer(data, np.uint8)
    assert crc32c(memoryview(data)) == crc32c(array) == crc32c(array.copy()) == expected
    assert crc32c(memoryview(bytearray(data))) == expected
    assert crc32c(data[400:], crc32c(data[:400])) == expected
    assert crc32c(memoryview(b"")) == 0
    monkeypatch.setattr(checksum, "_PIECE", 7)
    assert crc32c(data) == crc32c(array) == expected


@pytest.mark.parametrize(
    ("setting", "hosts", "wanted"),
    [
        ("auto", ["127.0.0.1", "127.0.0.1"], False),
        ("auto", ["::1", "::1"], False),
        ("auto", ["10.0.0.1", "10.0.0.2"], True),
        ("auto", ["fe80::1", "fe80::2"], True),
        ("1", ["127.0.0.1"], True),
        ("0", ["10.0.0.1"], False),
    ],
)
def test_they_are_made_between_hosts_unless_told(monkeypatch, setting, hosts, wanted):
    monkeypatch.setattr(flags, "checksums", setting)
    assert wanted_between(None, *hosts) is wanted
    assert wanted_between(not wanted, *hosts) is not wanted


def test_a_setting_that_is_none(monkeypatch):
    monkeypatch.setattr(flags, "checksums", "yes")
    with pytest.raises(errors.InvalidArgumentError, match='"auto", "1" or "0", got \'yes\''):
        wanted_between(None, "127.0.0.1")


@pytest.mark.parametrize(("ours", "theirs"), [(True, False), (False, True), (False, False)])
def test_either_side_can_ask_for_them(ours, theirs):
    pipe, other = connected(Security(), theirs, allow_unix=False, checksums=ours)
    assert pipe.checked == other.checked == (ours or theirs)
    box = Inbox(other)
    buffers = [np.arange(n, dtype=np.uint8) for n in (0, 1, 200)] + [np.zeros(200_000, np.uint8)]
    pipe.send(b"head", buffers)
    ((_, found),) = box.wait(1)
    for got, sent in zip(found, buffers, strict=True):
        np.testing.assert_array_equal(got, sent)
    pipe.close()
    other.close()


def connected(security, theirs=None, **ways):
    """The two ends of a pipe."""
    pipes = queue.Queue()
    config = ListenConfig(checksums=theirs)
    listener = listen(config, security, PS, lambda pipe, peer: pipes.put(pipe))
    pipe, _ = dial(listener.endpoint, security, WORKER, PS, allow_inproc=False, **ways)
    other = pipes.get(timeout=WAIT)
    listener.close()
    return pipe, other


def test_tls_and_unix_sockets_need_none(tmp_path, monkeypatch):
    monkeypatch.setattr(flags, "checksums", "1")
    for security, allow_unix in ((certified(tmp_path), False), (Security(), True)):
        way = {"allow_unix": allow_unix, "allow_shared_memory": False}
        for pipe in connected(security, **way):
            assert not pipe.checked
            pipe.close()


class _Bytes:
    """A channel that keeps what is written."""

    def __init__(self):
        self.written = b""

    def receive(self, view, count):
        return 0

    def write(self, parts, descriptors, wait):
        piece = b"".join(map(bytes, parts))
        self.written += piece
        return len(piece)

    def shutdown(self):
        """Nothing to end."""

    close = end_writing = shutdown


def stream_of(buffers):
    """The bytes of a frame with checksums."""
    channel = _Bytes()
    pipe = StreamPipe(channel, checked=True)
    pipe.send(b"some head", buffers)
    pipe.close()
    return channel.written


@pytest.mark.parametrize("sizes", [[10, 0, 300], [1] * 20, [70_000]])
def test_any_flipped_bit_of_a_frame_is_noticed(sizes):
    whole = stream_of([np.full(size, 7, np.uint8) for size in sizes])
    (frame,), reason = read_all(whole)
    assert reason == "the peer closed the connection"
    assert [buffer.size for buffer in frame.buffers] == sizes
    step = 1 if len(whole) < 1000 else 997
    for place in range(0, len(whole) * 8, step):
        flipped = bytearray(whole + whole)
        flipped[place // 8] ^= 1 << place % 8
        frames, reason = read_all(flipped)
        assert frames == []
        assert "malformed frame" in reason or "arrived damaged: its CRC32C" in reason, reason


def test_a_large_buffer_is_checked_as_it_comes():
    one, other = socket_pipes()
    one.checked = True
    box = Inbox(other)
    data = np.random.RandomState(1).randint(0, 256, 9 << 20, np.uint8)
    one.send(b"", [data])
    ((_, (got,)),) = box.wait(1)
    np.testing.assert_array_equal(got, data)
    one.close()
    other.close()


@pytest.mark.parametrize("checked", [True, False])
def test_bodies_have_a_checksum_of_their_own(checked):
    buffers = [b"small", np.arange(3000, dtype=np.uint8), b"", np.ones(5000, np.uint8)]
    body, count, large = frame_body.encode_body(b"head", buffers, DEFAULT_LIMITS, checked)
    frame_body.check_announced(4, count, len(body), DEFAULT_LIMITS)
    opened = frame_body.open_body(memoryview(body), 4, count, DEFAULT_LIMITS)
    assert opened.head == b"head"
    assert len(opened.checksums) == checked
    (view, _), content = opened.rooms[0], bytes(large[0])
    view[:] = content
    opened.check()
    view[17] ^= 1
    if checked:
        with pytest.raises(PipeBroken, match="a buffer of 5000 bytes arrived damaged"):
            opened.check()
    for place in range(0, len(body) * 8, 13):
        flipped = bytearray(body)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(PipeBroken, match="wrong checksum of its body"):
            frame_body.open_body(memoryview(flipped), 4, count, DEFAULT_LIMITS)


def test_it_is_made_by_the_processor():
    import google_crc32c

    assert google_crc32c.implementation == "c"
