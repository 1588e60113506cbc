"""Calls to the control plane over real sockets: strangers, replays, damage, floods, pieces."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import subprocess
import sys
import threading

import grpc
import numpy as np
import pytest
from server_clusters import OURS, SERVICE, TOKEN, eventually

import headrace as tf
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.security.admission import CALL, SEAL, TICKET
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import control
from headrace.distributed.services.control import Control
from headrace.distributed.transport import grpc_pipe


@pytest.fixture
def server(cluster, monkeypatch):
    """A server of a cluster that has a token."""
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    return cluster(worker=1)["worker", 0]


@pytest.fixture
def control_of():
    """``control_of(server, security)`` calls its control plane."""
    made = []

    def make(server, security=OURS):
        made.append(Control(server.address, security))
        return made[-1]

    yield make
    for one in made:
        one.close()


def peak_bytes():
    """The most memory that this process has had since `forget_peak`."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def refused(one, name, body=b"", metadata=()):
    """The code of the refusal of a bare call."""
    with pytest.raises(grpc.RpcError) as caught:
        one._channel.unary_unary(SERVICE + name)(body, timeout=10, metadata=metadata)
    return caught.value.code()


def sealed(one, name, body=b""):
    """The metadata of an honest call that was never sent."""
    one.call("Endpoint", cpb.EndpointRequest(), 10.0)
    return one._caller.metadata(one._caller.call(SERVICE + name, body))


# -- strangers ----------------------------------------------------------------------------------


def header(name, value):
    """A literal header of HPACK, not indexed."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def http2(kind, flags, stream, payload=b""):
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def pour(port, nbytes):
    """Send a call of ExtendGraph without a token whose body never ends; how much was taken."""
    headers = b"".join(
        header(name, value)
        for name, value in [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", SERVICE.encode() + b"ExtendGraph"),
            (b":authority", b"x"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        ]
    )
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(1)
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2(4, 0, 0) + http2(1, 4, 1, headers))
        message = b"\0" + struct.pack(">I", nbytes)
        with contextlib.suppress(OSError):
            while sent < nbytes:
                piece = message + bytes(16384 - len(message))
                message = b""
                sock.sendall(http2(0, 0, 1, piece))
                sent += len(piece)
    return sent


@pytest.mark.parametrize("token", [True, False])
def test_a_stranger_takes_no_memory(cluster, monkeypatch, token):
    if token:
        monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    server = cluster(worker=1)["worker", 0]
    forget_peak()
    before = peak_bytes()
    for _ in range(4):
        pour(int(server.address.rpartition(":")[2]), 1 << 30)
    assert peak_bytes() - before < 64 << 20


@pytest.mark.slow
def test_a_large_body_without_a_token_is_refused_before_it_is_read(server, control_of):
    forget_peak()
    body = bytes(100 << 20)
    before = peak_bytes()
    for security in (Security(), Security(token=b"another")):
        one = control_of(server, security)
        assert refused(one, "ExtendGraph", body) is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(tf.errors.PermissionDeniedError, match="HEADRACE_CLUSTER_TOKEN"):
            one.call("Status", cpb.StatusRequest(), 10.0)
    # gRPC's own copies of what its client is about to send.
    assert peak_bytes() - before < 450 << 20
    assert server._control._doors._arriving._taken == 0


@pytest.mark.parametrize("metadata", [(), ((TICKET, b""),), ((TICKET, b"x" * 56), (SEAL, b""))])
def test_calls_without_a_ticket_get_nothing_but_one(server, control_of, metadata):
    one = control_of(server)
    for name in ("Status", "Shutdown", "NoSuchCall"):
        assert refused(one, name, b"\xff", metadata) is grpc.StatusCode.UNAUTHENTICATED
    assert one.call("Status", cpb.StatusRequest(), 10.0).tasks


def test_pipes_through_the_control_port_need_a_proof_too(server, control_of):
    one = control_of(server)
    with pytest.raises(grpc.RpcError) as caught:
        list(one._channel.stream_stream(grpc_pipe.METHOD)(iter([b"x" * 100]), timeout=10))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.slow
def test_a_flood_of_strangers_leaves_members_served(server, control_of):
    before = set(threading.enumerate())  # servers of other tests may have left some
    strangers = control_of(server, Security(token=b"another"))
    calls = [
        strangers._channel.stream_unary(SERVICE + "Status").future(endless(), timeout=20)
        for _ in range(200)
    ]
    assert control_of(server).call("Status", cpb.StatusRequest(), 10.0).tasks
    for call in calls:
        assert call.exception().code() is grpc.StatusCode.UNAUTHENTICATED
    threads = [t.name for t in set(threading.enumerate()) - before]
    assert sum(name.startswith("headrace refusal") for name in threads) <= 2


def endless():
    yield b"x"
    threading.Event().wait(5)


# -- replays ------------------------------------------------------------------------------------


def test_an_observed_call_works_once_and_for_nothing_else(server, control_of):
    one = control_of(server)
    metadata = sealed(one, "Status")
    for name in ("Shutdown", "Reset", "ListDevices"):
        assert refused(one, name, b"", metadata) is grpc.StatusCode.PERMISSION_DENIED
    one._channel.unary_unary(SERVICE + "Status")(b"", timeout=10, metadata=metadata)
    for name in ("Status", "Status"):
        assert refused(one, name, b"", metadata) is grpc.StatusCode.UNAUTHENTICATED
    assert not server._stopped.is_set()


def test_an_observed_call_does_not_work_at_another_server(cluster, control_of, monkeypatch):
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    c = cluster(ps=1, worker=1)
    metadata = sealed(control_of(c["worker", 0]), "Shutdown")
    other = control_of(c["ps", 0])
    assert refused(other, "Shutdown", b"", metadata) is grpc.StatusCode.UNAUTHENTICATED
    assert not c["ps", 0]._stopped.is_set()


def test_a_server_that_was_started_again_gives_new_tickets(cluster, control_of, monkeypatch):
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    c = cluster(worker=1)
    one = control_of(c["worker", 0])
    first = one.call("Endpoint", cpb.EndpointRequest(), 10.0).incarnation
    c["worker", 0].stop()
    c.start("worker")

    def asked():
        with contextlib.suppress(tf.errors.UnavailableError):
            return one.call("Endpoint", cpb.EndpointRequest(), 10.0).incarnation
        return first

    assert eventually(lambda: asked() != first)


# -- damage -------------------------------------------------------------------------------------


def test_a_body_that_is_not_the_sealed_one_is_not_parsed(server, control_of, monkeypatch):
    monkeypatch.setattr(control, "_parsed", lambda *_: pytest.fail("parsed"))
    body = cpb.ResetRequest(containers=["a"]).SerializeToString()
    for changed in (
        b"",
        body[:-1],
        body[:-1] + b"b",
        body + b"x",
        bytes(control.MOST_MESSAGE // 2),
    ):
        one = control_of(server)
        one._caller.renew(server._control._doors._gate.ticket())
        metadata = one._caller.metadata(one._caller.call(SERVICE + "Reset", body))
        reply = one._channel.unary_unary(SERVICE + "Reset")(changed, timeout=10, metadata=metadata)
        assert reply[:1] == b"\1"
        assert b"arrived damaged, or not whole" in reply


def test_a_damaged_answer_is_worth_another_try(server, control_of, monkeypatch):
    one = control_of(server)
    send = one._send

    def damaged(*args):
        reply, seal = send(*args)
        return reply[:-1] + bytes([reply[-1] ^ 4]), seal

    monkeypatch.setattr(one, "_send", damaged)
    with pytest.raises(tf.errors.UnavailableError, match=r"answer of .* arrived damaged"):
        one.call("Status", cpb.StatusRequest(), 10.0)


def test_a_body_that_is_no_message_is_a_clear_error_and_no_traceback(server, control_of, caplog):
    one = control_of(server)
    for _ in range(3):
        body = b"\xff\xff\xff"
        metadata = sealed(one, "Status", body)
        reply = one._channel.unary_unary(SERVICE + "Status")(body, timeout=10, metadata=metadata)
        assert b"The body of Status is no message of that kind" in reply
    assert not [record for record in caplog.records if record.exc_info]


def test_strangers_make_one_line_in_the_log(server, control_of, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            one = control_of(server, Security(token=b"another"))
            with pytest.raises(tf.errors.PermissionDeniedError):
                one.call("Shutdown", cpb.ShutdownRequest(), 10.0)
    lines = [r for r in caplog.records if "cluster token" in r.getMessage()]
    assert len(lines) == 1
    assert "A call of /headrace.distributed.Control/Shutdown by ipv4:127.0.0.1" in lines[0].message
    assert TOKEN not in caplog.text
    assert "another" not in caplog.text


# -- large bodies -------------------------------------------------------------------------------


def test_graphs_travel_in_pieces(server, remote, monkeypatch):
    monkeypatch.setattr(control, "_PIECE", 100_000)
    value = np.random.RandomState(0).rand(250_000).astype(np.float32)
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        total = session.run(tf.reduce_max(tf.constant(value)))
    assert total == value.max()


def test_no_message_of_grpc_is_large():
    options = dict(control._SERVER_OPTIONS)
    assert options["grpc.max_receive_message_length"] == control.MOST_MESSAGE
    assert control._PIECE < control.MOST_MESSAGE
    assert dict(grpc_pipe.MESSAGE_OPTIONS)["grpc.max_send_message_length"] <= control.MOST_MESSAGE


def test_bodies_have_a_limit_by_method_and_one_for_all(server, control_of, monkeypatch):
    one = control_of(server)
    request = cpb.ResetRequest(containers=["x" * 1000])
    monkeypatch.setattr(control, "_MOST_OTHER_BODY", 500)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="1003 bytes: there may be 500"):
        one.call("Reset", request, 10.0)
    monkeypatch.setattr(control, "_MOST_OTHER_BODY", 2000)
    arriving = server._control._doors._arriving
    monkeypatch.setattr(arriving, "_limit", 1500)
    with (
        arriving.room_for("Reset", 1000),
        pytest.raises(tf.errors.ResourceExhaustedError, match="try again later"),
    ):
        one.call("Reset", request, 10.0)
    one.call("Reset", request, 10.0)
    assert arriving._taken == 0


def test_a_call_that_waits_for_its_handler_keeps_no_room(server, control_of, monkeypatch):
    """One that is parsed takes no part of what bodies on their way may take."""
    asked, go_on = threading.Event(), threading.Event()
    doors = server._control._doors
    name, handle = doors._handlers[SERVICE + "Reset"]

    def waits(request):
        asked.set()
        assert go_on.wait(30)
        return handle(request)

    monkeypatch.setitem(doors._handlers, SERVICE + "Reset", (name, waits))
    monkeypatch.setattr(doors._arriving, "_limit", 1500)
    request = cpb.ResetRequest(containers=["x" * 1000])
    one = control_of(server)
    call = threading.Thread(target=one.call, args=("Reset", request, 30.0))
    call.start()
    assert asked.wait(30)
    assert doors._arriving._taken == 0
    monkeypatch.setitem(doors._handlers, SERVICE + "Reset", (name, handle))
    one.call("Reset", request, 10.0)
    go_on.set()
    call.join(30)


def test_failures_may_be_longer_than_metadata(server, control_of):
    session = control_of(server)
    name = "n" * 100_000
    number = session.call("CreateSession", cpb.CreateSessionRequest(client="c"), 10.0).session
    with pytest.raises(tf.errors.OpError) as caught:
        session.call("MakePlan", cpb.MakePlanRequest(session=number, fetches=[name + ":0"]), 10.0)
    assert name in caught.value.message
    session.call("CloseSession", cpb.CloseSessionRequest(session=number), 10.0)


def test_an_old_client_is_told_what_it_lacks(server, control_of):
    """Releases before this one sent a nonce of their own."""
    one = control_of(server)
    nonce = os.urandom(16)
    old = (("headrace-nonce-bin", nonce), ("headrace-proof-bin", b"x" * 32), (CALL, b""))
    assert refused(one, "Endpoint", b"", old) is grpc.StatusCode.UNAUTHENTICATED


GARBAGE = """
import logging, socket, sys
from headrace.distributed.security.credentials import Security
from headrace.train import Server

logging.basicConfig(level=logging.INFO, format="%(message)s")
server = Server({"worker": ["127.0.0.1:0"]})
pieces = b"\\0", b"GET / HTTP/1.1\\r\\n\\r\\n", b"\\xff" * 10000, b"\\x16\\x03\\x01" + bytes(99)
for port in (int(server.address.rpartition(":")[2]), server._listener.endpoint.port):
    for piece in pieces * 5:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.settimeout(20)
            try:
                peer.sendall(piece)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass
            except OSError:
                pass
server.stop()
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("tls", [False, True])
def test_garbage_prints_a_line_for_each_kind_at_most(tmp_path, tls):
    """In a process of its own: gRPC writes past Python's logging."""
    environment = dict(os.environ)
    if tls:
        files = make_cluster_files(tmp_path / "certs", ["127.0.0.1"])
        security = files.security("127.0.0.1")
        environment.update(
            HEADRACE_TLS_CA=security.ca_file,
            HEADRACE_TLS_CERT=security.cert_file,
            HEADRACE_TLS_KEY=security.key_file,
            HEADRACE_CLUSTER_TOKEN=TOKEN,
        )
    program = [sys.executable, "-c", GARBAGE]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    _, _, told = done.stderr.partition(" listens at ")
    lines = told.splitlines()[1:-1]
    assert 1 <= len(lines) <= 4, done.stderr
    assert all(line.startswith("Connection from 127.0.0.1:") for line in lines), done.stderr


def test_a_call_that_is_refused_while_the_program_ends_does_not_end_the_thread_that_serves():
    refusals = control._Refusals(1)
    refusals.shutdown()  # as the interpreter does it before servers stop
    assert isinstance(refusals.submit(print).exception(), RuntimeError)
