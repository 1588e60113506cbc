"""Pairs of connected pipes of every kind, and an inbox, for the tests of this folder."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.distributed.security.credentials import Security
from headrace.distributed.transport import rdma, shm
from headrace.distributed.transport.base import DEFAULT_LIMITS, PeerInfo
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.inproc import inproc_pair
from headrace.distributed.transport.sockets import SocketChannel, tune
from headrace.distributed.transport.stream import StreamPipe

WAIT = 20.0
PS = PeerInfo("/job:ps/replica:0/task:0", 7)
WORKER = PeerInfo("/job:worker/replica:0/task:1", 8)


class Inbox:
    """Starts a pipe and keeps what it delivers."""

    def __init__(self, pipe=None, keep=True):
        self.frames = []
        self.lost = []
        self.gate = threading.Event()
        self.gate.set()
        self.count = 0
        self._keep = keep
        self._changed = threading.Condition()
        if pipe is not None:
            pipe.start(self.on_frame, self.on_lost)

    def on_frame(self, head, buffers):
        assert self.gate.wait(WAIT)
        with self._changed:
            self.count += 1
            if self._keep:
                self.frames.append((head, buffers))
            self._changed.notify_all()

    def on_lost(self, reason):
        with self._changed:
            self.lost.append(reason)
            self._changed.notify_all()

    def wait(self, count):
        with self._changed:
            done = self._changed.wait_for(lambda: self.count >= count or self.lost, WAIT)
            assert done, f"{self.count} frames of {count}"
            assert self.count >= count, f"lost after {self.count} frames of {count}: {self.lost}"
        return self.frames

    def wait_lost(self):
        with self._changed:
            assert self._changed.wait_for(lambda: self.lost, WAIT), "nothing was lost"
        return self.lost[0]


@contextlib.contextmanager
def _inproc(limits):
    yield inproc_pair("test", limits)


def socket_pipes(limits=DEFAULT_LIMITS, shared=False, **memory):
    """Two pipes over a pair of unix sockets, which serve both ways."""
    pipes = []
    for sock in socket.socketpair():
        tune(sock)
        channel = SocketChannel(sock, descriptors=shared)
        slabs = shm.SharedMemory(channel.descriptors.popleft, **memory) if shared else None
        pipes.append(StreamPipe(channel, "test", limits, slabs))
    return pipes


@contextlib.contextmanager
def _dialled(limits, security, **ways):
    pipes = queue.Queue()
    config = ListenConfig(limits=limits)
    listener = listen(config, security, PS, lambda pipe, peer: pipes.put(pipe))
    try:
        pipe, _ = dial(
            listener.endpoint, security, WORKER, PS, allow_inproc=False, limits=limits, **ways
        )
        yield pipe, pipes.get(timeout=WAIT)
    finally:
        listener.close()


@contextlib.contextmanager
def _unix(limits):
    with _dialled(limits, Security(), allow_shared_memory=False) as pair:
        yield pair


@contextlib.contextmanager
def _shm(limits):
    with _dialled(limits, Security()) as pair:
        yield pair


@contextlib.contextmanager
def _tcp(limits):
    with _dialled(limits, Security(), allow_unix=False) as pair:
        yield pair


_certified = []


def certified(folder: Path) -> Security:
    """TLS and a token, made once for all tests."""
    if not _certified:
        from headrace.distributed.security.certs import make_cluster_files

        _certified.append(make_cluster_files(folder, ["127.0.0.1"]).security("127.0.0.1"))
    return _certified[0]


@contextlib.contextmanager
def _tls(limits):
    with _dialled(limits, _certified[0], allow_unix=False) as pair:
        yield pair


@contextlib.contextmanager
def _grpc(limits):
    import grpc

    from headrace.distributed.transport import grpc_pipe
    from headrace.distributed.transport.handshake import hello_of

    pipes = queue.Queue()
    executor = ThreadPoolExecutor(1)
    server = grpc.server(executor, options=grpc_pipe.MESSAGE_OPTIONS)
    handler = grpc_pipe.exchange_handler(
        lambda pipe, peer: pipes.put(pipe), Security(), lambda: PS, limits=limits
    )
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=grpc_pipe.MESSAGE_OPTIONS)
    try:
        pipe, _ = grpc_pipe.connect(
            channel,
            Security(),
            hello_of(WORKER, PS),
            time.monotonic() + WAIT,
            limits=limits,
            owns_channel=True,
        )
        yield pipe, pipes.get(timeout=WAIT)
    finally:
        channel.close()
        server.stop(None).wait()
        executor.shutdown()


@contextlib.contextmanager
def _rdma(limits):
    if not rdma.available():
        pytest.skip("UCX is not installed (pip install headrace[rdma])")
    one, other = rdma.Offer("lo", limits=limits), rdma.Offer("lo", limits=limits)
    yield one.connect(other.address), other.connect(one.address)


# name: context manager that takes Limits and gives two connected pipes, not yet started.
FACTORIES = {
    "inproc": _inproc,
    "unix": _unix,
    "shm": _shm,
    "tcp": _tcp,
    "tls": _tls,
    "grpc": _grpc,
    "rdma": _rdma,
}


def held():
    """What a process must not leak: our threads, open files, mapped slabs."""
    gc.collect()
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith("headrace-"))
    files = len(os.listdir("/proc/self/fd"))
    with open("/proc/self/maps") as maps:
        slabs = sum("memfd:headrace" in line for line in maps)
    return threads, files, slabs, shm.shared_budget.used
