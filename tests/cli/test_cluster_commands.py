"""`headrace status` and `headrace shutdown` on servers of this process."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import headrace as tf
from headrace.cli import main


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
