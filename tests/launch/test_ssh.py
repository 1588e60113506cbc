"""`headrace launch --hosts` through a real sshd on loopback; skips itself where there is none."""

import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from launches import CLUSTER, PATIENCE, eventually

from headrace.launch.ssh import SshOptions, passed_environment, remote_command

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="needs OpenSSH: apt-get install openssh-server",
)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """Options of ssh for a server of this user on a port of 127.0.0.1."""
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\n"
    )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    log = (folder / "log").open("w")
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=log)
    eventually(lambda: "listening" in (folder / "log").read_text())
    yield (
        *("-p", str(port), "-i", str(folder / "user"), "-F", "none"),
        *("-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known"),
        *("-o", "LogLevel=ERROR"),
    )
    server.terminate()
    server.wait(PATIENCE)
    log.close()


@pytest.fixture
def on_hosts(launch, sshd, monkeypatch, tmp_path):
    """A launch on two names of this machine."""
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "not-to-be-seen-in-a-list")

    def start(text, *arguments, hosts="127.0.0.1,localhost"):
        options = [f"--ssh-option={option}" for option in sshd]
        variable = f"--env=HEADRACE_TEST_LAUNCH={tmp_path}"
        return launch(text, "--hosts", hosts, *options, variable, *arguments)

    return start


@pytest.mark.process
@pytest.mark.slow
@needs_sshd
def test_a_cluster_trains_on_hosts(on_hosts):
    run = on_hosts(CLUSTER, "--ps", "1", "--workers", "2", "script.py", "30")
    status, output, errors = run.end()
    assert status == 0, output + errors
    assert output.count("] end\n") == 2
    assert run.log("worker/1").endswith("end\n--- exit status 0 ---\n")
    eventually(lambda: run.ours() == {})


@pytest.mark.process
@pytest.mark.slow
@needs_sshd
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_tasks_elsewhere_end_with_the_launcher_and_tell_no_secrets(on_hosts, number):
    run = on_hosts(
        CLUSTER, "--ps", "1", "--workers", "2", "script.py", "1000000", hosts="127.0.0.1"
    )
    eventually(lambda: "loss:" in run.log("worker/0"))
    lists = subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True)
    assert "not-to-be-seen" not in lists.stdout
    run.process.send_signal(number)
    run.end()
    eventually(lambda: run.ours() == {})


@pytest.mark.process
@pytest.mark.slow
@needs_sshd
def test_hosts_that_cannot_run_tasks(on_hosts, sshd, tmp_path):
    run = on_hosts("", "--remote-python", "/no such/python", "script.py")
    status, _, errors = run.end()
    assert status == 1
    assert "127.0.0.1 cannot run tasks: ssh has ended with 127:" in errors
    assert "/no such/python" in errors
    # Another release: a package of this name, of which only the number differs.
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(
        "import importlib.metadata as m\nold = m.version\n"
        "m.version = lambda name: '9.9' if name == 'headrace' else old(name)\n"
    )
    python = other / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={other} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    status, _, errors = on_hosts("", "--remote-python", str(python), "script.py").end()
    assert status == 1
    assert "127.0.0.1 has Headrace 9.9, and this machine" in errors


@pytest.mark.process
@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs ssh")
def test_hosts_that_cannot_be_reached(launch):
    run = launch("", "--hosts", "127.0.0.1", "--ssh-option=-p1", "script.py")
    status, _, errors = run.end()
    assert status == 1
    assert "127.0.0.1 cannot run tasks: ssh has ended with 255:" in errors


def test_folders_and_interpreters_are_quoted():
    command = remote_command(SshOptions(folder="/it's my data", python="/a b/python; true"))
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert "/it's my data" in found.stderr
    assert found.returncode != 0


def test_the_token_goes_along_whatever_holds_it(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    environ = {"HEADRACE_CLUSTER_TOKEN_FILE": str(tmp_path / "token"), "HOME": "/", "JAX_X": "1"}
    assert passed_environment(environ, ["HOME", "A=b=c"]) == {
        "HEADRACE_CLUSTER_TOKEN": "secret",
        "JAX_X": "1",
        "HOME": "/",
        "A": "b=c",
    }
    with pytest.raises(ValueError, match="--env =a: give --env NAME=VALUE"):
        passed_environment(environ, ["=a"])
    with pytest.raises(ValueError, match="--env NOTHING: there is no such variable here"):
        passed_environment(environ, ["NOTHING"])
