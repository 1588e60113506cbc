"""How fast frames cross between two processes of this host, by each kind of pipe.

    python benchmarks/transport.py [--repeat 30]

Ping-pong: a 200-byte frame there and back, thread wake-ups included; with four scalars as buffers,
too. 100 MB: one float32 tensor there (and a small answer), or there and back. "first" is the first
transfer of all, into fresh memory. Links with their sequence numbers, as servers use them. TCP
with checksums is what goes between hosts without TLS.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import socket
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport.base import PeerInfo
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.link import Link
from headrace.distributed.transport.sockets import tune

WAYS = {
    "shared memory": {},
    "unix socket": {"allow_shared_memory": False},
    "TCP": {"allow_unix": False, "checksums": False},
    "TCP, CRC32C": {"allow_unix": False, "checksums": True},
    "TLS": {"allow_unix": False},
}
ECHO = b"echo"


def serve(pipe_end, security):
    links = []

    def answer(link, head, buffers):
        link.send(head, buffers if head.startswith(ECHO) else (), block=False)

    def on_pipe(pipe, peer):
        links.append(Link(pipe, peer, answer, lambda link, reason: None))

    listener = listen(ListenConfig(checksums=False), security, PeerInfo("server", 1), on_pipe)
    raw = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=drain, args=(raw,), daemon=True).start()
    pipe_end.send((listener.endpoint, raw.getsockname()))
    pipe_end.recv()
    listener.close()


def drain(server):
    """The bare sockets to compare with: reads 100 MB into the same memory, answers a byte."""
    sock, _ = server.accept()
    tune(sock)
    memory = memoryview(bytearray(100_000_000))
    while True:
        got = 0
        while got < len(memory):
            count = sock.recv_into(memory[got:])
            if not count:
                return
            got += count
        sock.send(b"x")


def times(repeat, work):
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def measure_link(endpoint, security, way, repeat):
    pipe, peer = dial(endpoint, security, PeerInfo("client", 2), **way)
    answers = queue.SimpleQueue()
    link = Link(pipe, peer, lambda _, head, buffers: answers.put(buffers), print)
    data = np.arange(25_000_000, dtype=np.float32)
    scalars = [np.float32(number).reshape(()) for number in range(4)]

    def call(head, buffers=()):
        link.send(head, buffers)
        answers.get(timeout=60)

    small = times(100 * repeat, lambda: call(b"x" * 200))
    four = times(30 * repeat, lambda: call(ECHO * 50, scalars))
    there = times(repeat, lambda: call(b"x", [data]))
    both = times(repeat, lambda: call(ECHO, [data]))
    link.close()
    return [
        f"{np.median(small) * 1e6:8.0f}",
        f"{np.quantile(small, 0.99) * 1e6:8.0f}",
        f"{np.median(four) * 1e6:8.0f}",
        *(f"{value * 1e3:8.1f}" for value in (there[0], np.median(there), min(there))),
        *(f"{value * 1e3:8.1f}" for value in (np.median(both), min(both))),
    ]


def measure_bare(address, repeat):
    sock = socket.create_connection(address)
    tune(sock)
    data = memoryview(np.zeros(100_000_000, np.uint8))

    def call():
        sock.sendall(data)
        sock.recv(1)

    there = times(repeat, call)
    sock.close()
    return [f"{value * 1e3:8.1f}" for value in (there[0], np.median(there), min(there))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=30)
    repeat = parser.parse_args().repeat
    names = ("200 B us", "p99", "4 scal.", "first ms", "100 MB", "best", "and back", "best")
    print(f"{'':14}", *(f"{name:>8}" for name in names))
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        secured = make_cluster_files(Path(folder), ["127.0.0.1"]).security("127.0.0.1")
        for name, way in WAYS.items():
            security = secured if name == "TLS" else Security()
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, security))
            process.start()
            endpoint, bare = ours.recv()
            print(f"{name:14}", *measure_link(endpoint, security, way, repeat), flush=True)
            if name == "TCP":
                print(f"{'bare TCP':14}", *[" " * 8] * 3, *measure_bare(bare, repeat), flush=True)
            ours.send("stop")
            process.join()


if __name__ == "__main__":
    main()
