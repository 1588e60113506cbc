"""`headrace status` and `headrace shutdown` on servers of this process."""

from __future__ import annotations

import functools
import io

import pytest
from click.testing import CliRunner
from rich.console import Console

import headrace as tf
from headrace.cli import cluster as commands
from headrace.cli import consoles, main
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.services import admin


@pytest.fixture
def server():
    made = tf.train.Server.create_local_server()
    yield made
    made.stop()


def test_status_shows_tasks_variables_and_sessions(server):
    with tf.Graph().as_default(), tf.Session(server.target) as sess:
        weights = tf.Variable(tf.zeros([256, 4]), name="weights", use_resource=True)
        sess.run(weights.initializer)
        result = CliRunner().invoke(main, ["status", server.address], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any("/job:localhost/task:0" in line and server.address in line for line in lines)
    assert any("weights" in li and "float32[256, 4]" in li and "4.0 KiB" in li for li in lines)
    assert any("session" in line and "this process" in line for line in lines)


def a_task(task, address):
    return cpb.TaskStatus(
        task=task,
        address=address,
        package_version="0.1.0",
        links=[cpb.LinkStatus(peer=task, transport="stream")],
        variables=[cpb.VariableStatus(name="a/long/path/" * 10 + "kernel", kind="variable")],
    )


@pytest.mark.parametrize("columns", [None, "40"])
def test_status_cuts_nothing(columns, monkeypatch):
    """Piped, each row is one line; in a narrow terminal it goes on in the next one."""
    names = [f"/job:{'long' * 9}/replica:0/task:{i}" for i in range(2)]
    addresses = [f"host-{i}.{'rack.' * 12}example.org:2222" for i in range(2)]
    tasks = [a_task(*pair) for pair in zip(names, addresses, strict=True)]
    monkeypatch.setattr(admin, "status", lambda address, cluster: tasks)
    monkeypatch.delenv("COLUMNS", raising=False)
    out = io.StringIO()
    if columns:
        make = functools.partial(Console, force_terminal=True, no_color=True, width=int(columns))
        monkeypatch.setattr(consoles, "Console", lambda **_: make(file=out))
    else:
        monkeypatch.setattr(consoles, "Console", functools.partial(Console, file=out))
    assert commands.show_status("127.0.0.1:1", True)
    text = out.getvalue()
    assert "…" not in text
    if not columns:
        lines = text.splitlines()
        for name, address in zip(names, addresses, strict=True):
            assert any(commands.short(name) in line and address in line for line in lines)


def test_brackets_in_addresses_and_names_are_no_markup(monkeypatch):
    tasks = [
        cpb.TaskStatus(
            task="/job:ps/replica:0/task:0",
            address="[fe80::1]:2222",
            variables=[cpb.VariableStatus(name="of:x:mine/[/b]", kind="queue")],
            threads=[cpb.ThreadStatus(name="[/b]", stack="[bold]")],
        ),
        cpb.TaskStatus(
            task="/job:ps/replica:0/task:1",
            address="[fe80::2]:2222",
            problem="[fe80::2]:2222 is gone",
        ),
    ]
    monkeypatch.setattr(admin, "status", lambda *_, **__: tasks)
    text = CliRunner().invoke(main, ["status", "127.0.0.1:1"]).output
    for name in ("[fe80::1]:2222", "of:x:mine/[/b]", "does not answer: [fe80::2]:2222 is gone"):
        assert name in text
    text = CliRunner().invoke(main, ["status", "--stacks", "127.0.0.1:1"]).output
    assert "/job:ps/task:0: [/b]" in text
    assert "[bold]" in text


def test_shutdown_makes_join_return(server):
    result = CliRunner().invoke(main, ["shutdown", server.address])
    assert (result.exit_code, result.output) == (0, "stopped /job:localhost/replica:0/task:0\n")
    server.join()


@pytest.mark.parametrize("command", ["status", "shutdown"])
def test_nobody_there(command):
    result = CliRunner().invoke(main, [command, "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "127.0.0.1:1 does not answer" in result.output


@pytest.mark.parametrize("command", ["status", "shutdown"])
def test_no_address(command):
    result = CliRunner().invoke(main, [command, "here"])
    assert result.exit_code == 1
    assert "'here' is no address of the form host:port" in result.output
