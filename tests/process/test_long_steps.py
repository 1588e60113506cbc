"""A server in the middle of a loop of minutes: others are served, and it ends when told to."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from task_processes import PATIENCE, Tasks, eventually

import headrace as tf
from headrace.distributed.services import admin

pytestmark = [pytest.mark.process, pytest.mark.slow]

_LOOPER = """
    import sys
    import headrace as tf
    n = tf.placeholder(tf.int64, [])
    v = tf.get_variable("looped", initializer=1.0, use_resource=True)
    w = tf.get_variable("read", initializer=1.0, use_resource=True)
    _, end = tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, x * 0.5 + w), [tf.constant(0, tf.int64), 1.0]
    )
    update = v.assign(end)
    session = tf.Session(sys.argv[1])
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        session.run(update, {n: 3})
    print("ready", flush=True)
    try:
        session.run(update, {n: 10**12}, options=tf.RunOptions(timeout_in_ms=int(sys.argv[2])))
    except tf.errors.OpError as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture
def tasks():
    made = Tasks({"worker": 1})
    yield made
    made.kill_all()


def looper(tasks, timeout_ms=10**6):
    """A client whose loop runs now."""
    command = [sys.executable, "-c", textwrap.dedent(_LOOPER)]
    process = subprocess.Popen(
        [*command, tasks.target("worker"), str(timeout_ms)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    eventually(lambda: steps(tasks))
    return process


def steps(tasks):
    (status,) = admin.status(tasks.addresses["worker"][0])
    return list(status.steps)


def within(seconds, call, *args, **kwargs):
    began = time.monotonic()
    result = call(*args, **kwargs)
    took = time.monotonic() - began
    assert took < seconds, f"{took:.2f} s"
    return result


def other_client(tasks):
    """A session of another client, its steps run before."""
    graph = tf.Graph()
    with graph.as_default():
        one = tf.constant(1.0) + 1.0
        mine = tf.get_variable("mine", initializer=0.0, use_resource=True)
        looped = tf.get_variable("looped", [], use_resource=True)
        read = tf.get_variable("read", [], use_resource=True)
        fetches = [one, mine.assign_add(1.0), looped.read_value(), read.assign_add(1.0)]
    session = tf.Session(tasks.target("worker"), graph=graph)
    with graph.as_default():
        session.run(mine.initializer)
    return session, fetches


def test_others_are_served_and_control_calls_answer(tasks):
    process = looper(tasks)
    session, fetches = other_client(tasks)
    limit = tf.RunOptions(timeout_in_ms=8000)
    for _ in range(3):
        values = [session.run(f, options=limit) for f in fetches]
    assert values[0] == 2.0
    for fetch in fetches:
        within(1.0, session.run, fetch, options=limit)
    assert session.run(fetches[2]) == 1.875  # what the loop has not yet changed
    assert within(1.0, steps, tasks)
    within(1.0, session.close)
    within(1.0, tf.Session.reset, tasks.target("worker"))
    assert process.communicate(timeout=PATIENCE)[0] == "CancelledError\n"
    eventually(lambda: not steps(tasks), 1.0)


def test_a_busy_server_ends_when_it_is_told_to(tasks):
    process = looper(tasks)
    ends = within(5.0, tasks.terminate_all)
    assert ends == {("worker", 0): (0, "joined\n")}
    assert process.communicate(timeout=PATIENCE)[0] in ("UnavailableError\n", "CancelledError\n")


def test_a_step_ends_at_its_deadline_and_when_its_client_dies(tasks):
    process = looper(tasks, 1500)
    began = time.monotonic()
    assert process.stdout.readline() == "DeadlineExceededError\n"
    assert time.monotonic() - began < 2.0
    process.communicate()
    process = looper(tasks)
    process.kill()
    process.communicate()
    eventually(lambda: not steps(tasks), 1.5)
    (status,) = admin.status(tasks.addresses["worker"][0])
    assert not status.steps
    assert within(5.0, tasks.terminate_all) == {("worker", 0): (0, "joined\n")}


def test_sigterm_reaches_a_server_that_joins_while_a_step_runs(tasks):
    process = looper(tasks)
    tasks.signal("worker", 0, signal.SIGTERM)
    server = tasks.processes.pop(("worker", 0))
    assert within(5.0, server.communicate, timeout=PATIENCE)[0] == "joined\n"
    process.kill()
    process.communicate()
