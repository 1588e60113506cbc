"""Every reader of the wire meets damage: typed errors or closed links, and nothing else.

Each test has seeds, and says with its number what it met. A reader may refuse, or read what was not
changed in a way that matters; it may not raise anything of its own, take more memory than what is
there justifies, or wait for what never comes.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
import time
import tracemalloc

import numpy as np
import pytest
from server_clusters import OURS, SERVICE, TOKEN

import headrace as tf
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.distributed.cluster.tf_config import read_tf_config
from headrace.distributed.collective.parts import check_form
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.protocol import transport_pb2 as tpb
from headrace.distributed.security.admission import Caller, Gate, Stale
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import control
from headrace.distributed.services.control import Control
from headrace.distributed.steps import part_def
from headrace.distributed.transport import frame_body, grpc_pipe, ucx_frames
from headrace.distributed.transport.base import Limits, PeerInfo, PipeBroken
from headrace.distributed.transport.framing import CHECKED, DATA, ENTRY, FrameReader, frame_bytes
from headrace.distributed.transport.handshake import Refused, answer, greet, hello_of
from headrace.distributed.transport.shm import SharedMemory
from headrace.distributed.wire import codec
from headrace.distributed.wire.failures import to_error
from headrace.distributed.wire.messages import pack, unpack
from headrace.errors import InvalidArgumentError, OpError, PermissionDeniedError

pytestmark = pytest.mark.slow
SEEDS = range(4)
LIMITS = Limits(max_head_bytes=1 << 16, max_buffers=1000, max_frame_bytes=1 << 20)
#: What a reader may take for input of some kilobytes, its limits being as above.
MOST_BYTES = 8 << 20


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes with flips, holes, insertions, repeats, extreme numbers, or cut off."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        kind = rng.randrange(6)
        at = rng.randrange(len(made) + 1)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del made[at : at + rng.randint(1, 20)]
        elif kind == 2:
            made[at:at] = rng.randbytes(rng.randint(1, 20))
        elif kind == 3:
            made[at:at] = made[max(0, at - 30) : at]
        elif kind == 4:
            number = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1])
            made[at : at + 8] = struct.pack("<Q", number)[: rng.choice([1, 4, 8])]
        else:
            del made[at:]
    return bytes(made)


@contextlib.contextmanager
def bounded_memory():
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def values(rng):
    """Values of every encoding."""
    floats = np.frombuffer(rng.randbytes(4 * rng.randint(1, 300)), np.float32)
    return [
        floats,
        np.int64(7),
        np.array([b"a", b"", b"ccc"], object),
        np.zeros([0, 3], np.int32),
        None,
        True,
    ]


# -- frames -------------------------------------------------------------------------------------


def a_stream(rng, checked):
    """The bytes of some frames, and their heads."""
    stream, heads = b"", []
    for _ in range(3):
        head = rng.randbytes(rng.randint(0, 50))
        buffers = [rng.randbytes(rng.choice([0, 1, 100, 70_000])) for _ in range(rng.randint(0, 4))]
        rows = []
        for data in buffers:
            flags = CHECKED if checked and data else 0
            rows.append(ENTRY.pack(len(data), frame_body.crc32c(data) if flags else 0, flags))
        body = b"".join(buffers)
        stream += frame_bytes(DATA, 0, head, b"".join(rows), len(body)) + body
        heads.append((head, buffers))
    return stream, heads


def read_frames(data, mapped=None):
    """The frames that a reader finds, until it refuses."""
    rest = memoryview(data)

    def receive(view, count):
        nonlocal rest
        got = min(count, len(rest), 5000)
        view[:got] = rest[:got]
        rest = rest[got:]
        return got

    reader = FrameReader(receive, LIMITS, mapped)
    found = []
    while True:
        try:
            frame = reader.next()
        except PipeBroken:
            return found
        found.append((frame.head, [bytes(b) for b in frame.buffers]))


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_of_streams(seed):
    """With checksums no damaged frame comes through at all."""
    rng = random.Random(seed)
    for _ in range(300):
        stream, sent = a_stream(rng, checked=True)
        assert read_frames(stream) == sent
        changed = damaged(stream, rng)
        with bounded_memory():
            found = read_frames(changed)
        for frame in found:
            assert frame in sent


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_that_speak_of_shared_memory(seed):
    """Checksums that fit, and contents that do not: what a peer of evil mind sends."""
    rng = random.Random(seed)
    memory = SharedMemory([].pop)
    for _ in range(500):
        count = rng.randint(1, 4)
        rows = [
            ENTRY.pack(rng.choice([0, 5, 1 << 40, 2**64 - 1]), rng.randrange(4), rng.randrange(8))
            for _ in range(count)
        ]
        inline = rng.choice([0, 5, 10, 1 << 30])
        stream = frame_bytes(rng.randrange(3), 0, b"h", b"".join(rows), inline) + bytes(100)
        with bounded_memory():
            read_frames(stream, memory.mapped)
        head = damaged(struct.pack("<QIIII", 0, 1, 1, 7, 8), rng)
        with contextlib.suppress(PipeBroken):
            memory.control(head)
    memory.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_bodies_of_messages(seed):
    """Of gRPC and UCX; with a checksum that was made for the damaged bytes, too."""
    rng = random.Random(seed)
    for number in range(400):
        head = rng.randbytes(rng.randint(0, 40))
        buffers = [rng.randbytes(rng.choice([0, 9, 5000])) for _ in range(rng.randint(0, 4))]
        body, count, large = frame_body.encode_body(head, buffers, LIMITS, checked=True)
        if number % 2:
            changed = damaged(body, rng)
        else:
            changed = damaged(body[:-4], rng)
            changed += frame_body.crc32c(changed).to_bytes(4, "little")
        head_bytes, numbers = rng.choice(
            [(len(head), count), (rng.randrange(99), rng.randrange(9))]
        )
        if (changed, head_bytes, numbers) == (body, len(head), count):
            continue
        with bounded_memory(), contextlib.suppress(PipeBroken):
            frame_body.check_announced(head_bytes, numbers, len(changed), LIMITS)
            opened = frame_body.open_body(memoryview(changed), head_bytes, numbers, LIMITS)
            assert number % 2 == 0, "only a body whose checksum was made anew can be read"
            for (view, _), data in zip(opened.rooms, large, strict=False):
                view[:] = bytes(view.nbytes) if view.nbytes != len(data) else data
            opened.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_of_grpc(seed):
    rng = random.Random(seed)
    for _ in range(300):
        sent, stream = [], b""
        for _ in range(2):
            head = rng.randbytes(rng.randint(0, 40))
            buffers = [rng.randbytes(rng.choice([1, 9, 6000])) for _ in range(rng.randint(0, 3))]
            body, count, large = frame_body.encode_body(head, buffers, LIMITS, checked=True)
            stream += grpc_pipe._prefix(len(head), count, len(body)) + body + b"".join(large)
            sent.append((head, buffers))
        assembler = grpc_pipe._Assembler(LIMITS)
        found = []
        with bounded_memory(), contextlib.suppress(PipeBroken):
            for head, buffers in assembler.feed(damaged(stream, rng)):
                found.append((head, [bytes(b) for b in buffers]))
        for frame in found:
            assert frame in sent


@pytest.mark.parametrize("seed", SEEDS)
def test_descriptors_of_ucx(seed):
    rng = random.Random(seed)
    for _ in range(1000):
        operations = ucx_frames.encode(rng.randbytes(30), [rng.randbytes(20)], LIMITS, True)
        message = operations[0][0]
        changed = damaged(message, rng)
        if changed == message:
            continue
        with bounded_memory(), contextlib.suppress(PipeBroken):
            arrival = ucx_frames.read_descriptor(memoryview(changed), LIMITS)
            assert arrival.body is not None  # cut where the body could begin: it is to follow
            assert message.startswith(changed)


# -- greetings ----------------------------------------------------------------------------------


class _Damage:
    """A socket whose outgoing bytes are damaged, once."""

    def __init__(self, sock, rng):
        self._sock = sock
        self._rng = rng
        self._after = rng.randrange(3)

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def sendall(self, data):
        self._after -= 1
        self._sock.sendall(damaged(data, self._rng) if self._after == -1 else data)


@pytest.mark.parametrize("token", [None, b"token"])
@pytest.mark.parametrize("seed", SEEDS)
def test_greetings(seed, token):
    """Either both sides know each other as they are, or neither has a pipe."""
    rng = random.Random(seed)
    security = Security(token=token)
    ours, theirs = PeerInfo("/job:worker/task:0", 5, "a:1"), PeerInfo("/job:ps/task:0", 7, "b:2")
    for number in range(60):
        one, other = socket.socketpair()
        ends = [one, _Damage(other, rng)] if number % 2 else [_Damage(one, rng), other]
        found = []

        def listen(end, found=found):
            with contextlib.suppress(Refused, OSError):
                found.append(answer(end, security, theirs, False, time.monotonic() + 0.2))
            end.close()

        thread = threading.Thread(target=listen, args=(ends[1],))
        thread.start()
        try:
            said = greet(ends[0], security, hello_of(ours, theirs), time.monotonic() + 0.2)
            assert (said.task, said.incarnation) == (theirs.task, theirs.incarnation)
        except (Refused, OSError):
            pass
        ends[0].close()
        thread.join(20)
        assert not thread.is_alive()
        for hello in found:
            assert (hello.task, hello.incarnation, hello.address) == (
                "/job:worker/task:0",
                5,
                "a:1",
            )


# -- messages -----------------------------------------------------------------------------------


def honest_messages(rng):
    metas, buffers = codec.encode_many(values(rng))
    metas += codec.encode_many([np.ones(600, np.float32)], ["int8"])[0]
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        tf.matmul([[1.0, 2.0]], tf.reshape(x, [2, 1]))
    member = pb.CollectiveMember(task="/job:ps/task:0", incarnation=7, devices=["/device:CPU:0"])
    failure = pb.Failure(code=3, message="wrong", op_name="a", op_type="Add", task="/job:ps/task:0")
    return [
        pb.RunPart(step=1, plan=2, feeds=metas),
        pb.PartDone(step=3, failure=failure),
        pb.Tensors(step=1, transfer=3, values=metas),
        pb.CancelStep(step=1),
        pb.Registered(plan=8, failure=failure),
        pb.DropPlans(plans=[1, 2], session=9),
        pb.RunStep(request=5, session=4, plan=3, feeds=metas),
        pb.StepResult(request=5, fetches=metas, failure=failure),
        pb.Links(number=1, upto=3, live=[1, 2]),
        pb.Collective(kind=pb.JOIN, group=1, group_size=2, members=[member]),
        pb.Collective(kind=pb.PIECE, group=1, epoch=1, instance=4, piece=1, value=metas[0]),
    ], buffers


@pytest.mark.parametrize("seed", SEEDS)
def test_messages_and_their_values(seed):
    rng = random.Random(seed)
    refused = 0
    for _ in range(150):
        messages, buffers = honest_messages(rng)
        for message in messages:
            changed = damaged(pack(message), rng)
            with bounded_memory():
                try:
                    found = unpack(changed)
                    for field in ("feeds", "values", "fetches"):
                        if hasattr(found, field):
                            codec.decode_many(getattr(found, field), buffers)
                    if isinstance(found, pb.Collective):
                        check_form("/job:ps/task:0", found)
                        if found.HasField("value"):
                            codec.decode(found.value, buffers)
                    if getattr(found, "failure", None) is not None:
                        assert isinstance(to_error(found.failure), OpError)
                except OpError:
                    refused += 1
    assert refused > 300


@pytest.mark.parametrize("seed", SEEDS)
def test_buffers_that_do_not_fit_their_descriptions(seed):
    rng = random.Random(seed)
    for _ in range(400):
        precision = rng.choice(["", "", "bfloat16", "float16", "int8"])
        given = [*values(rng), np.linspace(-1, 1, rng.randint(1, 900), dtype=np.float32)]
        metas, buffers = codec.encode_many(given, [precision] * len(given))
        changed = [damaged(bytes(b), rng) if rng.random() < 0.4 else bytes(b) for b in buffers]
        rng.random() < 0.2 and changed and changed.pop(rng.randrange(len(changed)))
        with bounded_memory(), contextlib.suppress(OpError):
            codec.decode_many(metas, [np.frombuffer(c, np.uint8) for c in changed])


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_of_plans(seed):
    from test_message_fuzz import a_part

    rng = random.Random(seed)
    message, buffers = a_part()
    data = message.SerializeToString(deterministic=True)
    for _ in range(700):
        changed = pb.PartDef()
        try:
            changed.ParseFromString(damaged(data, rng))
        except Exception:  # `unpack` refuses it; see above
            continue
        with contextlib.suppress(OpError):
            part_def.from_message(changed, buffers)


# -- the control plane --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_proofs_of_calls(seed):
    rng = random.Random(seed)
    gate = Gate(OURS)
    caller = Caller(OURS)
    caller.renew(gate.ticket())
    for _ in range(500):
        given = dict(caller.metadata(caller.call("/s/Status", b"body")))
        key = rng.choice(list(given))
        changed = damaged(given[key], rng)
        if changed == given[key]:
            continue
        with pytest.raises((Stale, PermissionDeniedError)):
            gate.admit("/s/Status", {**given, key: changed})
    assert gate.remembered == 0


def requests(session):
    """An honest request of each kind that ends nothing."""
    with tf.Graph().as_default() as graph:
        tf.add(tf.placeholder(tf.float32, [2], name="x"), [1.0, 2.0], name="y")
    definition = graph.as_graph_def()
    return {
        "Endpoint": cpb.EndpointRequest(version=control.PROTOCOL_VERSION),
        "CreateSession": cpb.CreateSessionRequest(client="client:fuzz"),
        "ExtendGraph": cpb.ExtendGraphRequest(session=session, graph=definition),
        "MakePlan": cpb.MakePlanRequest(session=session, fetches=["y:0"], feeds=["x:0"], timeout=1),
        "ListDevices": cpb.ListDevicesRequest(session=session),
        "Status": cpb.StatusRequest(cluster=True),
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_of_members(cluster, monkeypatch, caplog, seed):
    """Bodies that were sealed as they are: what a member of another mind would send."""
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    server = cluster(worker=1)["worker", 0]
    one = Control(server.address, OURS)
    create = cpb.CreateSessionRequest(client="client:fuzz")
    session = one.call("CreateSession", create, 10.0).session
    rng = random.Random(seed)
    for _ in range(40):
        for name, request in requests(session).items():
            body = damaged(request.SerializeToString(), rng)
            with contextlib.suppress(Stale):
                one._get_ticket(SERVICE + name, time.monotonic() + 10)
            with contextlib.suppress(OpError):
                one._answer(SERVICE + name, body, time.monotonic() + 20)
    assert one.call("Status", cpb.StatusRequest(), 10.0).tasks
    one.close()
    for opened in server.task.master.sessions():
        server.task.master.close_session(opened)
    raw = [r.getMessage() + str(r.exc_info) for r in caplog.records if r.exc_info]
    assert not raw, raw


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_of_servers(cluster, monkeypatch, seed):
    """A client takes no damaged answer for one."""
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", TOKEN)
    server = cluster(worker=1)["worker", 0]
    one = Control(server.address, OURS)
    rng = random.Random(seed)
    send = one._send

    def damaging(*args):
        reply, seal = send(*args)
        whole = damaged(reply, rng) if rng.random() < 0.5 else reply
        return whole, seal if whole != reply or rng.random() < 0.5 else damaged(seal, rng)

    expected = one.call("Endpoint", cpb.EndpointRequest(), 10.0)
    monkeypatch.setattr(one, "_send", damaging)
    for _ in range(200):
        with contextlib.suppress(OpError):
            assert one.call("Endpoint", cpb.EndpointRequest(), 10.0) == expected
    one.close()


# -- descriptions of clusters -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_tf_config(seed):
    rng = random.Random(seed)
    config = {
        "cluster": {"ps": ["ps0:2222", "[::1]:2223"], "worker": ["w0:2222"]},
        "task": {"type": "worker", "index": 0},
    }
    text = json.dumps(config).encode()
    texts = []
    for _ in range(3000):
        changed = damaged(text, rng).decode("utf-8", "surrogateescape")
        try:
            found = read_tf_config({"TF_CONFIG": changed})
        except InvalidArgumentError as error:
            texts.append(error.message)
            continue
        found.cluster.as_cluster_def().SerializeToString()
        found.cluster.task_address(found.job, found.task)
    assert all(text.startswith("TF_CONFIG: ") for text in texts)
    assert len(texts) > 1000


@pytest.mark.parametrize("seed", SEEDS)
def test_cluster_specs(seed):
    """Values of any kind in any place: errors that name the place, or a cluster."""
    rng = random.Random(seed)

    def anything(depth=0):
        simple = [None, True, -1, 0, 2**70, 1.5, "ps", "a:1", "a:99999", "", "[::1]:7", b"\xff:1"]
        if depth > 2 or rng.random() < 0.4:
            return rng.choice([*simple, "\ud800:1", "a:1\n", {1}, float("nan")])
        if rng.random() < 0.5:
            return [anything(depth + 1) for _ in range(rng.randrange(3))]
        keys = ["ps", "worker", 0, 1, 2**40, None, "0", "\ud800", ""]
        return {rng.choice(keys): anything(depth + 1) for _ in range(rng.randrange(3))}

    refused = []
    for _ in range(3000):
        try:
            made = ClusterSpec(anything())
        except (TypeError, ValueError) as error:
            refused.append(error)
            continue
        made.as_cluster_def().SerializeToString()
        for job in made.jobs:
            made.job_tasks(job)
    places = "cluster", "job", "Job", "address", "Address"
    for error in refused:
        assert type(error) in (TypeError, ValueError)
        assert any(place in str(error) for place in places)


def test_the_readers_here_are_all_there_are():
    """A message that is added to the protocol gets its place in this file."""
    known = {type(m) for m in honest_messages(random.Random(0))[0]}
    elsewhere = {pb.RegisterPart, pb.LinkLost}  # parts, above; a name only
    from headrace.distributed.wire.messages import _CLASSES

    assert set(_CLASSES.values()) - elsewhere <= known | elsewhere
    ending = {"CloseSession", "Reset", "Shutdown"}
    assert set(control._METHODS) - ending == set(requests(1))
    fields = {field.name for field in tpb.Greeting.DESCRIPTOR.fields}
    assert fields == {"hello", "proof", "refusal", "accepted"}
