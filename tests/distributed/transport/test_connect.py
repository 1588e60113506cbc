"""Finding and refusing each other: listen, dial and what they say."""

from __future__ import annotations

import queue

import numpy as np
import pytest

from headrace import errors
from headrace.distributed.security import Security
from headrace.distributed.transport.base import PeerInfo
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.link import Link

PS = PeerInfo("/job:ps/replica:0/task:0", 7)
WORKER = PeerInfo("/job:worker/replica:0/task:1", 8, "worker:1")
OPEN = Security()

WAYS = {
    "inproc": {},
    "shm": {"allow_inproc": False},
    "unix": {"allow_inproc": False, "allow_shared_memory": False},
    "tcp": {"allow_inproc": False, "allow_unix": False},
}
KINDS = {"inproc": "inproc", "shm": "shm", "unix": "stream", "tcp": "stream"}


@pytest.fixture
def server():
    """`server(security, config)` listens and gives the listener and the queue of its pipes."""
    made = []

    def make(security=OPEN, config=None):
        pipes = queue.Queue()
        listener = listen(
            config or ListenConfig(), security, PS, lambda pipe, peer: pipes.put((pipe, peer))
        )
        made.append((listener, pipes))
        return listener, pipes

    yield make
    for listener, pipes in made:
        listener.close()
        while not pipes.empty():
            pipes.get()[0].close()


@pytest.mark.parametrize("way", WAYS)
def test_frames_cross_links_both_ways(server, way):
    listener, pipes = server()
    pipe, peer = dial(listener.endpoint, OPEN, WORKER, PeerInfo(PS.task), **WAYS[way])
    assert pipe.kind == KINDS[way]
    assert peer == PeerInfo(PS.task, 7, f"127.0.0.1:{listener.endpoint.port}")
    theirs, seen = pipes.get(timeout=5)
    assert seen == WORKER
    answers = queue.Queue()
    lost = queue.Queue()

    def echo(link, head, buffers):
        link.send(head.upper(), buffers, block=False)

    there = Link(theirs, seen, echo, lambda link, reason: lost.put(reason))
    here = Link(
        pipe, peer, lambda link, head, buffers: answers.put((head, buffers)), lambda *_: None
    )
    values = np.arange(300_000, dtype=np.float32)
    for count in range(5):
        here.send(b"step %d" % count, [values, b"abc", values[:0]])
        head, buffers = answers.get(timeout=5)
        assert head == b"STEP %d" % count
        np.testing.assert_array_equal(buffers[0].view(np.float32), values)
        assert bytes(buffers[1]) == b"abc"
        assert buffers[2].size == 0
    assert here.stats.frames_in == here.stats.frames_out == 5
    here.close()
    assert "closed" in lost.get(timeout=5)
    there.close()


def test_another_task_is_refused(server):
    listener, _ = server()
    for way in WAYS.values():
        with pytest.raises(
            errors.FailedPreconditionError, match="ps/replica:0/task:5 was wanted, but /job:ps"
        ):
            dial(listener.endpoint, OPEN, WORKER, PeerInfo("/job:ps/replica:0/task:5"), **way)
