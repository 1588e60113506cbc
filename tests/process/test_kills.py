"""Processes that are killed, frozen and told to stop in the middle of training."""

import os
import signal
import socket
import sys
import time

import pytest
from task_processes import PATIENCE, Tasks, Training, eventually

from headrace.distributed.services import admin
from headrace.errors import AbortedError, UnavailableError

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc and /dev/shm"),
    pytest.mark.timeout(180),
]

#: A dead task is noticed within so many seconds.
NOTICED = 5.0
PS0, PS1 = "/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1"


@pytest.fixture(scope="module")
def tasks():
    """Two servers and two workers, for all tests; at the end nothing of them is left."""
    shared = set(os.listdir("/dev/shm"))
    made = Tasks({"ps": 2, "worker": 2})
    try:
        yield made
        pids = [p.pid for p in made.processes.values()]
        began = time.monotonic()
        ends = made.terminate_all()
        assert all(end == (0, "joined\n") for end in ends.values()), ends
        assert time.monotonic() - began < PATIENCE
    finally:
        made.kill_all()
    assert not [pid for pid in pids if children(pid)]
    for address in made.addresses["ps"] + made.addresses["worker"]:
        host, port = address.split(":")
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((host, int(port)))
    left = {n for n in set(os.listdir("/dev/shm")) - shared if "headrace" in n}
    assert not left


def children(parent):
    """Processes that call this their parent, even after its end."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(pid))
        except OSError:
            continue
    return found


def report(record_property, what, seconds):
    record_property(what, seconds)
    print(f"{what}: noticed after {seconds:.2f} s")
    assert seconds < NOTICED


def until_aborted(training):
    """The errors of an old session until it knows that its task was started again."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            training.session.run(training.step)
        except AbortedError as error:
            return error
        except UnavailableError:
            continue
    raise AssertionError("the session does not notice the restart")


def close(training):
    training.session.close()


def test_a_server_is_killed_and_started_again(tasks, record_property):
    both, one = Training(tasks, 0, [0, 1]).open().go(), Training(tasks, 1, [1]).open().go()
    both.goes_on()
    began = time.monotonic()
    tasks.kill("ps", 0)
    error, seconds = both.failure(began)
    assert isinstance(error, UnavailableError)
    assert error.message.startswith(f"Task {PS0}, which step ")
    report(record_property, "kill -9 of a server", seconds)
    one.goes_on()
    with pytest.raises(UnavailableError, match=PS0):
        both.session.run(both.step)
    tasks.start(("ps", 0))
    assert f"Task {PS0} was started again" in until_aborted(both).message
    close(both)
    both.open()
    assert both.session.run(both.values) == [1.0, 1.0]
    one.goes_on()
    one.pause()
    assert one.session.run(one.values) == [one.steps]
    close(one)
    close(both)


def test_a_server_is_frozen_for_a_while(tasks, record_property):
    both, one = Training(tasks, 0, [0, 1]).open().go(), Training(tasks, 1, [1]).open().go()
    both.goes_on()
    began = time.monotonic()
    tasks.signal("ps", 0, signal.SIGSTOP)
    try:
        error, seconds = both.failure(began)
    finally:
        tasks.signal("ps", 0, signal.SIGCONT)
    assert isinstance(error, UnavailableError)
    assert f"Task {PS0}" in error.message
    report(record_property, "SIGSTOP of a server", seconds)
    one.goes_on()

    def works():
        try:
            both.session.run(both.step)
        except UnavailableError:
            return False
        return True

    # It has lost nothing: the same session goes on.
    eventually(works)
    values = both.session.run(both.values)
    assert all(both.steps + 1 <= v <= both.steps + 2 for v in values), (values, both.steps)
    one.pause()
    close(one)
    close(both)


def test_the_master_of_a_client_is_killed(tasks, record_property):
    both, one = Training(tasks, 0, [0, 1]).open().go(), Training(tasks, 1, [1]).open().go()
    both.goes_on()
    began = time.monotonic()
    tasks.kill("worker", 0)
    error, seconds = both.failure(began)
    assert isinstance(error, UnavailableError)
    report(record_property, "kill -9 of the master", seconds)
    one.goes_on()
    with pytest.raises((AbortedError, UnavailableError)):
        both.session.run(both.step)
    close(both)
    tasks.start(("worker", 0))
    both.open(init=False)
    # The servers have kept what was acknowledged.
    values = both.session.run(both.values)
    assert all(both.steps <= v <= both.steps + 1 for v in values), (values, both.steps)
    one.goes_on()
    one.pause()
    close(one)
    close(both)


_CLIENT = """
import sys, threading
import headrace as tf
with tf.device("/job:ps/task:0"):
    waiting = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="q").dequeue()
    size = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="q").size()
session = tf.Session(sys.argv[1])
session.run(size)
threading.Thread(target=session.run, args=(waiting,), daemon=True).start()
print("runs", flush=True)
threading.Event().wait()
"""


def test_a_client_dies_while_its_step_waits(tasks, record_property):
    address = tasks.addresses["worker"][0]

    def of_the_client():
        reports = admin.status(address)
        return sum(len(t.steps) for t in reports)

    client = tasks.run((), _CLIENT, tasks.target("worker"))
    try:
        assert client.stdout.readline() == "runs\n"
        eventually(lambda: of_the_client() >= 1)
        began = time.monotonic()
        client.kill()
        eventually(lambda: of_the_client() == 0)
        report(record_property, "death of a client", time.monotonic() - began)
    finally:
        client.kill()
        client.communicate()


def test_a_server_is_told_to_stop(tasks):
    """A task that is told to stop ends the steps that need it, with its name."""
    both = Training(tasks, 0, [0, 1]).open().go()
    both.goes_on()
    tasks.signal("ps", 1, signal.SIGTERM)
    error, _ = both.failure(time.monotonic())
    assert isinstance(error, UnavailableError)
    assert PS1 in error.message
    process = tasks.processes.pop(("ps", 1))
    words, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, words) == (0, "joined\n")
    tasks.start(("ps", 1))
    close(both)
    both.open()
    close(both)
