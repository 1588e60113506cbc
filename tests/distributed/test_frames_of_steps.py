"""What a step costs: frames, system calls, work for the collector; when an answer needs a frame."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import textwrap
import threading
from collections import Counter

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.link import Link
from headrace.distributed.transport.sockets import SocketChannel
from headrace.errors import InternalError
from headrace.graph.proto import RunMetadata, RunOptions
from headrace.harness.cluster import with_cluster
from headrace.harness.faults import Faults
from headrace.test.cluster import free_ports

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
STEPS = 50

_SERVER = """
    import json, sys
    import headrace as tf
    from headrace.distributed.transport.sockets import SocketChannel
    sys.path.insert(0, {folder!r})
    from test_frames_of_steps import counting, sleeps
    calls = counting(lambda name, made: setattr(SocketChannel, name, made))
    server = tf.train.Server({cluster!r}, job_name="ps", task_index=0)
    print(json.dumps("there"), flush=True)
    for line in sys.stdin:
        print(json.dumps(dict(calls, sleeps=sleeps())), flush=True)
"""
#: Of a heartbeat as bytes: a header, and the kind and number that links give to frames.
_HEARTBEAT = 28 + 9


def counting(replace):
    """Counts the system calls of sockets, but for those of heartbeats."""
    calls = Counter()
    write, receive = SocketChannel.write, SocketChannel._receive_with_descriptors

    def writing(channel, parts, *more):
        # Before it is done: who gets the frame may ask at once.
        calls["writes"] += sum(map(len, parts)) != _HEARTBEAT
        return write(channel, parts, *more)

    def receiving(channel, *more):
        count = receive(channel, *more)
        calls["reads"] += count != _HEARTBEAT
        return count

    replace("write", writing)
    replace("_receive_with_descriptors", receiving)
    return calls


def sleeps():
    """How often threads that read links have gone to sleep."""
    readers = [t for t in threading.enumerate() if t.name.startswith("headrace-read")]
    found = 0
    for reader in readers:
        with open(f"/proc/self/task/{reader.native_id}/status") as lines:
            (line,) = [line for line in lines if line.startswith("voluntary_ctxt_switches")]
        found += int(line.split()[1])
    return found


@pytest.fixture
def two_processes(monkeypatch):
    """A parameter server in another process, a worker in this one; counts what both have done."""
    folder = __file__.rpartition("/")[0]
    ports = [f"127.0.0.1:{port}" for port in free_ports(2)]
    cluster = {"ps": ports[:1], "worker": ports[1:]}
    text = textwrap.dedent(_SERVER).format(folder=folder, cluster=cluster)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe, text=True) as ps:
        try:
            assert json.loads(ps.stdout.readline()) == "there"
            own = counting(lambda name, made: monkeypatch.setattr(SocketChannel, name, made))
            server = tf.train.Server(cluster, job_name="worker", task_index=0)

            def counts():
                ps.stdin.write("\n")
                ps.stdin.flush()
                found = {f"ps {name}": n for name, n in json.loads(ps.stdout.readline()).items()}
                stats = server.task.peers.known(PS).stats
                frames = {"frames out": stats.frames_out, "frames in": stats.frames_in}
                return Counter({**found, **own, **frames})

            yield server, counts
            server.stop()
        finally:
            ps.kill()


def model():
    """What a worker makes of a variable, and an update of it."""
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)
        read = v.read_value()
    with tf.device("/job:worker/task:0"):
        factor = tf.placeholder_with_default(1.0, [])
        scaled = read * factor
    with tf.device("/job:ps/task:0"):
        update = v.assign_add(scaled, read_value=False)
    return v, scaled, update


@pytest.mark.process
@pytest.mark.parametrize("kind", ["update", "fetch"])
def test_a_small_step_costs_a_frame_each_way_and_one_more_each_for_what_comes_back(
    two_processes, kind
):
    """Each frame is one system call at each end."""
    server, counts = two_processes
    v, scaled, update = model()
    with tf.Session(server.target) as session:
        session.run(v.initializer)
        fetch = update if kind == "update" else scaled
        for _ in range(10):
            session.run(fetch)
        before = counts()
        for _ in range(STEPS):
            session.run(fetch)
        after = counts()
    # There: the question, and what is added. Back: the parameters, and the answer, which goes with
    # them where the server has nothing more to do.
    frames = STEPS * (2 if kind == "update" else 1)
    found = after - before
    assert found["frames out"] == found["frames in"] == frames
    assert found["writes"] == found["ps writes"] == frames
    # What has come together is read together.
    assert found["reads"] <= frames
    assert found["ps reads"] <= frames
    # A reader is woken when there is something to read, not when what was written has been taken.
    assert found["ps sleeps"] <= 1.5 * frames


def kinds_of(cluster, faults, call):
    """The kinds of the frames from the server to the worker in a call."""
    faults.watch()
    value = call()
    return [f.kind for f in faults.seen if (f.sender, f.receiver) == (PS, WORKER)], value


@pytest.fixture
def watched():
    """A cluster whose frames are watched, and the session of its worker with a model."""
    faults = Faults()
    with tf.Graph().as_default(), with_cluster(faults=faults, ps=1, worker=1) as cluster:
        v, scaled, update = model()
        with tf.Session(cluster.target("worker")) as session:
            session.run(v.initializer)
            yield cluster, faults, session, (v, scaled, update)


def test_the_answer_goes_with_the_last_tensors_where_it_says_nothing_more(watched):
    cluster, faults, session, (v, scaled, update) = watched

    def kinds(*args, **more):
        return kinds_of(cluster, faults, lambda: session.run(*args, **more))

    for _ in range(2):  # with and without plans to be made
        found, value = kinds(scaled)
    assert (found, value) == (["TENSORS"], 2.0)
    # With fetches of its own, or work that comes later, the part answers by itself.
    session.run([scaled, v])
    found, values = kinds([scaled, v])
    assert (found, values) == (["TENSORS", "PART_DONE"], [2.0, 2.0])
    session.run(update)
    assert kinds(update)[0] == ["TENSORS", "PART_DONE"]
    # A trace says when the tensors left: the answer brings it.
    options, metadata = RunOptions(trace_level=RunOptions.FULL_TRACE), RunMetadata()
    found, value = kinds(scaled, options=options, run_metadata=metadata)
    assert (found, value) == (["TENSORS", "PART_DONE"], 8.0)
    stats = {d.device: [n.node_name for n in d.node_stats] for d in metadata.step_stats.dev_stats}
    assert any("Send" in label for label in _labels(metadata, PS)), stats


def _labels(metadata, task):
    return [
        f"{node.node_name} {node.timeline_label}"
        for device in metadata.step_stats.dev_stats
        if device.device.startswith(task)
        for node in device.node_stats
    ]


@pytest.mark.process
@pytest.mark.parametrize("size", [1 << 10, 1 << 20])
def test_tensors_of_any_size_bring_the_answer(two_processes, size):
    """Small ones are in the stream, large ones in shared memory."""
    server, counts = two_processes
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([size]), use_resource=True)
    with tf.device("/job:worker/task:0"):
        total = tf.reduce_sum(v.read_value())
    with tf.Session(server.target) as session:
        session.run(v.initializer)
        assert session.run(total) == size
        before = counts()
        for _ in range(STEPS):
            assert session.run(total) == size
        found = counts() - before
    assert found["frames out"] == found["frames in"] == STEPS


def test_tensors_do_not_wait_until_a_copy_has_what_has_changed(watched):
    """The answer of a part with a copy waits for that; the tensors that it has sent do not."""
    cluster, _, session, (_, scaled, _) = watched
    session.run(scaled)
    arrived, kept = threading.Event(), []
    worker, ps = cluster.tasks[WORKER].worker, cluster.tasks[PS].worker
    came = worker.tensors_came

    def noted(*args):
        came(*args)
        arrived.set()

    class Journal:
        def when_kept(self, call):
            kept.append(call)

    worker.tensors_came, ps.journal = noted, Journal()
    values = []
    step = threading.Thread(target=lambda: values.append(session.run(scaled)))
    step.start()
    assert arrived.wait(30)
    assert not values
    assert step.is_alive()
    while not kept:
        threading.Event().wait(0.001)
    ps.journal = None
    kept[0]()
    step.join(30)
    assert values == [2.0]


def test_a_part_that_fails_behind_its_last_tensors_says_so(watched):
    """As a program of XLA does, whose failure is known when it is waited for."""
    cluster, faults, session, (_, scaled, _) = watched
    session.run(scaled)
    (part,) = [p for p in cluster.tasks[PS].worker._parts.values() if p.part.sends]

    def fails(table):
        raise InternalError(None, None, "The device is gone.")

    results, part.plan.results = part.plan.results, fails
    with pytest.raises(InternalError, match="The device is gone"):
        session.run(scaled)
    part.plan.results = results
    kinds, value = kinds_of(cluster, faults, lambda: session.run(scaled))
    assert (kinds, value) == (["TENSORS"], np.float32(2.0))


@pytest.mark.parametrize("kind", ["update", "fetch"])
def test_steps_leave_nothing_for_the_collector(watched, kind):
    """Neither at the master nor at the server: both are in this process."""
    *_, session, (_, scaled, update) = watched
    fetch = update if kind == "update" else scaled
    for _ in range(10):
        session.run(fetch)
    gc.collect()
    gc.disable()
    try:
        for _ in range(STEPS):
            session.run(fetch)
        assert gc.collect() < STEPS
    finally:
        gc.enable()


@pytest.mark.parametrize("what", ["sent", "fetched"])
def test_what_is_over_a_limit_of_a_link_fails_its_step_only(watched, what, monkeypatch):
    """As a list of more elements than a frame may have buffers is."""
    _, _, session, (v, scaled, _) = watched
    fetch = scaled if what == "sent" else v
    session.run(fetch)
    send = Link.send
    full = {"sent": pb.TENSORS, "fetched": pb.PART_DONE}[what]

    def limited(link, head, buffers=(), block=True):
        if head[0] == full and buffers:
            raise ValueError("Cannot send: a frame has 65537 buffers, the limit is 65536")
        send(link, head, buffers, block)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Link, "send", limited)
        with pytest.raises(tf.errors.OpError, match="the limit is 65536"):
            session.run(fetch)
    assert session.run(fetch) == 2.0
