"""What must not take a server down: peers that speak something else, and clients that err."""

import contextlib
import logging
import socket
import threading

import grpc
import numpy as np
import pytest
from server_clusters import eventually

import headrace as tf
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import admin, control
from headrace.distributed.services.control import Control
from headrace.distributed.wire.messages import pack
from headrace.settings import flags
from headrace.test.cluster import free_ports

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def lives(c):
    """Whether a step over all of a cluster still runs."""
    with tf.Graph().as_default(), contextlib.suppress(tf.errors.UnavailableError):
        with tf.device("/job:ps/task:0"):
            x = tf.random_uniform([]) * 0.0 + 2.0
        with tf.device("/job:worker/task:0"):
            y = x + 1.0
        with tf.Session(c.target()) as session:
            return session.run(y) == 3.0
    return False


def data_port(c, job="worker"):
    return c[job, 0]._listener.endpoint.port


# -- two that say that they are the same ---------------------------------------------------------


def test_two_tasks_of_one_index_at_different_addresses(cluster, caplog, either, monkeypatch):
    """The first goes on; the second is told, and is let in when the first is gone."""
    c = cluster(ps=1, worker=1)
    assert lives(c)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    spec = {"ps": [c.spec.task_address("ps", 0)], "worker": [address]}
    twin = tf.train.Server(spec, job_name="worker", task_index=0)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                x = tf.random_uniform([]) * 0.0 + 2.0
            monkeypatch.setattr(flags, "connect_timeout", 1.5)
            target = f"grpc://{address}"
            first = c.spec.task_address("worker", 0)
            text = f"Two tasks say that they are {WORKER}: one at {first}"
            raises = pytest.raises(tf.errors.UnavailableError, match=text)
            with tf.Session(target) as session, raises as error:
                session.run(x)
            assert f"one at {address}. Give each task an index of its own" in error.value.message
            assert text in caplog.text
            monkeypatch.undo()
            assert lives(c)
            c["worker", 0].stop()
            with tf.Session(target) as session:
                assert session.run(x) == 2.0
    finally:
        twin.stop()


# -- somebody else at the port ------------------------------------------------------------------


@pytest.mark.parametrize("port", ["control", "data"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\xff" * 10000,
        np.random.RandomState(0).bytes(3000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 400,
    ],
)
def test_peers_that_speak_something_else(cluster, content, port):
    c = cluster(ps=1, worker=1)
    number = data_port(c) if port == "data" else int(c.target().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", number)) as peer:
        peer.settimeout(20)
        with contextlib.suppress(OSError):
            peer.sendall(content)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(4096):
                pass
    assert lives(c)


def test_connections_that_say_nothing(cluster):
    c = cluster(ps=1, worker=1)
    silent = [socket.create_connection(("127.0.0.1", data_port(c))) for _ in range(30)]
    assert lives(c)
    for peer in silent:
        peer.close()


def test_a_task_whose_port_belongs_to_something_else(cluster, either, monkeypatch):
    """A server of another kind listens where a task should."""
    monkeypatch.setattr(flags, "connect_timeout", 0.3)
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    address = c.spec.task_address("ps", 0)
    host, _, port = address.rpartition(":")
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with socket.create_server((host, int(port))) as other:
        thread = threading.Thread(target=_answer_http, args=(other,), daemon=True)
        thread.start()
        with tf.Session(c.target()) as session:
            with pytest.raises(tf.errors.OpError) as caught:
                session.run(v.initializer)
            assert address in str(caught.value) or PS in str(caught.value)
            assert session.run(tf.random_uniform([])) < 1
    thread.join(20)


def _answer_http(listener):
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_grpc_server_that_is_not_ours(cluster, remote):
    from concurrent.futures import ThreadPoolExecutor

    (port,) = free_ports(1)
    pool = ThreadPoolExecutor(1)
    other = grpc.server(pool)
    other.add_insecure_port(f"127.0.0.1:{port}")
    other.start()
    try:
        with (
            tf.Session(f"grpc://127.0.0.1:{port}") as session,
            pytest.raises(tf.errors.UnimplementedError, match=f"127.0.0.1:{port} is no Headrace"),
        ):
            session.run(tf.constant(1))
    finally:
        other.stop(None).wait()
        pool.shutdown()


def test_another_release_is_told_of_once(cluster, remote, monkeypatch, caplog):
    """It works as long as the protocol is the same; whoever wonders about results finds a line."""
    c = cluster(ps=1, worker=1)
    describe = type(c["ps", 0])._describe

    def older(request):
        answer = describe(c["ps", 0], request)
        answer.package_version = "0.0.1"
        return answer

    c["ps", 0].stop()
    server = c.servers["ps", 0] = tf.train.Server(c.spec, job_name="ps", start=False)
    monkeypatch.setattr(server, "_describe", older)
    server.start()
    assert lives(c)
    assert lives(c)
    (line,) = [r.getMessage() for r in caplog.records if "release" in r.getMessage()]
    assert f"{PS} at {c.spec.task_address('ps', 0)} runs Headrace 0.0.1, this process " in line


def test_another_version_of_the_protocol(cluster, remote, monkeypatch):
    c = cluster(worker=1)
    address = c.spec.task_address("worker", 0)
    c["worker", 0].stop()
    server = c.servers["worker", 0] = tf.train.Server(c.spec, start=False)
    monkeypatch.setattr(server, "_describe", lambda r: _versioned(server, r))
    server.start()
    with (
        tf.Session(c.target()) as session,
        pytest.raises(tf.errors.FailedPreconditionError) as caught,
    ):
        session.run(tf.constant(1))
    assert f"{address} speaks version 999 of the protocol" in caught.value.message
    assert f"this process version {control.PROTOCOL_VERSION}" in caught.value.message


def _versioned(server, request):
    answer = type(server)._describe(server, request)
    answer.version = 999
    return answer


def test_tasks_started_with_different_clusters(cluster, either):
    """The address of ps:0 belongs to worker:0 of another cluster."""
    other = cluster(worker=1)
    ports = [f"127.0.0.1:{p}" for p in free_ports(1)]
    spec = {"ps": [other.spec.task_address("worker", 0)], "worker": ports}
    server = tf.train.Server(spec, job_name="worker")
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        with (
            tf.Session(server.target) as session,
            pytest.raises(tf.errors.FailedPreconditionError) as caught,
        ):
            session.run(v.initializer)
        assert f"should be {PS}, but it is {WORKER}" in caught.value.message
    finally:
        server.stop()


# -- clients that err ---------------------------------------------------------------------------


@pytest.fixture
def call():
    """``call(server, name, request)`` calls a server's control plane."""
    made = []

    def call(server, name, request):
        one = Control(server.address, Security.from_environment())
        made.append(one)
        return one.call(name, request, 5.0)

    yield call
    for one in made:
        one.close()


def test_sessions_and_plans_that_are_not_there(cluster, call):
    server = cluster(worker=1)["worker", 0]
    for name, request in [
        ("ExtendGraph", cpb.ExtendGraphRequest(session=5)),
        ("MakePlan", cpb.MakePlanRequest(session=5)),
        ("CloseSession", cpb.CloseSessionRequest(session=5)),
        ("ListDevices", cpb.ListDevicesRequest(session=5)),
    ]:
        with pytest.raises(
            tf.errors.AbortedError, match=r"0000000000000005 is not found.*new sess"
        ):
            call(server, name, request)
    session = call(server, "CreateSession", cpb.CreateSessionRequest(client="client:test")).session
    with pytest.raises(tf.errors.OpError, match="nosuch"):
        call(server, "MakePlan", cpb.MakePlanRequest(session=session, fetches=["nosuch:0"]))
    call(server, "CloseSession", cpb.CloseSessionRequest(session=session))


def test_a_client_of_another_graph_version(cluster, call):
    server = cluster(worker=1)["worker", 0]
    session = call(server, "CreateSession", cpb.CreateSessionRequest(client="client:test")).session
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
    definition = graph.as_graph_def()
    extend = cpb.ExtendGraphRequest(session=session, graph=definition)
    assert call(server, "ExtendGraph", extend).version == 1
    extend.from_version = 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="from 7 nodes, but the master has 1"):
        call(server, "ExtendGraph", extend)
    definition.node[0].op = "NoSuchOp"
    extend = cpb.ExtendGraphRequest(session=session, graph=definition)
    with pytest.raises(tf.errors.OpError, match="NoSuchOp"):
        call(server, "ExtendGraph", extend)
    definition.node[0].op = "Const"
    definition.versions.min_consumer = 1 << 30
    extend = cpb.ExtendGraphRequest(session=session, graph=definition)
    with pytest.raises(tf.errors.OpError, match="version"):
        call(server, "ExtendGraph", extend)
    call(server, "CloseSession", cpb.CloseSessionRequest(session=session))


def test_bytes_that_are_no_message(cluster):
    c = cluster(ps=1, worker=1)
    channel = grpc.insecure_channel(c.spec.task_address("worker", 0))
    for name in ("Endpoint", "CreateSession", "NoSuchCall"):
        method = channel.unary_unary(f"/headrace.distributed.Control/{name}")
        with pytest.raises(grpc.RpcError):
            method(b"\xff\xff\xff", timeout=5)
    channel.close()
    assert lives(c)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x00",
        b"\xc8nonsense",
        bytes([pb.RUN_PART]) + b"\xff\xff",
        pack(pb.RegisterPart(plan=1, part=pb.PartDef(task=PS, nodes=[pb.PartNode(op="NoSuchOp")]))),
        pack(pb.RegisterPart(plan=1, part=pb.PartDef(task=PS, feeds=[4]))),
        pack(pb.RunPart(step=1, plan=99)),
        pack(pb.CancelStep(step=77)),
        pack(pb.Tensors(step=1, transfer=3)),
        pack(pb.Tensors(step=1, transfer=3, done=True)),
        pack(pb.StepResult(request=8)),
        pack(pb.PartDone(step=9)),
        pack(pb.RunStep(request=1, session=2, plan=3)),
    ],
)
def test_frames_that_make_no_sense(cluster, head):
    """The peer loses its link at most."""
    c = cluster(ps=1, worker=1)
    assert lives(c)
    link = c["worker", 0].task.peers.known(PS)
    link.send(head)
    assert eventually(lambda: lives(c))
    # Tensors of a step that nobody asks for are dropped a minute later.
    c["ps", 0].task.worker.machine._held.clear()


def test_devices_that_do_not_exist(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.Session(c.target()) as session:
        for device in ("/job:chief", "/job:ps/task:9", "/job:ps/task:0/device:GPU:0"):
            with tf.device(device):
                y = tf.random_uniform([]) + 1.0
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(y)
            assert "available devices are [" in caught.value.message
            assert f"{WORKER}/device:CPU:0" in caught.value.message
            assert caught.value.op is not None
        assert session.run(tf.random_uniform([])) < 1.0


def test_values_of_wrong_type_and_shape(cluster, either):
    c = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:ps/task:0"):
        y = x + 1.0
    with tf.Session(c.target()) as session:
        with pytest.raises(ValueError, match="shape"):
            session.run(y, {x: [1, 2, 3]})
        with pytest.raises((ValueError, TypeError)):
            session.run(y, {x: ["a", "b"]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"[Ff]eed"):
            session.run(y)
        np.testing.assert_array_equal(session.run(y, {x: [1, 2]}), [2, 3])


def test_a_missing_server_of_status_and_shutdown():
    (port,) = free_ports(1)
    for ask in (admin.status, admin.shutdown):
        with pytest.raises(tf.errors.UnavailableError, match=f"127.0.0.1:{port} does not answer"):
            ask(f"127.0.0.1:{port}")
        with pytest.raises(ValueError, match="host:port"):
            ask("nonsense")


def test_garbage_is_logged_once_with_its_sender(cluster, caplog):
    c = cluster(worker=1)
    with (
        caplog.at_level(logging.INFO, "headrace.distributed"),
        socket.create_connection(("127.0.0.1", data_port(c))) as peer,
    ):
        name = f"127.0.0.1:{peer.getsockname()[1]}"
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert eventually(lambda: name in caplog.text), caplog.text
    assert len([m for m in caplog.messages if name in m]) == 1


def test_requests_that_make_no_sense_are_the_clients_matter(cluster, call, caplog):
    """And print no traceback at the server."""
    server = cluster(worker=1)["worker", 0]
    session = call(server, "CreateSession", cpb.CreateSessionRequest(client="client:test")).session
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
    definition = graph.as_graph_def()
    extend = cpb.ExtendGraphRequest(session=session, graph=definition)
    call(server, "ExtendGraph", extend)
    for request, text in [
        ({"fetches": ["b:0"]}, "The plan that the client asks for makes no sense: The name 'b:0'"),
        ({"fetches": ["a"]}, "refers to an Operation, not a Tensor"),
        ({"targets": ["nope"]}, "The name 'nope' refers to an Operation not in the graph"),
        ({"fetches": ["a:0"], "last": [7]}, "there is no fetch 7 among 1"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            call(server, "MakePlan", cpb.MakePlanRequest(session=session, **request))
        assert text in caught.value.message
    del definition.node[0].attr["dtype"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="The graph of the client makes no"):
        call(server, "ExtendGraph", extend_with(session, definition))
    call(server, "CloseSession", cpb.CloseSessionRequest(session=session))
    assert not [record for record in caplog.records if record.exc_info]


def extend_with(session, definition):
    return cpb.ExtendGraphRequest(session=session, graph=definition)
