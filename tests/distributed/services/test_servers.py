"""`tf.train.Server`: its arguments, its life, and the ways to end it."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner
from server_clusters import eventually

import headrace as tf
from headrace.cli import main
from headrace.distributed.services import admin
from headrace.distributed.services import server as server_module
from headrace.graph.proto import ClusterDef, ServerDef

THREE = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}


def unstarted(*args, **kwargs):
    return tf.train.Server(*args, start=False, **kwargs)


def one_task(port):
    return {"worker": [f"127.0.0.1:{port}"]}


# -- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        THREE,
        tf.train.ClusterSpec(THREE),
        tf.train.ClusterSpec(THREE).as_cluster_def(),
        {"ps": {0: "127.0.0.1:1"}, "worker": {0: "127.0.0.1:2", 1: "127.0.0.1:3"}},
    ],
)
def test_a_cluster_as_dict_spec_or_message(given):
    server = unstarted(given, job_name="worker", task_index=1)
    definition = server.server_def
    assert isinstance(definition, ServerDef)
    assert (definition.job_name, definition.task_index) == ("worker", 1)
    assert definition.protocol == "grpc"
    assert tf.train.ClusterSpec(definition.cluster).as_dict() == THREE
    assert server.target == "grpc://127.0.0.1:3"


def test_a_server_def_and_what_overrides_it():
    cluster = tf.train.ClusterSpec(THREE).as_cluster_def()
    given = ServerDef(cluster=cluster, job_name="worker", task_index=1, protocol="grpc")
    given.default_session_config.allow_soft_placement = True
    made = unstarted(given).server_def
    assert made == given
    assert made is not given
    other = unstarted(
        given, job_name="ps", task_index=0, config=tf.ConfigProto(device_filters=["/job:ps"])
    )
    assert (other.server_def.job_name, other.server_def.task_index) == ("ps", 0)
    assert other.server_def.default_session_config.allow_soft_placement
    assert other.server_def.default_session_config.device_filters == ["/job:ps"]
    assert (given.job_name, list(given.default_session_config.device_filters)) == ("worker", [])


def test_a_sparse_cluster_knows_some_tasks_only():
    server = unstarted({"worker": {7: "127.0.0.1:2"}})
    assert server.server_def.task_index == 7
    assert server.server_def.job_name == "worker"


def test_what_may_be_left_out():
    server = unstarted({"solo": ["127.0.0.1:1"]})
    assert (server.server_def.job_name, server.server_def.task_index) == ("solo", 0)
    with pytest.raises(ValueError, match=r"^Must specify an explicit `job_name`\.$"):
        unstarted(THREE)
    with pytest.raises(ValueError, match=r"^Must specify an explicit `task_index`\.$"):
        unstarted({"worker": THREE["worker"]})
    with pytest.raises(ValueError, match=r"^Must specify an explicit `task_index`\.$"):
        unstarted(THREE, job_name="worker")


@pytest.mark.parametrize(
    ("given", "task", "error", "text"),
    [
        (3, {}, TypeError, "cluster"),
        ({"worker": 3}, {}, TypeError, "worker"),
        ({"worker": [3]}, {}, TypeError, "3"),
        ({"worker": {-1: "127.0.0.1:1"}}, {}, ValueError, "-1"),
        ({}, {}, ValueError, "job_name"),
        (THREE, {"job_name": "chief"}, ValueError, "no job 'chief'.*ps.*worker"),
        (THREE, {"job_name": "worker", "task_index": 2}, ValueError, "[Nn]o task.* 2"),
        (
            THREE,
            {"job_name": "ps", "protocol": "carrier pigeon"},
            ValueError,
            "'carrier pigeon'.*'grpc'",
        ),
        ({"worker": ["127.0.0.1"]}, {}, ValueError, "127.0.0.1"),
        ({"worker": ["127.0.0.1:port"]}, {}, ValueError, "127.0.0.1:port"),
        ({"worker": ["127.0.0.1:65536"]}, {}, ValueError, "65536"),
    ],
)
def test_wrong_descriptions(given, task, error, text):
    with pytest.raises(error, match=text):
        unstarted(given, **task)


def test_a_config_of_another_type():
    with pytest.raises(TypeError, match=r"config must be a tf\.ConfigProto"):
        unstarted({"solo": ["127.0.0.1:1"]}, config=3)


# -- life ---------------------------------------------------------------------------------------


def test_a_local_server():
    server = tf.train.Server.create_local_server()
    try:
        assert server.server_def.job_name == "localhost"
        assert int(server.target.rpartition(":")[2]) > 0
        with tf.Session(server.target) as session:
            assert session.run(tf.constant(2.0) * 3.0) == 6.0
            assert session.list_devices()[0].name == "/job:localhost/replica:0/task:0/device:CPU:0"
    finally:
        server.stop()


def test_a_server_that_is_started_later(cluster):
    c = cluster(start=False, worker=1)
    server = c.servers["worker", 0] = unstarted(c.spec)
    address = c.spec.task_address("worker", 0)
    with pytest.raises(tf.errors.UnavailableError, match=f"{address} does not answer"):
        admin.status(address)
    server.start()
    server.start()
    assert [t.task for t in admin.status(address)] == ["/job:worker/replica:0/task:0"]


def test_stop_frees_the_port_at_once(cluster):
    c = cluster(worker=1)
    incarnations = {c["worker", 0].incarnation}
    for _ in range(3):
        c["worker", 0].stop()
        with socket.socket() as plain:
            plain.bind(("127.0.0.1", int(c.target().rpartition(":")[2])))
        with tf.Session(c.start("worker").target) as session:
            assert session.run(tf.constant(1)) == 1
        incarnations.add(c["worker", 0].incarnation)
    assert len(incarnations) == 4


def test_stop_works_twice_from_many_threads_and_for_good(cluster):
    c = cluster(worker=1)
    server = c["worker", 0]
    threads = [threading.Thread(target=server.stop) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    server.stop()
    with pytest.raises(tf.errors.FailedPreconditionError, match="make a new one"):
        server.start()
    server.join()


def test_join_returns_when_another_thread_stops(cluster):
    server = cluster(worker=1)["worker", 0]
    joined = threading.Thread(target=server.join)
    joined.start()
    joined.join(0.02)
    assert joined.is_alive()
    server.stop()
    joined.join(20)
    assert not joined.is_alive()


def test_a_port_in_use(cluster):
    c = cluster(worker=1)
    threads = threading.active_count()
    address = c.spec.task_address("worker", 0)
    with pytest.raises(
        tf.errors.UnavailableError, match=f"Cannot listen at {address}: the port is"
    ):
        tf.train.Server(c.spec)
    assert threading.active_count() == threads
    with tf.Session(c.target()) as session:
        assert session.run(tf.constant(1)) == 1


def test_stop_ends_steps_that_wait(cluster, either):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32, shared_name="q")
        got = queue.dequeue()
    session = tf.Session(c.target())
    seen = []

    def wait():
        try:
            session.run(got)
        except tf.errors.OpError as error:
            seen.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert eventually(c["ps", 0].task.worker.running)
    c["ps", 0].stop()
    waiting.join(20)
    assert isinstance(seen[0], (tf.errors.UnavailableError, tf.errors.CancelledError))
    assert "/job:ps/replica:0/task:0" in str(seen[0])
    session.close()


# -- shutdown from afar -------------------------------------------------------------------------


def test_shutdown_of_the_cluster(cluster):
    c = cluster(ps=1, worker=2)
    joins = [threading.Thread(target=s.join) for s in c.servers.values()]
    for j in joins:
        j.start()
    stopped, missing = admin.shutdown(c.target("worker", 1))
    assert sorted(stopped) == sorted(c["ps", 0].task.master.addresses)
    assert missing == []
    for j in joins:
        j.join(20)
        assert not j.is_alive()
    with pytest.raises(tf.errors.UnavailableError):
        admin.shutdown(c.target("worker", 1))


def test_shutdown_of_one_task_and_of_the_rest(cluster):
    c = cluster(ps=1, worker=1)
    address = c.spec.task_address("ps", 0)
    result = CliRunner().invoke(main, ["shutdown", address, "--one"])
    assert (result.exit_code, result.output) == (0, "stopped /job:ps/replica:0/task:0\n")
    c["ps", 0].join()
    result = CliRunner().invoke(main, ["shutdown", c.spec.task_address("worker", 0)])
    assert result.exit_code == 1
    assert "stopped /job:worker/replica:0/task:0\n" in result.output
    assert "no answer from /job:ps/replica:0/task:0" in result.output
    c["worker", 0].join()
    result = CliRunner().invoke(main, ["shutdown", address])
    assert result.exit_code == 1
    assert f"{address} does not answer" in result.output


@pytest.mark.process
@pytest.mark.parametrize("how", ["SIGTERM", "shutdown", "end of the program"])
def test_a_server_process_ends(how):
    join = "pass" if how == "end of the program" else "server.join()"
    program = f"""
        import signal, threading, headrace as tf
        server = tf.train.Server.create_local_server()
        def tell():
            while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and "{join}" != "pass":
                threading.Event().wait(0.001)
            print(server.target, flush=True)
        teller = threading.Thread(target=tell)
        teller.start()
        {join}
        teller.join()
        print("joined", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    target = process.stdout.readline().strip()
    if how == "SIGTERM":
        os.kill(process.pid, signal.SIGTERM)
    elif how == "shutdown":
        admin.shutdown(target)
    with process:
        assert (process.stdout.read(), process.stderr.read()) == ("joined\n", "")
    assert process.returncode == 0


def test_servers_stop_at_the_end_of_a_python_that_starts_no_threads(cluster, monkeypatch):
    c = cluster(ps=1, worker=1)
    with tf.Session(c.target(), graph=tf.Graph()) as session, session.graph.as_default():
        session.run(tf.constant(1))

    def start(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    server_module._stop_at_exit()
    assert not any(s._started for s in c.servers.values())


# -- config -------------------------------------------------------------------------------------


def test_the_config_of_a_server_is_the_default_of_its_sessions(cluster, either):
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 3})
    c = cluster(config=config, worker=1)
    with tf.device("/gpu:9"):
        y = tf.constant(np.float32(1.0)) + 1.0
    with tf.Session(c.target()) as session:
        assert session.run(y) == 2.0
        assert len(session.list_devices()) == 3
    with tf.Session(c.target(), config=tf.ConfigProto(log_device_placement=True)) as session:
        assert session.run(y) == 2.0


def test_a_cluster_def_without_tasks():
    with pytest.raises(ValueError, match="job_name"):
        unstarted(ClusterDef())


def test_a_session_of_a_server_that_was_stopped_does_not_wait():
    """A program that does not end after `join()` goes on with what it would do as a worker."""
    server = tf.train.Server.create_local_server()
    target = server.target
    with tf.Session(target) as sess:
        assert sess.run(tf.constant(2)) == 2
    server.stop()
    began = time.monotonic()
    with (
        tf.Session(target) as sess,
        pytest.raises(
            tf.errors.FailedPreconditionError, match=r"of this process at .* was stopped"
        ),
    ):
        sess.run(tf.constant(2))
    assert time.monotonic() - began < 10
    again = tf.train.Server({"local": [target.removeprefix("grpc://")]})
    with tf.Session(target) as sess:
        assert sess.run(tf.constant(2)) == 2
    again.stop()
