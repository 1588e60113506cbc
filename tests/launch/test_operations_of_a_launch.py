"""A launch whose tasks have metrics and logs as JSON, looked at by the commands of an operator."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from launches import CLUSTER, PATIENCE, Run, eventually

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

pytestmark = [pytest.mark.process, pytest.mark.slow]


def ports_in_a_row(count):
    """The first of some free ports, outside of those that the system gives to anybody."""
    for first in range(20_000, 30_000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("there are none")


def metrics(port):
    """The values at a port, by name and labels; none while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    except OSError:
        return {}
    return {
        (s.name, s.labels.get("outcome", "")): (s.labels, s.value)
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def watch_at_a_terminal(address):
    """What `status --watch` draws until Ctrl-C, and its exit status."""
    ours, theirs = pty.openpty()
    watch = subprocess.Popen(
        [sys.executable, "-m", "headrace", "status", "--watch", "--interval", "0.3", address],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"},
        start_new_session=True,
    )
    os.close(theirs)
    drawn = b""
    while b"Links" not in drawn or not re.search(rb"\d+ steps, [\d.]+/s", drawn):
        drawn += os.read(ours, 65536)
    watch.send_signal(signal.SIGINT)
    try:
        while piece := os.read(ours, 65536):
            drawn += piece
    except OSError:  # it has closed the terminal
        pass
    os.close(ours)
    return watch.wait(PATIENCE), drawn.decode()


def test_an_operator_looks_at_a_launch(tmp_path):
    first = ports_in_a_row(4)
    options = ("--ps", "1", "--workers", "2", "--log-format", "json", "--metrics-port", str(first))
    run = Run(tmp_path, CLUSTER, *options, "script.py", "1000000")
    try:
        steps = ("headrace_steps_total", "ok")
        at_worker = eventually(
            lambda: found if (found := metrics(first + 1)).get(steps, ({}, 0))[1] > 20 else None
        )
        assert at_worker[steps][0]["task"] == "worker/0"
        assert metrics(first)["headrace_parts_total", ""][0]["task"] == "ps/0"
        address = at_worker["headrace_task_info", ""][0]["address"]

        status, drawn = watch_at_a_terminal(address)
        assert status == 0, drawn
        for words in ("worker/0", "worker/1", "ps/0", "steps/s", "shm"):
            assert words in drawn
        assert "Traceback" not in drawn

        traced = command("trace", address, "--out", str(tmp_path / "step.json"))
        assert traced.returncode == 0, traced.stderr
        events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
        tasks = {e["args"]["name"] for e in events if e["name"] == "process_name"}
        assert tasks in ({"ps/0", "worker/0"}, {"ps/0", "worker/1"})
        assert sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events) > 0

        checked = command("doctor", address, "--storage", str(tmp_path))
        assert checked.returncode == 0, checked.stdout
        assert "is the same for ps/0, worker/0, worker/1, and can be written" in checked.stdout
        run.process.send_signal(signal.SIGTERM)
        _, output, errors = run.end()
    finally:
        run.kill()
    assert errors == ""
    lines = [json.loads(line) for line in output.splitlines()]
    began = {line["task"] for line in lines if line["event"] == "server_started"}
    assert began == {"ps/0", "worker/0", "worker/1"}
    printed = [line for line in lines if line["logger"] == "output"]
    assert any("loss:" in line["message"] and line["task"] == "worker/0" for line in printed)
    assert any(line["logger"] == "headrace.launch" for line in lines)


#: Three workers train in step; the last one takes long between its steps.
IN_STEP = """
import json, os, threading
import headrace as tf
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
    raise SystemExit
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    v = tf.get_variable("v", [10], initializer=tf.ones_initializer())
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), 3)
    train = optimizer.minimize(tf.reduce_sum(tf.square(v)), step)
hook = optimizer.make_session_run_hook(index == 0)
with tf.train.MonitoredTrainingSession(server.target, index == 0, hooks=[hook]) as session:
    while not session.should_stop():
        session.run(train)
        threading.Event().wait(0.1 if index == 2 else 0)
"""


def test_who_holds_up_a_training_in_step_is_named(tmp_path):
    first = ports_in_a_row(4)
    options = ("--ps", "1", "--workers", "3", "--metrics-port", str(first))
    run = Run(tmp_path, IN_STEP, *options, "script.py")
    try:
        steps = ("headrace_steps_total", "ok")
        found = eventually(
            lambda: m if (m := metrics(first + 1)).get(steps, ({}, 0))[1] > 40 else None
        )
        address = found["headrace_task_info", ""][0]["address"]
        watched = command("status", "--watch", "--interval", "1", "--count", "4", address)
        run.process.send_signal(signal.SIGTERM)
        run.end()
    finally:
        run.kill()
    last = watched.stdout.splitlines()[-5:]
    slow = [line.split()[1] for line in last if "straggler" in line]
    assert slow == ["worker/2"], watched.stdout
    assert re.search(r"straggler: \d+\.\d ms between steps, others \d", watched.stdout)
