"""Slabs: reused, bounded, given back, and safe from what a peer says about them."""

from __future__ import annotations

import gc
import os
import socket
import struct
import time

import numpy as np
import pytest
from transport_pipes import Inbox, held, socket_pipes

from headrace.distributed.transport import shm
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.framing import CONTROL, DATA, ENTRY, frame_bytes
from headrace.distributed.transport.pool import ReceivePool, size_class
from headrace.distributed.transport.sockets import SocketChannel
from headrace.distributed.transport.stream import StreamPipe
from headrace.executor.borrowed import Borrowed

pytestmark = pytest.mark.skipif(not shm.available(), reason="no anonymous shared memory here")
MIB = 1 << 20


@pytest.fixture
def pair():
    """`pair(**options of SharedMemory)`: two started pipes and their inboxes."""
    before = held()
    pipes = []

    def make(**options):
        pipes.extend(socket_pipes(shared=True, **options))
        return (*pipes, Inbox(pipes[1]), Inbox(pipes[0]))

    yield make
    for pipe in pipes:
        pipe.close()
    pipes.clear()
    assert held() == before


def data(size, value=1):
    return np.full(size, value, np.uint8)


def slabs(pipe):
    return len(pipe._memory._slabs)


def settle(one, other, box):
    """Both sides have heard all that the other said."""
    count = box.count
    other.send(b"ping")
    box.wait(count + 1)
    box.frames.clear()


def test_slabs_are_used_again_when_the_arrays_are_gone(pair):
    one, other, there, here = pair()
    for count in range(1, 11):
        one.send(b"", [data(2 * MIB, count)])
        _, (array,) = there.wait(count).pop()
        assert (array == count).all()
        del array
        settle(one, other, here)
    assert slabs(one) == 1
    kept = []
    for count in range(11, 14):
        one.send(b"", [data(2 * MIB, count)])
        kept.append(there.wait(count).pop())
    assert slabs(one) == 3
    assert [int(array[0]) for _, (array,) in kept] == [11, 12, 13]
    kept.clear()


def test_arrays_are_recognised_as_borrowed(pair):
    one, _, there, _ = pair()
    one.send(b"", [data(MIB), data(10)])
    _, (large, small) = there.wait(1).pop()
    root = large[5:].view(np.int8)
    while isinstance(root, np.ndarray):
        root = root.base
    assert isinstance(root, Borrowed)
    assert isinstance(small.base, np.ndarray)
    with pytest.raises(ValueError, match="WRITEABLE"):
        large.flags.writeable = True


def test_small_buffers_take_no_slab(pair):
    one, _, there, _ = pair()
    one.send(b"", [data(shm.THRESHOLD - 1)])
    there.wait(1)
    assert slabs(one) == 0
    one.send(b"", [data(shm.THRESHOLD)])
    there.wait(2)
    assert slabs(one) == 1


def test_beyond_the_limit_bytes_go_through_the_stream(pair):
    budget = shm.Budget(limit=5 * MIB, idle_limit=5 * MIB)
    one, _, there, _ = pair(budget=budget)
    for value in range(6):
        one.send(b"", [data(2 * MIB, value)])
    for value, (_, (array,)) in enumerate(there.wait(6)):
        assert (array == value).all()
    assert slabs(one) == 2
    assert budget.used == 2 * size_class(2 * MIB) <= budget.limit


def test_idle_slabs_go_back_to_the_system_and_the_peer_unmaps_them(pair):
    one, other, there, here = pair()
    one.send(b"", [data(2 * MIB)])
    there.wait(1).clear()
    settle(one, other, here)
    one.trim(time.monotonic() + 10)
    assert slabs(one) == 1
    one.trim(time.monotonic() + 60)
    assert slabs(one) == 0
    assert len(other._memory._mappings) == 1
    one.send(b"tells it")
    there.wait(2)
    assert other._memory._mappings == {}


def test_only_so_much_is_kept_idle(pair):
    budget = shm.Budget(limit=100 * MIB, idle_limit=3 * MIB)
    one, other, there, here = pair(budget=budget)
    for _ in range(4):
        one.send(b"", [data(MIB)])
    there.wait(4).clear()
    gc.collect()
    settle(one, other, here)
    settle(one, other, here)
    assert budget.used <= 3 * MIB


def test_a_slab_of_a_refused_frame_is_free_again(pair):
    one, _, there, _ = pair()
    with pytest.raises(ValueError, match="65537 buffers"):
        one.send(b"", [data(MIB), *[b""] * 65_536])
    one.send(b"", [data(MIB, 3)])
    assert (there.wait(1)[0][1][0] == 3).all()
    assert slabs(one) == 1


def test_slabs_are_given_up_when_the_peer_is_gone(pair):
    one, other, there, here = pair()
    one.send(b"", [data(4 * MIB, 5)])
    _, (array,) = there.wait(1).pop()
    other.close()
    here.wait_lost()
    one.close()
    assert slabs(one) == 0
    assert (array == 5).all()  # what was received stays
    del array


@pytest.fixture
def liar():
    """A pipe with shared memory, and the bare socket of a peer that sends what it likes."""
    before = held()
    bare, sock = socket.socketpair()
    channel = SocketChannel(sock, descriptors=True)
    pipe = StreamPipe(channel, "liar", memory=shm.SharedMemory(channel.descriptors.popleft))
    yield pipe, bare, Inbox(pipe)
    pipe.close()
    bare.close()
    assert held() == before


def announce(size, segment=1, flags=3):
    return frame_bytes(DATA, 0, b"", ENTRY.pack(size, segment, flags), 0)


def memfd(size, seal=True):
    import fcntl

    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    if seal:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return descriptor


@pytest.mark.parametrize(
    ("size", "seal", "message", "reason"),
    [
        (None, True, announce(10), "came without its descriptor"),
        (4096, False, announce(10), "could shrink"),
        (4096, True, announce(4097), "4097 bytes in segment 1"),
        (0, True, announce(1), "cannot be mapped"),
        (None, True, announce(10, flags=1), "10 bytes in segment 1"),
        (None, True, announce(10, flags=8), "flags 8 of a buffer"),
        (None, True, frame_bytes(CONTROL, 0, b"123", b"", 0), "too short"),
        (None, True, frame_bytes(CONTROL, 0, struct.pack("<QII", 0, 3, 0), b"", 0), "wrong length"),
        (None, True, frame_bytes(CONTROL, 0, struct.pack("<QII", 9, 0, 0), b"", 0), "9 of 0 bytes"),
        (
            None,
            True,
            frame_bytes(CONTROL, 0, struct.pack("<QIII", 0, 1, 0, 5), b"", 0),
            "slab 5, which it does not have",
        ),
    ],
)
def test_lies_about_segments_end_the_pipe(liar, size, seal, message, reason):
    _, bare, box = liar
    descriptors = [] if size is None else [memfd(size, seal)]
    socket.send_fds(bare, [message], descriptors)
    assert reason in box.wait_lost()
    for descriptor in descriptors:
        os.close(descriptor)


def test_descriptors_that_nobody_claims_are_closed(liar):
    _, bare, box = liar
    descriptor = memfd(4096)
    for _ in range(5):
        socket.send_fds(bare, [frame_bytes(DATA, 0, b"no segment", b"", 0)], [descriptor])
    os.close(descriptor)
    box.wait(5)


def test_a_slab_cannot_be_returned_twice():
    memory = shm.SharedMemory(lambda: 0)
    (staged,) = memory.stage([data(MIB)])
    memory.returned([staged.slab.number])
    with pytest.raises(PipeBroken, match="twice"):
        memory.returned([staged.slab.number])
    memory.close()


def test_the_receive_pool_reuses_and_forgets():
    pool = ReceivePool(idle_limit=3 * MIB)
    addresses = set()
    for value in range(5):
        target, array = pool.take(MIB - value)
        target[:] = bytes([value]) * len(target)
        assert array.size == MIB - value
        assert (array == value).all()
        addresses.add(array.ctypes.data)
        del target, array
    assert len(addresses) == 1
    assert pool.idle_bytes == MIB
    held_arrays = [pool.take(MIB)[1] for _ in range(5)]
    assert len({array.ctypes.data for array in held_arrays}) == 5
    assert pool.idle_bytes == 0
    held_arrays.clear()
    assert pool.idle_bytes == 3 * MIB
    pool.trim(time.monotonic() + 10)
    assert pool.idle_bytes == 3 * MIB
    pool.trim(time.monotonic() + 60)
    assert pool.idle_bytes == 0


def test_size_classes_waste_at_most_an_eighth():
    for size in (1, 4096, 65_536, 65_537, 100_000, 10**6, 10**8, 2**31 + 1):
        assert size <= size_class(size) <= max(4096, size * 9 // 8)
        assert size_class(size_class(size)) == size_class(size)
