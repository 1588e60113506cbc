"""Looking into a cluster: status, timelines over all tasks, plans as text, logs of steps."""

import contextlib
import json
import logging
import re
import socket
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner
from server_clusters import Cluster, eventually

import headrace as tf
from headrace.cli import main
from headrace.distributed.master.traces import clock_offset
from headrace.distributed.services import admin
from headrace.distributed.services.control import Control
from headrace.distributed.steps.results import PartResult
from headrace.session.timeline import Timeline

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def model():
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable(
            "w", shape=[256, 4], initializer=tf.ones_initializer(), use_resource=True
        )
        read = w.read_value()
    with tf.device("/job:worker/task:0"):
        y = tf.reduce_sum(read * 2.0)
    return w, y


# -- status -------------------------------------------------------------------------------------


def test_status_of_a_cluster_with_tasks_that_stand_still(monkeypatch):
    """They take connections, as stopped processes do, and say nothing. All are asked at once."""
    made = Cluster(ps=1, worker=3)
    made.start("ps")
    asked, call = [], Control.call

    def noted(control, name, request, timeout, *more):
        asked.append((time.monotonic(), timeout))
        return call(control, name, request, timeout, *more)

    with contextlib.ExitStack() as stack:
        stack.callback(made.stop)
        for i in range(3):
            host, port = made.spec.task_address("worker", i).split(":")
            stack.enter_context(socket.create_server((host, int(port))))
        monkeypatch.setattr(Control, "call", noted)
        found = admin.status(made.target("ps"))
    assert [bool(task.problem) for task in found] == [False, True, True, True]
    (begun, _), *others = asked
    assert len(others) == 3
    # Nobody waits for the answer of another one, and for all of them less than a second.
    assert all(when - begun < seconds < 0.8 for when, seconds in others)


def test_status_of_all_tasks(cluster, either):
    c = cluster(ps=1, worker=1)
    _, y = model()
    with tf.device("/job:ps/task:0"), tf.container("box"):
        tf.get_variable("n", initializer=np.int64(3), use_resource=True)
        queue = tf.FIFOQueue(5, tf.int32, shared_name="q")
        got = queue.dequeue()
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y) == 2048.0
        error = []
        waiting = threading.Thread(target=lambda: _quietly(session, got, error))
        waiting.start()
        assert eventually(c["ps", 0].task.worker.running)
        ps, worker = admin.status(c.target("ps"))
        assert (ps.task, worker.task) == (PS, WORKER)
        assert ps.address == c.spec.task_address("ps", 0)
        assert ps.incarnation == c["ps", 0].incarnation
        assert not ps.problem
        assert ps.memory_bytes > 1 << 20
        assert ps.steps_run >= 2
        assert ps.uptime_seconds > 0
        variables = {(v.container, v.name): v for v in ps.variables if v.dtype}
        assert set(variables) == {("", "w"), ("box", "n")}
        assert variables["", "w"].bytes == 4096
        assert list(variables["", "w"].dims) == [256, 4]
        assert variables["", "w"].dtype == "float32"
        assert variables["box", "n"].bytes == 8
        assert [v.name for v in ps.variables if not v.dtype] == ["q"]
        assert not ps.sessions
        (found,) = worker.sessions
        assert found.steps == 3
        assert found.plans == 3
        assert found.client == "this process" or found.client.startswith("client:")
        (step,) = worker.steps
        assert list(step.waiting_for) == [PS]
        assert step.seconds > 0
        links = {link.peer: link for link in ps.links}
        assert links[WORKER].bytes_out > 4096 or links[WORKER].transport == "inproc"
        assert links[WORKER].frames_in >= 4
        address = c.spec.task_address("worker", 0)
        result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["status", address])
        assert result.exit_code == 0, result.output
        for text in ("4.0 KiB", "box/n", f"{step.step:016x}", f"{found.session:016x}"):
            assert text in result.output
    waiting.join(20)
    assert isinstance(error[0], tf.errors.CancelledError)
    assert eventually(lambda: not c.leftovers())
    (worker,) = admin.status(c.target(), cluster=False)
    assert not worker.sessions
    assert not worker.steps


def test_who_waits_for_a_group_of_all_reduce(cluster):
    c = cluster(worker=2)

    def member(index):
        with (
            tf.Graph().as_default(),
            tf.device(f"/job:worker/task:{index}"),
            tf.Session(c.target("worker", index)) as session,
        ):
            totals.append(session.run(tf.collective.all_reduce(tf.ones([]), 2, 5, 1)))

    totals = []
    first = threading.Thread(target=member, args=(0,))
    first.start()
    address = c.spec.task_address("worker", 0)
    assert eventually(lambda: admin.status(address, cluster=False)[0].awaited_groups)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["status", address])
    assert f"group 5: 1 of 2 members are here: {WORKER}" in result.output
    member(1)
    first.join(20)
    assert totals == [2.0, 2.0]
    assert not [list(t.awaited_groups) for t in admin.status(address) if t.awaited_groups]


def test_a_stuck_step_is_shown_with_where_it_waits(cluster, either):
    """All tasks answer; one waits for an element, the others for what it sends."""
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(5, tf.float32, [[]], shared_name="q")
        got = queue.dequeue(name="take")
    with tf.device("/job:worker/task:0"):
        doubled = got * 2.0
    with tf.Session(c.target()) as session:
        session.run(queue.size())
        assert all(not t.parts for t in admin.status(c.target(), parts=True))
        found = []
        waiting = threading.Thread(target=lambda: found.append(session.run(doubled)))
        waiting.start()

        def positions():
            tasks = admin.status(c.target(), parts=True, stacks=True)
            return tasks if all(t.parts for t in tasks) else None

        assert eventually(positions)
        ps, worker = positions()
        (there,), (here,) = ps.parts, worker.parts
        assert there.step == here.step
        assert list(there.running) == ["take (QueueDequeueV2)"]
        assert not there.awaited
        (awaited,) = here.awaited
        assert (awaited.source, list(awaited.names)) == (PS, ["take:0"])
        assert not here.running
        assert there.seconds > 0
        if either != "inproc":
            assert any("dequeue" in t.stack for t in ps.threads)
        address = c.spec.task_address("worker", 0)
        result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["status", "--steps", address])
        assert result.exit_code == 0, result.output
        for text in (f"{here.step:016x}", "take (QueueDequeueV2)", "take:0 from /job:ps/task:0"):
            assert text in result.output
        result = CliRunner().invoke(main, ["status", "--one", "--stacks", address])
        assert result.exit_code == 0, result.output
        assert "MainThread" in result.output
        rules = [line for line in result.output.splitlines() if "─" in line]
        assert rules
        assert max(map(len, rules)) == 80  # in a pipe, too
        assert "test_status_and_traces.py" in result.output
        session.run(queue.enqueue(21.0))
        waiting.join(20)
        assert found == [42.0]
        result = CliRunner().invoke(main, ["status", "--steps", address])
        assert "No step runs." in result.output


def test_what_waits_for_order_only_and_how_large_tables_are(cluster):
    c = cluster(ps=1, worker=1)
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(5, tf.float32, shared_name="q")
        table = tf.EmbeddingTable(64, initializer=tf.ones_initializer(), name="users")
        got = queue.dequeue(name="take")
    with tf.device("/job:worker/task:0"), tf.control_dependencies([got]):
        after = tf.random_uniform([])
    rows = table.lookup(tf.range(100, dtype=tf.int64))
    with tf.Session(c.target()) as session:
        session.run(rows)
        ps, _ = admin.status(c.target())
        (users,) = [v for v in ps.variables if v.name == "users"]
        assert users.bytes >= 100 * 64 * 4
        waiting = threading.Thread(target=session.run, args=(after,))
        waiting.start()
        assert eventually(lambda: all(t.parts for t in admin.status(c.target(), parts=True)))
        address = c.spec.task_address("worker", 0)
        result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["status", "--steps", address])
        assert "a signal from /job:ps/task:0" in result.output
        session.run(queue.enqueue(21.0))
        waiting.join(20)


def _quietly(session, fetch, errors):
    try:
        session.run(fetch)
    except tf.errors.OpError as error:
        errors.append(error)


def test_status_names_tasks_that_do_not_answer(cluster):
    c = cluster(start=False, ps=1, worker=1)
    c.start("worker")
    ps, worker = admin.status(c.target())
    assert (ps.task, ps.address) == (PS, c.spec.task_address("ps", 0))
    assert "does not answer" in ps.problem
    assert worker.task == WORKER
    result = CliRunner().invoke(main, ["status", c.spec.task_address("worker", 0)])
    assert result.exit_code == 1
    assert "does not answer" in result.output


# -- timelines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [tf.RunOptions.SOFTWARE_TRACE, tf.RunOptions.FULL_TRACE])
def test_one_timeline_over_all_tasks(cluster, either, level):
    c = cluster(ps=1, worker=1)
    w, y = model()
    metadata = tf.RunMetadata()
    with tf.Session(c.target()) as session:
        session.run(w.initializer)
        session.run(y)
        options = tf.RunOptions(trace_level=level)
        assert session.run(y, options=options, run_metadata=metadata) == 2048.0
    devices = [d.device for d in metadata.step_stats.dev_stats]
    assert sorted(set(devices)) == [f"{PS}/device:CPU:0", f"{WORKER}/device:CPU:0"]
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(processes.values()) == ["ps/0", "worker/0"]
    slices = [e for e in events if e["ph"] == "X"]
    (send,) = [e for e in slices if e["args"]["op"] == "Send"]
    (recv,) = [e for e in slices if e["args"]["op"] == "Recv"]
    assert (processes[send["pid"]], processes[recv["pid"]]) == ("ps/0", "worker/0")
    assert send["args"] == recv["args"] | {"op": "Send"}
    assert send["args"]["bytes"] == 4096
    assert (send["args"]["source"], send["args"]["destination"]) == ("ps/0", "worker/0")
    assert re.fullmatch(r"#\d+ \S*:0", send["name"])
    assert any(e["cat"] == "op" and processes[e["pid"]] == "worker/0" for e in slices)
    # Both clocks are one here, so the order of things shows as it was, but for rounding.
    assert send["ts"] <= recv["ts"] + recv["dur"] + 2000
    arrows = [e for e in events if e["ph"] in "sf" and e["cat"] == "transfer"]
    begin, end = ([e for e in arrows if e["ph"] == p] for p in "sf")
    assert [e["id"] for e in begin] == [e["id"] for e in end] == [1]
    assert (begin[0]["pid"], end[0]["pid"]) == (send["pid"], recv["pid"])


def test_slices_of_a_line_do_not_overlap():
    metadata = tf.RunMetadata()
    stats = metadata.step_stats.dev_stats.add(device="/job:a/replica:0/task:0/device:CPU:0")
    for i, (start, took) in enumerate([(0, 10), (5, 3), (8, 4), (10, 1), (12, 1)]):
        stats.node_stats.add(
            node_name=f"n{i}",
            all_start_micros=start,
            all_end_rel_micros=took,
            timeline_label=f"n{i} = Op()",
        )
    events = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
    lines = {e["args"]["name"]: e["tid"] for e in events if e["ph"] == "X"}
    assert lines == {"n0": 1, "n1": 2, "n2": 2, "n3": 1, "n4": 1}


@pytest.mark.parametrize("ahead", [-3.0, 0.0, 1000.0])
def test_offsets_of_clocks(ahead):
    """Asked at 10.0, the message took 0.1 s each way, the part 0.5 s."""
    result = PartResult(began=10.1 + ahead, ended=10.6 + ahead, arrived=10.7)
    assert clock_offset(10.0, result) == pytest.approx(ahead)


# -- plans and logs -----------------------------------------------------------------------------


def test_a_plan_as_text(cluster, either):
    c = cluster(ps=1, worker=1)
    w, y = model()
    with tf.Session(c.target()) as session:
        text = session.describe(y)
        parts = session.describe([w.initializer]).splitlines()[5:]  # behind the five stages
        assert parts[0] == f"part {PS}"
        session.run(w.initializer)
    worker = text.partition(f"part {WORKER}")[2]
    assert f"part {PS}\n" in text
    assert re.search(rf"send #\d+ {WORKER}: \S+ float32\[256, 4\] 4096 bytes", text)
    assert re.search(rf"recv #\d+ {PS}: \S+ float32\[256, 4\] 4096 bytes", worker)
    assert re.search(r"\(Sum|= Sum\(", worker)
    assert "fetch 0: " in worker


def test_a_plan_of_one_process_as_text():
    x = tf.placeholder(tf.float32, [2])
    y = tf.tanh(x) * 2.0
    session = tf.Session()
    assert "Tanh" in session.describe(y, [x])
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.describe(y, [x])


def test_placement_is_logged(cluster, caplog):
    c = cluster(ps=1, worker=1)
    w, y = model()
    config = tf.ConfigProto(log_device_placement=True)
    with (
        caplog.at_level(logging.WARNING, "headrace.placement"),
        tf.Session(c.target(), config=config) as session,
    ):
        session.run(w.initializer)
        session.run(y)
    text = "\n".join(caplog.messages)
    assert re.search(rf"Sum: \(Sum\): {WORKER}/device:CPU:0", text)
    assert re.search(rf"w: \(VarHandleOp\): {PS}/device:CPU:0", text)


def test_logs_carry_the_number_of_the_step(cluster, caplog):
    c = cluster(ps=1, worker=1)
    w, y = model()
    with caplog.at_level(logging.DEBUG, "headrace.distributed"), tf.Session(c.target()) as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(y)
        session.run(w.initializer)
    steps = [m for m in caplog.messages if m.startswith("Step ")]
    first = re.fullmatch(rf"Step ([0-9a-f]{{16}}) begins at {PS}, {WORKER}", steps[0])
    number = first[1]
    failed = [m for m in steps if m.startswith(f"Step {number} failed")]
    assert len(failed) == 1
    assert "FailedPreconditionError" in failed[0]
    assert "uninitialized" in failed[0]
    ended = [m for m in steps if re.fullmatch(r"Step [0-9a-f]{16} ended after .* ms", m)]
    assert len(ended) == 1
    assert number not in ended[0]
