"""What tasks and hosts write that is not what the launcher expects."""

import contextlib
import json
import os
import socket
import threading

import pytest

from headrace.launch.hosts import Connection
from headrace.launch.job import LaunchJob
from headrace.launch.launcher import Launch, Launcher
from headrace.launch.ssh import SshHost, SshOptions
from headrace.launch.starter import Starter, _Child, about_host


@pytest.fixture
def task():
    """A starter, a task of it, what writes as that task, and what reads the events."""
    (output, theirs), (ours, events) = os.pipe(), os.pipe()
    starter = Starter(0, events)
    os.set_blocking(output, False)
    yield starter, _Child("worker/0", 1, output), theirs, Connection(ours, ours)
    for end in (output, theirs, ours, events):
        os.close(end)
    for part in (starter._selector, starter._bell, starter._ring, starter._ports):
        part.close()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b'{"event": "ended"}\n', '{"event": "ended"}'),
        (b"a\0b\n", "a\0b"),
        (b"\xff\xfe\n", "\ufffd\ufffd"),
    ],
)
def test_whatever_a_task_writes_is_its_output(task, written, shown):
    starter, child, theirs, events = task
    os.write(theirs, written)
    starter._read(child)
    assert events.events() == [{"event": "output", "task": "worker/0", "lines": [shown]}]


def test_who_writes_for_ever_after_the_end_of_a_task_stops_nobody(task):
    starter, child, theirs, _ = task
    os.set_blocking(theirs, False)

    def tell(**_):
        with contextlib.suppress(BlockingIOError):
            os.write(theirs, b"y\n" * 30_000)

    starter._tell = tell
    tell()
    reader = threading.Thread(target=starter._read_rest, args=[child], daemon=True)
    reader.start()
    reader.join(20)
    assert not reader.is_alive()


@pytest.mark.parametrize(
    "line",
    [
        b"Welcome!\n",
        b"5\n",
        b'{"event": 5}\n',
        b"\xff\0\n",
        b'{"event": []}\n',
        b'{"event": "other"}\n',
        b'{"event": "host", "release": "1"}\n',
        b'{"event": "port", "port": true}\n',
        b'{"event": "port", "port": 65536}\n',
        b'{"event": "output", "task": "worker/0"}\n',
        b'{"event": "output", "task": "worker/0", "lines": [5]}\n',
        b'{"event": "ended", "task": "worker/0"}\n',
        b'{"event": "ended", "task": 5, "status": 0}\n',
    ],
)
def test_lines_that_are_no_events(line):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(line)
        with pytest.raises(ConnectionError, match="where lines of the parent of its tasks should"):
            Connection(ours.fileno(), ours.fileno()).events()


def test_a_line_without_an_end_takes_no_memory():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line, sent = Connection(ours.fileno(), ours.fileno()), 0
        while sent < (1 << 22) - 50_000:
            sent += theirs.send(b"x" * 50_000)
            assert line.events() == []
        theirs.sendall(b"x" * 60_000)
        with pytest.raises(ConnectionError, match="a line of more than 4194304 bytes"):
            line.events()


def test_a_host_whose_login_shell_prints(monkeypatch, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho Welcome; exec cat > /dev/null\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    host = SshHost("h", SshOptions(), {})
    with pytest.raises(OSError, match=r"h cannot run tasks: 'Welcome' came from it.+ \.bashrc"):
        host.wait()
    host._errors.close()


def test_a_host_that_tells_of_a_task_that_it_does_not_have(monkeypatch, tmp_path, capfd):
    """All that runs there is ended, and the launch says which host told what."""
    host = json.dumps({"event": "host", **about_host()})
    ended = '{"event": "ended", "task": "worker/7", "status": 0}'
    ssh = tmp_path / "ssh"
    port = json.dumps({"event": "port", "port": 9})
    ssh.write_text(
        f"#!/bin/sh\nread environment; echo '{host}'\nread port; echo '{port}'\n"
        f"read start; echo '{ended}'; exec cat > /dev/null"
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    far = SshHost("far", SshOptions(), {})
    far.wait()
    launch = Launch(LaunchJob("train.py"), tmp_path / "logs", folder=str(tmp_path))
    assert Launcher(launch, [far]).run() == 1
    far._errors.close()
    said = "".join(capfd.readouterr())
    assert "far runs no tasks any more: {'event': 'ended', 'task': 'worker/7'" in said
    assert "came from it, which has no such task" in said


@pytest.mark.process
def test_a_host_that_ends_before_it_has_given_a_port(monkeypatch, tmp_path, capfd):
    host = json.dumps({"event": "host", **about_host()})
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\nread environment; echo '{host}'; exit 7")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    far = SshHost("far", SshOptions(), {})
    far.wait()
    launch = Launch(LaunchJob("train.py"), tmp_path / "logs", folder=str(tmp_path))
    assert Launcher(launch, [far]).run() == 1
    far._errors.close()
    assert "worker/0 gets no address: far cannot run tasks: ssh has ended with 7" in "".join(
        capfd.readouterr()
    )
