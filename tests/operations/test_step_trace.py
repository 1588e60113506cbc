"""Traces of one step over several tasks, for Perfetto and for TensorBoard's profile page."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading

import jax.profiler
import pytest

import headrace as tf
from headrace.distributed.services import admin
from headrace.errors import DeadlineExceededError, FailedPreconditionError
from headrace.graph.proto import StepStats
from headrace.operations.profile_page import write_profile, xspace
from headrace.operations.traces import next_step
from headrace.session.step_trace import chrome_trace, rows, task_slices, transfers

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


@pytest.fixture
def stats():
    """A step: the server sends weights, the worker works, and sends a gradient."""
    made = StepStats()

    def add(task, *nodes):
        device = made.dev_stats.add(device=f"{task}/device:CPU:0")
        for label, start, took in nodes:
            name = label.partition(" = ")[0]
            device.node_stats.add(
                node_name=name,
                timeline_label=label,
                all_start_micros=1_000_000 + start,
                all_end_rel_micros=took,
            )

    add(
        PS,
        (f"#0 w:0 = Send(4000 bytes to {WORKER})", 10, 40),
        (f"#1 g:0 = Recv(4000 bytes from {WORKER})", 0, 400),
        ("update = Region()", 410, 30),
    )
    add(
        WORKER,
        (f"#0 w:0 = Recv(4000 bytes from {PS})", 5, 60),
        ("loss = Region()", 70, 200),
        ("other = Region()", 80, 100),
        (f"#1 g:0 = Send(4000 bytes to {PS})", 280, 90),
    )
    return made


def test_each_task_has_rows_for_devices_and_links(stats):
    found = [(task, name, [s.label for s in line]) for task, name, line in rows(task_slices(stats))]
    assert found == [
        ("ps/0", "CPU:0", ["update"]),
        ("ps/0", "from worker/0", ["#1 g:0"]),
        ("ps/0", "to worker/0", ["#0 w:0"]),
        ("worker/0", "CPU:0", ["loss"]),
        ("worker/0", "CPU:0 (2)", ["other"]),
        ("worker/0", "from ps/0", ["#0 w:0"]),
        ("worker/0", "to ps/0", ["#1 g:0"]),
    ]


def test_the_file_for_perfetto(stats):
    trace = json.loads(chrome_trace(task_slices(stats), {PS: 0.25, WORKER: 0.0}))
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names.values()) == ["ps/0", "worker/0"]
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 7
    (update,) = (e for e in slices if e["name"] == "update")
    assert (update["ts"], update["dur"]) == (410, 30)
    assert names[update["pid"]] == "ps/0"
    assert lines[update["pid"], update["tid"]] == "CPU:0"
    assert trace["otherData"] == {"began": 1.0, "clocks": {"ps/0": 0.25, "worker/0": 0.0}}


def test_arrows_go_from_sends_to_receives_within_their_slices(stats):
    events = json.loads(chrome_trace(task_slices(stats)))["traceEvents"]
    for number in (1, 2):
        begin, end = (e for e in events if e.get("id") == number)
        assert (begin["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        for arrow, op in ((begin, "Send"), (end, "Recv")):
            assert any(
                e["ph"] == "X"
                and (e["pid"], e["tid"], e["args"]["op"]) == (arrow["pid"], arrow["tid"], op)
                and e["ts"] <= arrow["ts"] < e["ts"] + e["dur"]
                for e in events
            )


def test_the_profile_reads_back_as_xla_reads_it(stats, tmp_path):
    path = write_profile(str(tmp_path), "run", task_slices(stats))
    assert path == str(tmp_path / "plugins" / "profile" / "run" / "headrace.xplane.pb")
    read = jax.profiler.ProfileData.from_file(path)
    found = {
        (plane.name, line.name): [(e.name, e.start_ns, e.duration_ns) for e in line.events]
        for plane in read.planes
        for line in plane.lines
    }
    assert found["/device:CUSTOM:ps/0", "CPU:0"] == [("update", 410e3, 30e3)]
    assert found["/device:CUSTOM:worker/0", "CPU:0 (2)"] == [("other", 80e3, 100e3)]
    assert len(found) == 7


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("xprof") is None, reason="xprof is not installed")
def test_the_profile_page_shows_it(stats, tmp_path):
    """The plugin itself makes of the file what its page shows. CONTRIBUTING.md says how."""
    path = write_profile(str(tmp_path), "run", task_slices(stats))
    program = (
        "import sys\n"
        "from xprof.convert import raw_to_tool_data as made\n"
        "options = {'tqx': '', 'trace_viewer_options': {}, 'use_saved_result': False}\n"
        "data, _ = made.xspace_to_tool_data([sys.argv[1]], 'trace_viewer@', options)\n"
        "sys.stdout.buffer.write(data if isinstance(data, bytes) else data.encode())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, check=True, timeout=100
    )
    events = json.loads(ran.stdout)["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"headrace /device:CUSTOM:ps/0", "headrace /device:CUSTOM:worker/0"}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 7
    assert sum(bool(e.get("flow_in")) for e in slices) == 2
    assert sum(bool(e.get("flow_out")) for e in slices) == 2


def test_a_step_without_transfers_has_no_arrows():
    assert transfers([]) == []
    assert xspace([]) == b""
    assert json.loads(chrome_trace([]))["traceEvents"] == []


@pytest.fixture
def training():
    """A server and a worker, of which a session runs steps until the end of the test."""
    workers, servers = tf.test.create_local_cluster(1, 1)
    over = threading.Event()
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            weights = tf.Variable(tf.zeros([8, 8]), use_resource=True)
        with tf.device("/job:worker/task:0"):
            change = tf.matmul(weights, tf.ones([8, 8])) + 1.0
        step = weights.assign_add(change).op
        with tf.Session(workers[0].target) as sess:
            sess.run(weights.initializer)

            def train():
                while not over.is_set():
                    sess.run(step)

            thread = threading.Thread(target=train)
            thread.start()
            yield servers[0], workers[0]
            over.set()
            thread.join()
    for server in (*workers, *servers):
        server.stop()


def test_the_next_step_of_a_training_is_traced(training):
    server, _ = training
    # The server has no sessions: the worker, that has one, is asked.
    traced = next_step(server.target, 20.0)
    assert set(traced.clocks) == {PS, WORKER}
    slices = task_slices(traced.stats)
    assert {s.task for s in slices} == {"ps/0", "worker/0"}
    assert len(transfers(slices)) == 2
    assert all(send.bytes == 256 for send, _ in transfers(slices))


def test_nothing_is_traced_where_nothing_runs():
    server = tf.train.Server.create_local_server()
    try:
        with pytest.raises(FailedPreconditionError, match=r"No task has a session.*localhost"):
            next_step(server.address, 1.0)
        with (
            tf.Session(server.target),
            pytest.raises(DeadlineExceededError, match="No step that 2 tasks run has ended"),
        ):
            admin.trace(server.address, 0.05, least_tasks=2)
    finally:
        server.stop()
