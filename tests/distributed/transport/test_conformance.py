"""What every pipe does, whatever carries it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from transport_pipes import FACTORIES, WAIT, Inbox, certified, held

from headrace.distributed.transport.base import Limits, PipeBroken

MIB = 1 << 20
# What the kernel or a library may hold of a frame that was handed to it.
CARRIER = 16 * MIB


@pytest.fixture(scope="module")
def _certificates(tmp_path_factory):
    certified(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=FACTORIES)
def make(request, _certificates):
    """`make(**limits)` gives two connected pipes; nothing may be left of them at the end."""
    before = held() if request.param not in ("grpc", "rdma") else None
    made = []
    pipes = []

    def pair(**limits):
        context = FACTORIES[request.param](Limits(**limits))
        both = context.__enter__()
        made.append(context)
        pipes.extend(both)
        return both

    pair.kind = request.param
    yield pair
    for pipe in pipes:
        pipe.close()
    for context in made:
        context.__exit__(None, None, None)
    pipes.clear()
    made.clear()
    if before is not None:
        assert held() == before


def pattern(size, seed=1):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def same(received, sent):
    assert len(received) == len(sent)
    for got, expected in zip(received, sent, strict=True):
        flat = np.frombuffer(bytes(expected), np.uint8)
        assert got.dtype == np.uint8
        assert not got.flags.writeable
        assert got.ctypes.data % 64 == 0 or not got.size
        np.testing.assert_array_equal(got, flat)


def test_frames_arrive_whole_and_in_order(make):
    one, other = make()
    box, back = Inbox(other), Inbox(one)
    frames = [
        (b"", []),
        (b"head only", []),
        (b"", [b""]),
        (b"sizes", [pattern(size) for size in (0, 1, 63, 64, 65, 0, 4096, 4097, 65_535, 65_536)]),
        (b"types", [np.arange(6.0).reshape(2, 3), memoryview(b"abc"), np.float32(3).reshape(())]),
        (b"large", [pattern(3 * MIB + 1), b"x", pattern(300_000, 2), b"", pattern(70_000, 3)]),
        (b"h" * MIB, [b"tail"]),
    ]
    for head, buffers in frames:
        one.send(head, buffers)
        other.send(head, buffers)
    for inbox in (box, back):
        received = inbox.wait(len(frames))
        assert [head for head, _ in received] == [head for head, _ in frames]
        for (_, got), (_, expected) in zip(received, frames, strict=True):
            same(got, expected)
        assert not inbox.lost


def test_many_small_frames(make):
    one, other = make()
    box = Inbox(other)
    for number in range(3000):
        one.send(b"%d" % number, [b"x" * (number % 7)] if number % 3 else ())
    received = box.wait(3000)
    assert [int(head) for head, _ in received] == list(range(3000))
    for number, (_, buffers) in enumerate(received):
        assert [buffer.size for buffer in buffers] == ([number % 7] if number % 3 else [])


def test_many_buffers(make):
    one, other = make()
    box = Inbox(other)
    Inbox(one)
    buffers = [bytes([number % 251]) * (number % 90) for number in range(5000)]
    one.send(b"many", buffers)
    one.send(b"more", [pattern(66_000, seed) for seed in range(250)])
    (_, got), (_, more) = box.wait(2)
    assert [bytes(buffer) for buffer in got] == buffers
    for seed, buffer in enumerate(more):
        np.testing.assert_array_equal(buffer, pattern(66_000, seed))


@pytest.mark.parametrize("size", [1_000_000, 10_000_000, 100_000_000])
def test_large_buffers_again_and_again(make, size):
    one, other = make()
    box = Inbox(other)
    Inbox(one)
    data = pattern(size)
    for count in range(1, 4):
        one.send(b"large", [data, data[:5]])
        _, (large, small) = box.wait(count).pop()
        assert large.ctypes.data % 64 == 0
        assert np.array_equal(large, data)
        same([small], [data[:5]])
        del large, small


def test_what_is_received_outlives_the_pipe(make):
    one, other = make()
    box = Inbox(other)
    data = pattern(2 * MIB)
    one.send(b"", [data, data[:100]])
    _, buffers = box.wait(1).pop()
    one.close()
    other.close()
    gc.collect()
    same(buffers, [data, data[:100]])


def test_memory_is_not_reused_while_somebody_looks(make):
    one, other = make()
    box = Inbox(other)
    Inbox(one)
    kept = []
    for seed in range(12):
        one.send(b"", [pattern(300_000, seed)])
        _, (buffer,) = box.wait(seed + 1).pop()
        if seed % 3 == 0:
            kept.append((seed, buffer[1000:2000]))
        del buffer
    for seed, piece in kept:
        np.testing.assert_array_equal(piece, pattern(300_000, seed)[1000:2000])


def test_buffers_live_until_they_are_written(make):
    one, other = make()
    expected = [pattern(8 * MIB, seed) for seed in range(4)]
    for seed in range(4):
        one.send(b"", [pattern(8 * MIB, seed)], block=False)
    gc.collect()
    other_memory = [np.zeros(8 * MIB, np.uint8) for _ in range(4)]
    box = Inbox(other)
    assert one.flush(WAIT)
    for (_, (got,)), sent in zip(box.wait(4), expected, strict=True):
        assert np.array_equal(got, sent)
    del other_memory


def test_a_slow_reader_holds_the_sender_up(make):
    one, other = make(high_water=MIB)
    box = Inbox(other, keep=False)
    Inbox(one)
    box.gate.clear()
    data = pattern(256 << 10)
    accepted = []

    def send():
        for _ in range(400):
            one.send(b"", [data])
            accepted.append(1)

    sender = threading.Thread(target=send)
    sender.start()
    steady, last = 0, -1
    pause = threading.Event()
    while steady < 10:  # until nothing more is accepted
        steady = steady + 1 if len(accepted) == last else 0
        last = len(accepted)
        pause.wait(0.01)
    assert 2 < len(accepted) * data.nbytes < 2 * MIB + CARRIER
    box.gate.set()
    sender.join(WAIT)
    assert not sender.is_alive()
    box.wait(400)


def test_a_sender_that_must_not_wait_never_does(make):
    one, other = make(high_water=MIB)
    box = Inbox(other, keep=False)
    box.gate.clear()
    data = pattern(MIB)
    for _ in range(60):
        one.send(b"", [data], block=False)
    one.send(b"last", block=False)
    box.gate.set()
    box.wait(61)


def test_both_sides_may_answer_from_their_readers(make):
    one, other = make(high_water=MIB)
    done = threading.Event()
    data = pattern(600_000)

    def bounce(pipe):
        def on_frame(head, buffers):
            count = int(head)
            if count == 30:
                done.set()
            else:
                pipe.send(b"%d" % (count + 1), [data], block=False)

        return on_frame

    one.start(bounce(one), lambda reason: None)
    other.start(bounce(other), lambda reason: None)
    for _ in range(4):
        one.send(b"0", [data])
    assert done.wait(WAIT)


def test_concurrent_senders(make):
    one, other = make()
    box = Inbox(other)
    Inbox(one)
    failures = []

    def send(who):
        try:
            for number in range(100):
                size = 100_000 if number % 10 == 0 else number
                one.send(b"%d %d" % (who, number), [np.full(size, (who + number) % 251, np.uint8)])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not failures
    seen = {who: [] for who in range(4)}
    for head, (buffer,) in box.wait(400):
        who, number = map(int, head.split())
        seen[who].append(number)
        assert buffer.size == (100_000 if number % 10 == 0 else number)
        assert (buffer == (who + number) % 251).all()
    assert all(numbers == list(range(100)) for numbers in seen.values())


def test_progress_counts_the_bytes(make):
    one, other = make()
    box = Inbox(other)
    one.send(b"head", [pattern(MIB)])
    box.wait(1)
    one.flush(WAIT)
    one.send(b"end")
    box.wait(2)
    assert MIB < one.progress[1] < MIB + 10_000
    assert MIB < other.progress[0] < MIB + 10_000


def test_closing_one_side_is_told_to_the_other_after_the_last_frame(make):
    one, other = make()
    box, own = Inbox(other), Inbox(one)
    one.send(b"last words", [b"x"])
    assert one.flush(WAIT)
    box.wait(1)
    one.close()
    one.close()
    assert "closed" in box.wait_lost()
    assert len(box.frames) == 1
    for pipe in (one, other):
        with pytest.raises(PipeBroken):
            pipe.send(b"too late")
    other.close()
    assert own.lost == []
    assert len(box.lost) == 1


def test_a_pipe_may_be_closed_before_it_starts_and_by_its_own_reader(make):
    one, other = make()
    closed = threading.Event()
    lost = []

    def on_frame(head, buffers):
        other.close()
        closed.set()

    other.start(on_frame, lost.append)
    one.send(b"close!")
    assert closed.wait(WAIT)
    other.close()
    one.close()
    assert lost == []
    with pytest.raises(PipeBroken):
        one.start(lambda head, buffers: None, lost.append)


def test_closing_wakes_a_sender_that_waits(make):
    one, other = make(high_water=MIB)
    box, own = Inbox(other), Inbox(one)
    box.gate.clear()
    started = threading.Event()
    raised = []

    def send():
        try:
            for _ in range(1000):
                one.send(b"", [pattern(MIB)])
                started.set()
        except PipeBroken as error:
            raised.append(error.reason)

    sender = threading.Thread(target=send)
    sender.start()
    assert started.wait(WAIT)
    one.close()
    sender.join(WAIT)
    assert not sender.is_alive()
    assert len(raised) == 1
    assert own.lost == []
    box.gate.set()


def test_failing_breaks_both_sides_with_a_reason(make):
    one, other = make()
    box, own = Inbox(other), Inbox(one)
    one.fail("the peer was silent")
    assert own.wait_lost() == "the peer was silent"
    assert box.wait_lost()
    assert (len(own.lost), len(box.lost)) == (1, 1)


def test_a_frame_that_cannot_be_handled_breaks_the_pipe(make, caplog):
    one, other = make()
    own = Inbox(one)
    lost = Inbox()

    def on_frame(head, buffers):
        raise LookupError("no such step")

    other.start(on_frame, lost.on_lost)
    one.send(b"frame")
    assert "no such step" in lost.wait_lost()
    assert own.wait_lost()


def test_frames_over_a_limit_are_refused_and_the_pipe_lives_on(make):
    one, other = make(max_head_bytes=1000, max_buffers=3, max_frame_bytes=200_000)
    box = Inbox(other)
    for head, buffers, problem in (
        (b"x" * 1001, [], "head has 1001 bytes, the limit is 1000"),
        (b"", [b"x"] * 4, "4 buffers, the limit is 3"),
        (b"", [pattern(200_001)], "has 200001 bytes, the limit is 200000"),
        (b"", [np.zeros((200, 200))[:, 1:]], "C-contiguous"),
    ):
        with pytest.raises(ValueError, match=problem):
            one.send(head, buffers)
    one.send(b"x" * 1000, [pattern(66_000)] * 3)
    box.wait(1)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_frames_above_two_gigabytes(make):
    if make.kind in ("inproc", "tls"):
        pytest.skip("the length of a buffer means nothing special to it")
    one, other = make()
    box = Inbox(other)
    data = np.zeros((2 << 30) + 12_345, np.uint8)
    data[::4096] = np.arange(data[::4096].size, dtype=np.uint32).astype(np.uint8)
    one.send(b"huge", [b"before", data, b"after"])
    with box._changed:
        assert box._changed.wait_for(lambda: box.count or box.lost, 200)
    head, (before, huge, after) = box.wait(1).pop()
    assert (head, bytes(before), bytes(after)) == (b"huge", b"before", b"after")
    assert huge.nbytes == data.nbytes
    assert np.array_equal(huge, data)
