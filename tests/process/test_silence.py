"""Processes that live but say nothing: suspended clients, interpreters that are held."""

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from task_processes import PATIENCE, Tasks

import headrace as tf
from headrace.distributed.services import admin

pytestmark = [pytest.mark.process, pytest.mark.slow]

#: Longer than any task may be silent without being asked.
_SILENT = 6.0

_CLIENT = """
    import sys
    import headrace as tf
    v = tf.get_variable("v", initializer=0.0, use_resource=True)
    own = tf.random_uniform([], seed=7)  # the state of a session, not of its servers
    session = tf.Session(sys.argv[1])
    session.run(v.initializer)
    both = [v.assign_add(1.0), own]
    for _ in sys.stdin:
        print(*map(float, session.run(both)), flush=True)
"""

_HELD = """
    import ctypes, json, sys
    import headrace as tf
    server = tf.train.Server(json.loads(sys.argv[1]), job_name="ps", task_index=0)
    print("ready", flush=True)
    for line in sys.stdin:
        print("holding", flush=True)
        ctypes.PyDLL(None).usleep(int(float(line) * 1e6))  # keeps the interpreter for itself
        print("released", flush=True)
"""


def client(program, *args):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(process, line="\n"):
    process.stdin.write(line)
    process.stdin.flush()


def test_a_suspended_client_goes_on_with_its_session():
    tasks = Tasks({"worker": 1})
    process = client(_CLIENT, tasks.target("worker"))
    try:
        tell(process)
        count, first = process.stdout.readline().split()
        assert count == "1.0"
        process.send_signal(signal.SIGSTOP)
        # Nothing is there to be waited for: it is silence that is tested.
        assert not threading.Event().wait(_SILENT)
        process.send_signal(signal.SIGCONT)
        tell(process)
        count, second = process.stdout.readline().split()
        assert (count, second != first) == ("2.0", True)
        (status,) = admin.status(tasks.addresses["worker"][0])
        assert [s.steps for s in status.sessions] == [3]
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        (status,) = admin.status(tasks.addresses["worker"][0])
        assert not status.sessions  # a client that ends says so
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        tasks.kill_all()


def test_a_stopped_server_is_noticed_within_three_seconds(record_property):
    tasks = Tasks({"ps": 1, "worker": 1})
    try:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=0.0, use_resource=True)
            with tf.Session(tasks.target("worker")) as session:
                session.run(v.initializer)
                # So long that heartbeats were heard from it, some of them late.
                for _ in range(8):
                    session.run(v.assign_add(1.0))
                    assert not threading.Event().wait(0.5)
                tasks.processes["ps", 0].send_signal(signal.SIGSTOP)
                began = time.monotonic()
                with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                    session.run(v.assign_add(1.0))
                took = time.monotonic() - began
        record_property("SIGSTOP of a server", took)
        assert took < 3.5  # ours is a busy machine
        began = time.monotonic()
        stopped, _ = admin.status(tasks.addresses["worker"][0])
        took = time.monotonic() - began
        record_property("status with a server that is stopped", took)
        assert "did not answer" in stopped.problem or "cannot be reached" in stopped.problem
        assert took < 1.2  # the same
    finally:
        tasks.kill_all()


def test_a_server_whose_interpreter_is_held_is_not_dead():
    tasks = Tasks({"ps": 1, "worker": 1})
    tasks.kill("ps")
    server = client(_HELD, json.dumps(tasks.addresses))
    try:
        assert server.stdout.readline() == "ready\n"
        graph = tf.Graph()
        with graph.as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=0.0, use_resource=True)
            more = v.assign_add(1.0)
        for target in (tasks.target("worker"), tasks.target("ps")):
            with tf.Session(target, graph=graph) as session:
                session.run(v.initializer)
                assert session.run(more) == 1.0
                tell(server, f"{_SILENT}\n")
                assert server.stdout.readline() == "holding\n"
                assert session.run(more) == 2.0  # begins while it is held
                assert server.stdout.readline() == "released\n"
                assert session.run(more) == 3.0
    finally:
        server.kill()
        server.communicate()
        tasks.kill_all()
