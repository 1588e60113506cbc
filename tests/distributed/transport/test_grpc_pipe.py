"""What only pipes inside gRPC have: the handshake over a call, messages, the server's threads.

Order, back-pressure, closing and dead peers are the conformance suite's.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from server_clusters import eventually

from headrace import errors
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport import grpc_pipe
from headrace.distributed.transport.base import DEFAULT_LIMITS, PeerInfo, PipeBroken
from headrace.distributed.transport.handshake import Refused, hello_of

WAIT = 10.0
CLIENT = PeerInfo("client:1", 7, "127.0.0.1:1")
SERVER = PeerInfo("/job:ps/replica:0/task:0", 9, "127.0.0.1:2")
PING = "/headrace.Test/Ping"


class PingHandler(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method != PING:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


class Server:
    """A gRPC server with one thread, whose pipes arrive in `pipes`."""

    def __init__(self, security=None, greeting_seconds=WAIT, credentials=None):
        self.pipes = queue.Queue()
        self.server = grpc.server(ThreadPoolExecutor(1), options=grpc_pipe.MESSAGE_OPTIONS)
        handler = grpc_pipe.exchange_handler(
            lambda pipe, peer: self.pipes.put((pipe, peer)),
            security or Security(),
            lambda: SERVER,
            greeting_seconds=greeting_seconds,
        )
        self.server.add_generic_rpc_handlers((handler, PingHandler()))
        if credentials is None:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self.server.add_secure_port("127.0.0.1:0", credentials)
        self.server.start()

    def channel(self):
        return grpc.insecure_channel(f"127.0.0.1:{self.port}", options=grpc_pipe.MESSAGE_OPTIONS)

    def connect(self, wanted=None, security=None, channel=None, seconds=WAIT):
        return grpc_pipe.connect(
            channel or self.channel(),
            security or Security(),
            hello_of(CLIENT, wanted),
            time.monotonic() + seconds,
            owns_channel=True,
        )

    def pair(self):
        ours, peer = self.connect()
        theirs, who = self.pipes.get(timeout=WAIT)
        assert (peer, who) == (SERVER, CLIENT)
        return ours, theirs

    def check(self):
        """It still makes pipes that work."""
        ours, theirs = self.pair()
        box = Box(theirs)
        ours.send(b"fine")
        assert box.frame() == (b"fine", [])
        ours.close()
        theirs.close()

    def stop(self):
        self.server.stop(None).wait()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.stop()


class Box:
    """What a pipe delivers."""

    def __init__(self, pipe):
        self.frames = queue.Queue()
        self.lost = queue.Queue()
        pipe.start(lambda head, buffers: self.frames.put((head, buffers)), self.lost.put)

    def frame(self):
        return self.frames.get(timeout=WAIT)

    def reason(self):
        return self.lost.get(timeout=WAIT)


class TestHandshake:
    def test_another_task_is_refused_with_the_reason(self, server):
        with pytest.raises(Refused) as caught:
            server.connect(wanted=PeerInfo("/job:ps/replica:0/task:1"))
        assert caught.value.code == errors.FAILED_PRECONDITION
        assert "/job:ps/replica:0/task:1 was wanted" in caught.value.reason
        server.check()

    @pytest.mark.parametrize("token", [None, b"another token"])
    def test_a_token_that_does_not_fit(self, token):
        server = Server(Security(token=b"the token of the cluster"))
        with pytest.raises(Refused) as caught:
            server.connect(security=Security(token=token))
        assert caught.value.code == errors.UNAUTHENTICATED
        server.stop()
        assert server.pipes.empty()

    def test_a_silent_client_is_cut_off(self, caplog):
        server = Server(greeting_seconds=0.05)
        with server.channel() as channel:
            never = threading.Event()
            call = channel.stream_stream(grpc_pipe.METHOD)(iter(never.wait, None))
            with pytest.raises(grpc.RpcError):
                next(call)
            never.set()
        # The call ends before its thread at the server has said why.
        assert eventually(lambda: "did not finish its greeting in time" in caplog.text)
        server.stop()

    def test_a_silent_server_is_given_up(self, monkeypatch, server):
        monkeypatch.setattr(grpc_pipe._Acceptor, "accept", lambda *arguments: None)
        with pytest.raises(TimeoutError, match="did not finish its greeting in time"):
            server.connect(seconds=0.1)

    def test_a_client_that_says_something_else(self, server):
        with server.channel() as channel:
            call = channel.stream_stream(grpc_pipe.METHOD)(iter([b"GET / HTTP/1.1\r\n\r\n"]))
            assert list(call) == [b""]
        server.check()

    def test_nobody_there(self):
        channel = grpc.insecure_channel("127.0.0.1:1")
        with pytest.raises(ConnectionResetError, match="UNAVAILABLE"):
            grpc_pipe.connect(channel, Security(), hello_of(CLIENT), time.monotonic() + WAIT)
        channel.close()

    def test_a_server_without_the_method(self, server):
        other = grpc.server(ThreadPoolExecutor(1))
        port = other.add_insecure_port("127.0.0.1:0")
        other.start()
        with pytest.raises(ConnectionResetError, match="UNIMPLEMENTED"):
            server.connect(channel=grpc.insecure_channel(f"127.0.0.1:{port}"))
        other.stop(None).wait()


class TestMessages:
    def test_small_frames_share_a_message_and_large_ones_have_several(self):
        outbox = grpc_pipe._Outbox(DEFAULT_LIMITS)
        for size in (10, 20, 30):
            outbox.add([bytes(size)], block=True)
        outbox.add([b"x", np.ones(5 << 20, np.uint8)], block=True)
        sizes = [len(outbox.take()) for _ in range(3)]
        assert sizes == [2 << 20, 2 << 20, (1 << 20) + 61]
        assert outbox.queued > 0, "the third message is not yet known to be written"
        outbox.stop("end of test", goodbye=True)
        assert [outbox.take(), outbox.take(), outbox.queued] == [b"", None, 0]

    @pytest.mark.parametrize("checked", [False, True])
    def test_frames_are_put_together_wherever_they_are_cut(self, checked):
        sent = [
            (b"one", [b"a" * 5, np.arange(2000.0), b""]),
            (b"", []),
            (b"three" * 100, [np.ones(9000, np.uint8)]),
        ]
        outbox = grpc_pipe._Outbox(DEFAULT_LIMITS)
        for head, buffers in sent:
            body, count, large = grpc_pipe.encode_body(head, buffers, DEFAULT_LIMITS, checked)
            prefix = grpc_pipe._prefix(len(head), count, len(body))
            outbox.add([prefix + body, *large], block=True)
        stream = outbox.take()
        for step in (1, 7, 4096, len(stream)):
            assembler = grpc_pipe._Assembler(DEFAULT_LIMITS)
            frames = [
                frame
                for start in range(0, len(stream), step)
                for frame in assembler.feed(stream[start : start + step])
            ]
            assert [head for head, _ in frames] == [head for head, _ in sent]
            for (_, found), (_, expected) in zip(frames, sent, strict=True):
                assert list(map(bytes, found)) == list(map(bytes, expected))

    @pytest.mark.parametrize(
        ("garbage", "reason"),
        [
            (b"x" * 24, "a malformed frame: it begins with"),
            (grpc_pipe._PREFIX.pack(b"HRfr", 1, 0, 9) + b"none", "wrong checksum of its beginning"),
            (grpc_pipe._prefix(1 << 31, 0, 0), "a frame's head has 2147483648"),
            (grpc_pipe._prefix(0, 70_000, 0), "a frame has 70000 buffers"),
            (grpc_pipe._prefix(0, 1, 1 << 40), "bytes for 1 small buffers"),
            (grpc_pipe._prefix(5, 0, 13) + bytes(13), "wrong checksum of its body"),
        ],
    )
    def test_a_malformed_frame_breaks_this_pipe_alone(self, server, garbage, reason):
        ours, theirs = server.pair()
        box = Box(theirs)
        ours._outbox.add_message(garbage)
        assert reason in box.reason()
        with pytest.raises(PipeBroken):
            theirs.send(b"x")
        assert "the gRPC call" in Box(ours).reason()
        ours.close()
        theirs.close()
        server.check()

    def test_a_message_over_the_limit_breaks_the_pipe(self, server):
        ours, theirs = server.pair()
        box = Box(theirs)
        ours._outbox.add_message(bytes((4 << 20) + 1))
        box.reason()
        ours.close()
        theirs.close()


class TestServer:
    def test_pipes_take_no_threads_of_the_server(self, server):
        pipes = [pipe for _ in range(3) for pipe in server.pair()]
        for pipe in pipes:
            Box(pipe)
        with server.channel() as channel:
            assert channel.unary_unary(PING)(b"still there", timeout=WAIT) == b"still there"
        for pipe in pipes:
            pipe.close()

    def test_a_server_that_stops_ends_its_pipes(self, server):
        ours, theirs = server.pair()
        here, there = Box(ours), Box(theirs)
        server.stop()
        assert "the gRPC call failed with" in here.reason()
        assert "the gRPC call" in there.reason()
        ours.close()
        theirs.close()

    def test_a_callee_that_fails_closes_the_pipe(self, server, monkeypatch, caplog):
        def refuse(item):
            raise RuntimeError("no room")

        monkeypatch.setattr(server.pipes, "put", refuse)
        ours, _ = server.connect()
        assert Box(ours).reason() == "the peer closed the pipe"
        ours.close()
        assert "no room" in caplog.text

    def test_what_was_flushed_arrives_although_the_sender_closes(self, server):
        for first, second in (server.pair(), server.pair()[::-1]):
            box = Box(second)
            first.start(lambda *frame: None, lambda reason: None)
            first.send(b"last", [np.ones(6 << 20, np.uint8)])
            assert first.flush(WAIT)
            first.close()
            head, (content,) = box.frame()
            assert (head, content.nbytes) == (b"last", 6 << 20)
            assert box.reason() == "the peer closed the pipe"
            second.close()

    def test_close_leaves_no_threads(self, server):
        server.check()  # gRPC's own threads are there now
        before = threading.active_count()
        for started in (True, False):
            ours, theirs = server.pair()
            if started:
                Box(ours), Box(theirs)
            ours.close()
            theirs.close()
        assert threading.active_count() <= before


class TestTls:
    def test_frames_over_mutual_tls(self, tmp_path):
        security = make_cluster_files(tmp_path, ["127.0.0.1"]).security("127.0.0.1")
        server = Server(security, credentials=security.server_credentials())
        channel = grpc.secure_channel(
            f"127.0.0.1:{server.port}",
            security.channel_credentials(),
            options=grpc_pipe.MESSAGE_OPTIONS,
        )
        ours, _ = server.connect(security=security, channel=channel)
        theirs, _ = server.pipes.get(timeout=WAIT)
        box = Box(theirs)
        ours.send(b"secret", [np.arange(3.0)])
        head, (content,) = box.frame()
        assert (head, bytes(content)) == (b"secret", np.arange(3.0).tobytes())
        with pytest.raises(ConnectionResetError, match="UNAVAILABLE"):
            server.connect(seconds=WAIT)  # without TLS
        ours.close()
        theirs.close()
        server.stop()
