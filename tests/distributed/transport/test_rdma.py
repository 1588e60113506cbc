"""What only pipes over UCX have: being asked for, addresses, strangers, threads, idleness.

Order, back-pressure, closing and dead peers are the conformance suite's.
"""

from __future__ import annotations

import ctypes
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from headrace import errors
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport import rdma, ucx_ffi
from headrace.distributed.transport.base import Limits, PeerInfo, PipeBroken
from headrace.distributed.transport.checksum import crc32c
from headrace.distributed.transport.connect import ListenConfig, dial, listen
from headrace.distributed.transport.ucx_frames import _descriptor as described
from headrace.distributed.transport.ucx_frames import goodbye

needs_ucx = pytest.mark.skipif(
    not rdma.available(), reason="UCX is not installed (pip install headrace[rdma])"
)
WAIT = 10.0


class Inbox:
    """Keeps what a pipe delivers, with copies of the buffers."""

    def __init__(self):
        self.frames = []
        self.reasons = []
        self._changed = threading.Condition()

    def on_frame(self, head, buffers):
        with self._changed:
            self.frames.append((head, [bytes(buffer) for buffer in buffers]))
            self._changed.notify_all()

    def on_lost(self, reason):
        with self._changed:
            self.reasons.append(reason)
            self._changed.notify_all()

    def wait_frames(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.frames) >= count, WAIT), self.reasons
        return self.frames

    def wait_lost(self):
        with self._changed:
            assert self._changed.wait_for(lambda: self.reasons, WAIT)
        return self.reasons


def offers(limits=None):
    kwargs = {} if limits is None else {"limits": limits}
    return rdma.Offer("lo", **kwargs), rdma.Offer("lo", **kwargs)


@pytest.fixture
def pair():
    one, other = offers()
    pipes = one.connect(other.address), other.connect(one.address)
    yield pipes
    for pipe in pipes:
        pipe.close()


@pytest.fixture
def no_ucx(monkeypatch):
    monkeypatch.setattr(ucx_ffi, "_library", None)
    monkeypatch.setenv("HEADRACE_UCX_LIBRARY", "/nowhere/libucp.so.0")


class TestAskingForIt:
    @pytest.mark.parametrize("environ", [{}, {"HEADRACE_RDMA": ""}, {"HEADRACE_RDMA": "0"}])
    def test_not_wanted_unless_asked_for(self, environ, no_ucx):
        assert not rdma.wanted(encrypted=True, environ=environ)

    def test_other_values_are_refused(self):
        with pytest.raises(errors.InvalidArgumentError) as caught:
            rdma.wanted(encrypted=False, environ={"HEADRACE_RDMA": "yes"})
        assert caught.value.message == 'HEADRACE_RDMA can be "0", "1" or "trusted", got \'yes\''

    def test_not_beside_tls(self):
        with pytest.raises(errors.PermissionDeniedError) as caught:
            rdma.wanted(encrypted=True, environ={"HEADRACE_RDMA": "1"})
        assert caught.value.message == (
            "RDMA was asked for, but this cluster uses TLS and RDMA sends tensors in clear. Set "
            "HEADRACE_RDMA=trusted if nobody else can read the fabric, or HEADRACE_RDMA=0."
        )

    def test_a_missing_library_says_so_only_when_asked_for(self, no_ucx):
        assert not rdma.available()
        with pytest.raises(errors.FailedPreconditionError) as caught:
            rdma.wanted(encrypted=False, environ={"HEADRACE_RDMA": "1"})
        message = caught.value.message
        assert message.startswith(
            "RDMA was asked for, but UCX could not be loaded from "
            "HEADRACE_UCX_LIBRARY=/nowhere/libucp.so.0: "
        )
        assert "pip install headrace[rdma]" in message
        with pytest.raises(errors.FailedPreconditionError):
            rdma.Offer()

    @needs_ucx
    @pytest.mark.parametrize(("encrypted", "value"), [(False, "1"), (True, "trusted")])
    def test_wanted(self, encrypted, value):
        assert rdma.wanted(encrypted, environ={"HEADRACE_RDMA": value})

    def test_on_loopback_no_other_network_is_opened(self):
        assert rdma.devices_of("127.0.0.1") == "lo"
        assert rdma.devices_of("10.0.0.1") == ""

    @needs_ucx
    def test_loading_leaves_the_environment_alone(self, monkeypatch):
        monkeypatch.setattr(ucx_ffi, "_library", None)
        before = dict(os.environ)
        ucx_ffi.library()
        assert dict(os.environ) == before


@needs_ucx
class TestAddresses:
    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda address: b"", "an RDMA address of 0 bytes"),
            (lambda address: address + bytes(1 << 16), "an RDMA address of"),
            (lambda address: b"HTTP" + address[4:], "an RDMA address of version b'HTTP' 1"),
            (lambda address: address[:4] + b"\7\0" + address[6:], "version b'HRrd' 7"),
        ],
    )
    def test_other_addresses_are_refused(self, spoil, reason):
        one, other = offers()
        with pytest.raises(PipeBroken, match=reason):
            one.connect(spoil(other.address))
        other.close()

    def test_no_transport_is_an_error_of_its_own(self, monkeypatch):
        monkeypatch.setattr(ucx_ffi, "_contexts", {})
        monkeypatch.setenv("UCX_TLS", "no_such_transport")
        with pytest.raises(errors.UnavailableError, match="UCX could not start"):
            rdma.Offer("lo")

    def test_an_offer_is_good_for_one_pipe(self, pair):
        one, other = offers()
        one.close()
        with pytest.raises(ValueError, match="connected once"):
            one.connect(other.address)
        other.close()


@needs_ucx
def body_of(*sizes):
    """The body of a frame without a head, that lacks its small buffers."""
    body = bytes(4) + struct.pack(f"<{len(sizes)}Q", *sizes)
    return body + crc32c(body).to_bytes(4, "little")


class TestStrangers:
    def worker_beside(self, offer):
        """A worker that knows the network address of the offer, as anyone on the network may."""
        worker = ucx_ffi.UcxWorker(ucx_ffi.context("lo"))
        worker.connect(offer.address[rdma._ADDRESS.size :], lambda reason: None)
        return worker

    def send(self, worker, message, tag):
        request = worker.send(message, len(message), tag, matched=False)
        while request is not None and worker.status(request) == ucx_ffi.IN_PROGRESS:
            worker.progress()
        if request is not None:
            worker.free(request)

    def test_a_message_without_the_secret_is_not_delivered(self):
        one, other = offers()
        stranger = self.worker_beside(one)
        pipes = one.connect(other.address), other.connect(one.address)
        inbox = Inbox()
        pipes[0].start(inbox.on_frame, inbox.on_lost)
        pipes[1].start(Inbox().on_frame, lambda reason: None)
        self.send(stranger, goodbye(), tag=12345 << 1)
        pipes[1].send(b"from the peer")
        assert inbox.wait_frames(1) == [(b"from the peer", [])]
        assert inbox.reasons == []
        for pipe in pipes:
            pipe.close()
        stranger.disconnect(force=True)
        stranger.destroy()

    @pytest.mark.parametrize(
        ("message", "reason"),
        [
            (b"short", "a descriptor of 5 bytes"),
            (b"\7" + goodbye()[1:], "wrong checksum of its descriptor"),
            (described(7, 0, 0, 0), "a descriptor of kind 7"),
            (described(0, (1 << 32) - 1, 0, 0), "a frame's head has 4294967295 bytes"),
            (described(0, 0, 0, 9), "9 bytes for 0 small buffers"),
            (described(0, 2, 0, 10) + b"x", "1 of 10 bytes of its body"),
            (described(0, 2, 0, 10) + bytes(10), "wrong checksum of its body"),
            (described(0, 0, 1, 16) + body_of(7), "its sizes do not add up"),
            (described(0, 0, 1, 16) + body_of(1 << 50), "a frame has 1125899906842624"),
            (bytes(20_000), "RDMA connection|[Tt]runcated"),
        ],
    )
    def test_a_malformed_frame_breaks_the_pipe_and_nothing_else(self, message, reason):
        one, other = offers()
        stranger = self.worker_beside(one)
        secret = one._secret
        pipe = one.connect(other.address)
        inbox = Inbox()
        pipe.start(inbox.on_frame, inbox.on_lost)
        self.send(stranger, message, tag=secret << 1)
        (found,) = inbox.wait_lost()
        assert re.search(reason, found), found
        with pytest.raises(PipeBroken):
            pipe.send(b"x")
        pipe.close()
        other.close()
        stranger.disconnect(force=True)
        stranger.destroy()


@needs_ucx
class TestThreads:
    def test_what_is_half_sent_goes_on_while_the_reader_is_busy(self, pair):
        """The reader's own large answer leaves although the reader stays in `on_frame`."""
        here, there = pair
        answer = np.arange(3 << 20, dtype=np.uint64)
        flushed = []

        def respond(head, buffers):
            there.send(b"answer", [answer], block=False)
            flushed.append(there.flush(WAIT))

        inbox = Inbox()
        here.start(inbox.on_frame, inbox.on_lost)
        there.start(respond, lambda reason: None)
        here.send(b"question")
        ((head, (content,)),) = inbox.wait_frames(1)
        assert (head, content) == (b"answer", answer.tobytes())
        here.send(b"again")
        inbox.wait_frames(2)
        assert flushed[0] is True

    def test_an_idle_pipe_sleeps(self, pair, monkeypatch):
        inbox = Inbox()
        pair[0].start(inbox.on_frame, inbox.on_lost)
        pair[1].start(inbox.on_frame, inbox.on_lost)
        pair[0].send(b"one")
        pair[1].send(b"two")
        inbox.wait_frames(2)
        passes = []
        real = ucx_ffi.UcxWorker.progress
        monkeypatch.setattr(
            ucx_ffi.UcxWorker, "progress", lambda self: passes.append(1) or real(self)
        )
        threading.Event().wait(0.1)
        assert len(passes) < 100, "a reader that polls makes tens of thousands of passes"

    def test_small_frames_fill_a_queue_too(self):
        """UCX calls them sent at once; the pipe must not."""
        limits = Limits(high_water=8 << 10)
        one, other = offers(limits)
        here, there = one.connect(other.address), other.connect(one.address)
        entered, go_on = threading.Event(), threading.Event()
        received = []

        def slow(head, buffers):
            entered.set()
            go_on.wait(WAIT)
            received.append(head)

        here.start(lambda *frame: None, lambda reason: None)
        there.start(slow, lambda reason: None)
        sent = []

        def push():
            for number in range(2000):
                here.send(b"%d" % number)
                sent.append(number)

        pusher = threading.Thread(target=push)
        pusher.start()
        assert entered.wait(WAIT)
        pusher.join(0.1)
        assert pusher.is_alive(), "the sender waits for the receiver"
        assert len(sent) < 400
        go_on.set()
        pusher.join(WAIT)
        assert here.flush(WAIT)
        here.close()
        there.close()
        assert received == [b"%d" % number for number in range(len(received))]
        assert len(received) > 400

    def test_a_goodbye_counts_although_the_connection_broke_before_it_was_read(self, pair):
        ours, theirs = pair
        inbox, away, back = Inbox(), threading.Event(), threading.Event()

        def on_frame(head, buffers):
            inbox.on_frame(head, buffers)
            away.set()
            assert back.wait(WAIT)

        ours.start(lambda *frame: None, lambda reason: None)
        theirs.start(on_frame, inbox.on_lost)
        ours.send(b"first", [])
        assert away.wait(WAIT)
        ours.send(b"second", [])
        assert ours.flush(WAIT)
        ours.close()  # says goodbye, and does not wait for a reader that is away
        back.set()
        assert [head for head, _ in inbox.wait_frames(2)] == [b"first", b"second"]
        assert inbox.wait_lost() == ["the peer closed the pipe"]

    def test_close_before_start_frees_threads_and_descriptors(self):
        rdma.Offer("lo").close()  # the process's context is made
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        one, other = offers()
        pipes = one.connect(other.address), other.connect(one.address)
        for pipe in pipes:
            pipe.close()
            pipe.close()
        assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


PS = PeerInfo("/job:ps/replica:0/task:0", 7)
WORKER = PeerInfo("/job:worker/replica:0/task:1", 8, "worker:1")


@needs_ucx
class TestDialling:
    """RDMA as a choice of `dial`: over TCP or TLS the addresses, over UCX the frames."""

    def meet(self, security, offered, wanted):
        pipes = queue.Queue()
        config = ListenConfig(rdma=offered)
        listener = listen(config, security, PS, lambda *made: pipes.put(made))
        try:
            ours, peer = dial(
                listener.endpoint,
                security,
                WORKER,
                allow_inproc=False,
                allow_unix=False,
                use_rdma=wanted,
            )
            assert peer.task == PS.task
            theirs, who = pipes.get(timeout=WAIT)
            assert who == WORKER
        finally:
            listener.close()
        return ours, theirs

    def check(self, ours, theirs, kind):
        assert (ours.kind, theirs.kind) == (kind, kind)
        inbox = Inbox()
        ours.start(lambda *frame: None, lambda reason: None)
        theirs.start(inbox.on_frame, inbox.on_lost)
        ours.send(b"values", [np.arange(5000.0)])
        assert inbox.wait_frames(1) == [(b"values", [np.arange(5000.0).tobytes()])]
        ours.close()
        (reason,) = inbox.wait_lost()
        assert reason.startswith("the peer closed the ")
        theirs.close()

    @pytest.mark.parametrize(
        ("offered", "wanted", "kind"),
        [
            (True, True, "rdma"),
            (True, False, "stream"),
            (False, True, "stream"),
            (None, None, "stream"),
        ],
    )
    def test_both_sides_must_want_it(self, offered, wanted, kind, monkeypatch):
        monkeypatch.delenv("HEADRACE_RDMA", raising=False)
        self.check(*self.meet(Security(), offered, wanted), kind)

    def test_the_environment_asks_for_it(self, monkeypatch):
        monkeypatch.setenv("HEADRACE_RDMA", "1")
        self.check(*self.meet(Security(), None, None), "rdma")

    def test_beside_tls_where_the_fabric_is_trusted(self, monkeypatch, tmp_path):
        security = make_cluster_files(tmp_path, ["127.0.0.1"]).security("127.0.0.1")
        monkeypatch.setenv("HEADRACE_RDMA", "trusted")
        self.check(*self.meet(security, None, None), "rdma")

    def test_a_peer_that_cannot_start_ucx(self, monkeypatch):
        real = rdma.upgrade
        turn = iter([True, False])

        def upgrade(carrier, *arguments):
            if next(turn):
                carrier.close()
                raise errors.UnavailableError(None, None, "no device")
            return real(carrier, *arguments)

        monkeypatch.setattr(rdma, "upgrade", upgrade)
        with pytest.raises(errors.UnavailableError, match="RDMA: "):
            self.meet(Security(), True, True)


_CHILD = """
import socket, sys, threading
from headrace.distributed.transport import rdma
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
offer = rdma.Offer("lo")
sock.sendall(offer.address)
pipe = offer.connect(sock.recv(1 << 16))
pipe.start(lambda head, buffers: threading.Event().wait(), lambda reason: None)
pipe.send(b"here I am")
threading.Event().wait()
"""


@needs_ucx
@pytest.mark.process
def test_a_killed_peer_is_noticed_at_once():
    """Also in the middle of a large transfer, which the peer was not reading."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        child = subprocess.Popen([sys.executable, "-c", _CHILD, port])
        sock, _ = server.accept()
    offer = rdma.Offer("lo")
    sock.sendall(offer.address)
    pipe = offer.connect(sock.recv(1 << 16))
    sock.close()
    inbox = Inbox()
    pipe.start(inbox.on_frame, inbox.on_lost)
    inbox.wait_frames(1)
    pipe.send(b"blocks its reader")
    pipe.send(b"large", [np.ones(80 << 20, np.uint8)])
    child.send_signal(signal.SIGKILL)
    child.wait()
    killed = time.monotonic()
    (reason,) = inbox.wait_lost()
    assert time.monotonic() - killed < 3
    assert reason.startswith("the RDMA connection failed: ")
    with pytest.raises(PipeBroken):
        pipe.flush()
    pipe.close()


class _ContextAttributes(ctypes.Structure):
    _fields_ = [
        ("field_mask", ctypes.c_uint64),
        ("request_size", ctypes.c_size_t),
        ("thread_mode", ctypes.c_int),
        ("unset", ctypes.c_char * 256),
    ]


@needs_ucx
def test_pipes_of_several_threads_may_share_what_ucx_keeps():
    """Each pipe has a thread of its own in UCX: without its locks a process ended now and then."""
    context = ucx_ffi.context()
    found = _ContextAttributes(field_mask=1 << 1)
    query = context.library.calls.ucp_context_query
    query.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    assert query(context.handle, ctypes.byref(found)) == ucx_ffi.OK
    assert found.thread_mode == 2  # UCS_THREAD_MODE_MULTI
