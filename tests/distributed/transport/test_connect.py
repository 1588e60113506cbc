"""Finding and refusing each other: listen, dial and what they say."""

from __future__ import annotations

import contextlib
import queue
import random
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pytest
from transport_pipes import PS, WAIT, Inbox, certified, held

from headrace import errors
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport import connect
from headrace.distributed.transport.base import Endpoint, PeerInfo, PipeBroken
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.handshake import VERSION, greet, hello_of
from headrace.distributed.transport.link import Link

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
    theirs, seen = pipes.get(timeout=WAIT)
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
        head, buffers = answers.get(timeout=WAIT)
        assert head == b"STEP %d" % count
        np.testing.assert_array_equal(buffers[0].view(np.float32), values)
        assert bytes(buffers[1]) == b"abc"
        assert buffers[2].size == 0
    assert here.stats.frames_in == here.stats.frames_out == 5
    here.close()
    assert "closed" in lost.get(timeout=WAIT)
    there.close()


def test_another_task_is_refused(server):
    listener, _ = server()
    for way in WAYS.values():
        with pytest.raises(
            errors.FailedPreconditionError, match="ps/replica:0/task:5 was wanted, but /job:ps"
        ):
            dial(listener.endpoint, OPEN, WORKER, PeerInfo("/job:ps/replica:0/task:5"), **way)


@pytest.mark.parametrize("way", WAYS)
def test_a_restarted_task_is_recognised(server, way):
    listener, _ = server()
    with pytest.raises(errors.AbortedError, match=r"task:0 was restarted: incarnation 0+3 was"):
        dial(listener.endpoint, OPEN, WORKER, PeerInfo(PS.task, 3), **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("ours", "theirs", "reason"),
    [
        (b"one", b"two", "different cluster tokens"),
        (b"one", None, "token"),
        (None, b"two", "token"),
    ],
)
def test_another_token_is_refused(server, way, ours, theirs, reason, caplog):
    listener, pipes = server(Security(token=theirs))
    with pytest.raises(errors.UnauthenticatedError, match=reason):
        dial(listener.endpoint, Security(token=ours), WORKER, PS, **WAYS[way])
    pipe, _ = dial(listener.endpoint, Security(token=theirs), WORKER, PS, **WAYS[way])
    pipes.get(timeout=WAIT)[0].close()
    pipe.close()


def test_nobody_there():
    with pytest.raises(errors.UnavailableError, match=r"/job:ps/replica:0/task:0 at 127.0.0.1:1: "):
        dial(Endpoint("127.0.0.1", 1), OPEN, WORKER, PS)


def test_somebody_who_does_not_answer():
    mute = socket.create_server(("127.0.0.1", 0))
    endpoint = Endpoint(*mute.getsockname())
    with pytest.raises(errors.UnavailableError, match=r"did not finish its greeting|timed out"):
        dial(endpoint, OPEN, WORKER, PS, timeout=0.05)
    mute.close()


GREETING = struct.pack(">8sHI", b"HEADRACE", VERSION, 3)


def reply(answer):
    """Dials a server that answers with these bytes."""
    other = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                sock, _ = other.accept()
                sock.recv(1000)
                sock.sendall(answer)
                with contextlib.suppress(ConnectionResetError):
                    sock.recv(1000)
                sock.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        dial(Endpoint(*other.getsockname()), OPEN, WORKER, PS, timeout=WAIT)
    finally:
        other.shutdown(socket.SHUT_RDWR)
        thread.join()
        other.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "speaks something else .it began with b'SSH-2.0-'"),
        (b"HEADRaCE" + bytes(8), "speaks something else .it began with b'HEADRaCE'"),
        (b"\x16\x03\x01" + bytes(20), "speaks TLS"),
        (struct.pack(">8sHI", b"HEADRACE", 9, 0), "speaks version 9 of the transport protocol"),
        (struct.pack(">8sHI", b"HEADRACE", VERSION, 1 << 20), "a greeting of 1048576 bytes"),
        (struct.pack(">8sHI", b"HEADRACE", 1, 0), "speaks version 1 of the transport protocol"),
        (struct.pack(">8sHI", b"HEADRACE", 2, 0), "speaks version 2 of the transport protocol"),
        (
            GREETING + struct.pack(">II", *map(zlib.crc32, (GREETING, b"\xff" * 3))) + b"\xff" * 3,
            "cannot be read",
        ),
    ],
)
def test_a_listener_that_is_none_of_ours(answer, reason):
    with pytest.raises(errors.FailedPreconditionError, match=reason):
        reply(answer)


def test_a_damaged_greeting_is_worth_another_try():
    message = b"\xff\xff\xff"
    preamble = struct.pack(">8sHI", b"HEADRACE", VERSION, 3)
    right, wrong = zlib.crc32(preamble), zlib.crc32(message) ^ 1
    for greeting in (
        preamble + struct.pack(">II", right, wrong) + message,
        preamble + struct.pack(">II", right ^ 1, wrong ^ 1),
    ):
        with pytest.raises(errors.UnavailableError, match="the greeting was damaged on the way"):
            reply(greeting)


def test_garbage_closes_that_connection_only(server, caplog):
    config = ListenConfig(greeting_seconds=0.2)
    listener, pipes = server(OPEN, config)
    rng = random.Random(5)
    pieces = [rng.randbytes(rng.randrange(1, 200)) for _ in range(20)]
    pieces += [b"HEADRACE" + rng.randbytes(50) for _ in range(10)]
    pieces += [
        struct.pack(">8sHI", b"HEADRACE", VERSION, 40) + rng.randbytes(44) for _ in range(10)
    ]
    pieces += [b"GET / HTTP/1.1\r\n\r\n", b""]
    for piece in pieces:
        with socket.create_connection(("127.0.0.1", listener.endpoint.port)) as sock:
            sock.settimeout(WAIT)
            with contextlib.suppress(OSError):  # it may be cut off in the middle
                sock.sendall(piece)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1000):
                    pass
    with socket.create_connection(("127.0.0.1", listener.endpoint.port)) as sock:
        sock.settimeout(WAIT)
        assert sock.recv(100) == b""  # says nothing, so it is cut off
    assert pipes.empty()
    pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, allow_unix=False, allow_inproc=False)
    pipe.close()
    pipes.get(timeout=WAIT)[0].close()
    listener.close()  # waits for its threads, which write the lines
    lines = [record.getMessage() for record in caplog.records]
    assert all(line.startswith("Connection from 127.0.0.1:") for line in lines)
    assert 1 <= len(lines) <= 4 < len(pieces)  # what is alike is said once
    assert all(record.exc_info is None for record in caplog.records)


def test_those_who_say_nothing_do_not_keep_others_out(server, monkeypatch):
    monkeypatch.setattr(connect, "_MOST_GREETINGS", 8)
    listener, pipes = server(OPEN, ListenConfig(greeting_seconds=WAIT))
    silent = [socket.create_connection(("127.0.0.1", listener.endpoint.port)) for _ in range(50)]
    pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, allow_unix=False, allow_inproc=False)
    pipe.close()
    pipes.get(timeout=WAIT)[0].close()
    assert len(listener._greeting) <= 16
    for sock in silent:
        sock.close()


def test_tls_needs_a_certificate_of_the_cluster(server, tmp_path, caplog):
    security = certified(tmp_path)
    listener, pipes = server(security)
    tcp = {"allow_unix": False, "allow_inproc": False}
    with pytest.raises((errors.UnavailableError, errors.FailedPreconditionError)):
        dial(listener.endpoint, Security(token=security.token), WORKER, PS, **tcp)
    stranger = make_cluster_files(tmp_path / "other", ["127.0.0.1"]).security("127.0.0.1")
    with pytest.raises(errors.UnauthenticatedError, match=r"The certificate of .* not accepted: "):
        dial(listener.endpoint, stranger, WORKER, PS, **tcp)
    open_listener, _ = server(OPEN)
    with pytest.raises((errors.UnauthenticatedError, errors.UnavailableError)):
        dial(open_listener.endpoint, security, WORKER, PS, **tcp)
    pipe, peer = dial(listener.endpoint, security, WORKER, PS, **tcp)
    assert peer.task == PS.task
    pipe.close()
    pipes.get(timeout=WAIT)[0].close()


def test_a_tls_half_without_the_other_is_dropped(server, tmp_path, monkeypatch):
    security = certified(tmp_path)
    listener, pipes = server(security, ListenConfig(greeting_seconds=0.1))
    context = security.client_context()
    raw = socket.create_connection(("127.0.0.1", listener.endpoint.port))
    sock = context.wrap_socket(raw, server_hostname="127.0.0.1")
    greet(sock, security, hello_of(WORKER, PS), time.monotonic() + WAIT)
    sock.settimeout(WAIT)
    assert sock.recv(10) == b""
    sock.close()
    assert pipes.empty()


def test_programs_that_are_started_do_not_keep_a_link_open(server):
    listener, pipes = server()
    pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, allow_inproc=False)
    for one in (pipe, pipes.get(timeout=WAIT)[0]):
        sockets = one._channel._both
        assert len(sockets) == 2
        assert not any(sock.get_inheritable() for sock in sockets)
        one.close()


@pytest.mark.parametrize("said", [None, b"", b"2", b"x"])
def test_a_unix_connection_whose_other_way_does_not_come_is_dropped(server, said, caplog):
    listener, pipes = server(OPEN, ListenConfig(greeting_seconds=0.1 if said is None else WAIT))
    before = held()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("\0" + listener.endpoint.unix_name)
        greet(sock, OPEN, hello_of(WORKER, PS), time.monotonic() + WAIT)
        sock.settimeout(WAIT)
        if said is not None:
            if said == b"x":
                socket.send_fds(sock, [said], [sock.fileno()])
            else:
                sock.sendall(said)
            sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
    listener.close()  # waits for its threads, which write the line
    assert pipes.empty()
    assert held()[1] <= before[1]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "gave up: timed out" in line or "gave no second connection" in line


def test_open_networks_need_tls_and_a_token():
    with pytest.raises(errors.PermissionDeniedError, match="not loopback"):
        listen(ListenConfig(host="0.0.0.0"), OPEN, PS, lambda pipe, peer: None)
    with pytest.raises(errors.PermissionDeniedError, match="not loopback"):
        dial(Endpoint("192.0.2.1", 80), OPEN, WORKER, PS)


def test_a_port_in_use_is_an_error(server):
    listener, _ = server()
    with pytest.raises(OSError, match="in use"):
        listen(ListenConfig(port=listener.endpoint.port), OPEN, PS, lambda pipe, peer: None)


def test_a_closed_listener_leaves_nothing_and_its_pipes_live_on():
    before = held()
    pipes = queue.Queue()
    listener = listen(ListenConfig(), OPEN, PS, lambda pipe, peer: pipes.put(pipe))
    mute = socket.create_connection(("127.0.0.1", listener.endpoint.port))
    pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, allow_inproc=False)
    other = pipes.get(timeout=WAIT)
    listener.close()
    listener.close()
    with pytest.raises(errors.UnavailableError):
        dial(listener.endpoint, OPEN, WORKER, PS)
    box = Inbox(other)
    pipe.send(b"still here")
    box.wait(1)
    mute.close()
    pipe.close()
    other.close()
    assert held() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_pipe_lives_on_though_its_taker_closes_the_listener(way):
    def on_pipe(pipe, peer):
        listener.close()
        pipes.put(pipe)

    pipes = queue.Queue()
    listener = listen(ListenConfig(), OPEN, PS, on_pipe)
    pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, **WAYS[way])
    other = pipes.get(timeout=WAIT)
    box = Inbox(other)
    pipe.send(b"still here")
    box.wait(1)
    pipe.close()
    other.close()


def test_a_taker_that_fails_closes_the_pipe(caplog):
    def on_pipe(pipe, peer):
        raise LookupError("no room")

    listener = listen(ListenConfig(), OPEN, PS, on_pipe)
    for way in WAYS.values():
        pipe, _ = dial(listener.endpoint, OPEN, WORKER, PS, **way)
        assert Inbox(pipe).wait_lost()
        pipe.close()
    listener.close()


CHILD = """
import sys, threading
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport.base import PeerInfo
from headrace.distributed.transport.connect import ListenConfig, listen
kept = []
def on_pipe(pipe, peer):
    kept.append(pipe)
    pipe.start(lambda head, buffers: pipe.send(head, buffers, block=False), lambda reason: None)
place = listen(ListenConfig(), Security(), PeerInfo("child", 1), on_pipe).endpoint
print(place.port, place.unix_name, place.host_id, flush=True)
threading.Event().wait()
"""


@pytest.mark.process
def test_a_killed_peer_is_noticed_and_leaves_nothing():
    before = held()
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    port, *names = child.stdout.readline().split()
    endpoint = Endpoint("127.0.0.1", int(port), *names)
    boxes = []
    data = np.arange(1_000_000, dtype=np.uint32)
    for way in ("shm", "unix", "tcp"):
        pipe, _ = dial(endpoint, OPEN, WORKER, PeerInfo("child", 1), **WAYS[way])
        assert pipe.kind == KINDS[way]
        box = Inbox(pipe)
        pipe.send(b"echo", [data])
        boxes.append((pipe, box, box.wait(1)[0][1][0]))
    child.kill()
    for pipe, box, array in boxes:
        assert box.wait_lost()
        with pytest.raises(PipeBroken):
            pipe.send(b"anyone?")
        pipe.close()
        assert np.array_equal(array.view(np.uint32), data)
    child.wait()
    child.stdout.close()
    boxes.clear()
    del pipe, box, array
    assert held() == before
    with pytest.raises(errors.UnavailableError):
        dial(endpoint, OPEN, WORKER)
