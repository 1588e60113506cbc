"""Checks of a cluster that runs, with conditions that really fail."""

from __future__ import annotations

import datetime
import os
import time

import pytest

import headrace as tf
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.services import admin, operation_calls
from headrace.errors import DeadlineExceededError, UnimplementedError
from headrace.operations.doctor import cluster as checks
from headrace.operations.doctor.cluster import Answer, check_cluster, check_skew
from headrace.operations.doctor.findings import Level
from headrace.test.cluster import free_ports


@pytest.fixture
def servers():
    """A server and two workers."""
    workers, servers = tf.test.create_local_cluster(2, 1)
    made = [*servers, *workers]
    yield made
    for server in made:
        server.stop()


def levels(findings):
    return {f.subject: f.level for f in findings}


def test_a_cluster_that_is_well(servers, tmp_path):
    found = list(check_cluster(servers[0].address, str(tmp_path)))
    assert {f.level for f in found} == {Level.ok}
    texts = {f.subject: f.text for f in found}
    assert texts["tasks"] == "3 of 3 answer"
    assert texts["storage"] == (
        f"{tmp_path} is the same for ps/0, worker/0, worker/1, and can be written"
    )
    assert {"clock of ps/0", "clock of worker/1", "ps/0", "versions"} <= texts.keys()
    assert not os.listdir(tmp_path)


def test_nobody_there():
    (found,) = check_cluster(f"127.0.0.1:{free_ports(1)[0]}")
    assert (found.level, "does not answer" in found.text) == (Level.fail, True)
    assert "does the task run" in found.mend
    (wrong,) = check_cluster("here")
    assert (wrong.level, wrong.mend) == (Level.fail, "Give host:port of a task.")


def test_a_wrong_token(monkeypatch):
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "of the cluster")
    server = tf.train.Server.create_local_server()
    try:
        monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "of somebody else")
        (found,) = check_cluster(server.address)
    finally:
        server.stop()
    assert (found.level, "token" in found.text) == (Level.fail, True)
    assert "HEADRACE_CLUSTER_TOKEN_FILE" in found.mend


def test_a_certificate_that_has_expired(monkeypatch, tmp_path):
    pytest.importorskip("cryptography")

    def use(name, **options):
        made = make_cluster_files(tmp_path / name, ["127.0.0.1"], **options)
        own = made.hosts["127.0.0.1"]
        monkeypatch.setenv("HEADRACE_TLS_CA", str(made.ca_file))
        monkeypatch.setenv("HEADRACE_TLS_CERT", str(own.cert_file))
        monkeypatch.setenv("HEADRACE_TLS_KEY", str(own.key_file))

    use("old", days=1, now=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2))
    server = tf.train.Server({"worker": ["127.0.0.1:0"]})
    try:
        (found,) = check_cluster(server.address)
        assert (found.level, "certificate has expired" in found.text) == (Level.fail, True)
        assert "HEADRACE_TLS_CERT" in found.mend
        use("of another cluster")
        (found,) = check_cluster(server.address)
        assert (found.level, "is not accepted" in found.text) == (Level.fail, True)
    finally:
        server.stop()


def test_only_files_of_the_doctor_are_looked_for(servers, tmp_path):
    (tmp_path / "secret").write_text("")
    said = admin.diagnose(servers[0].address, str(tmp_path), "secret")
    assert said.storage_problem == "'secret' is no name of a file that is made to be looked for"
    assert os.listdir(tmp_path) == ["secret"]


def test_a_task_that_is_gone(servers):
    servers[2].stop()
    found = list(check_cluster(servers[0].address))
    assert levels(found)["worker/1"] is Level.fail
    assert levels(found)["worker/0"] is Level.ok
    assert "2 of 3 answer" in [f.text for f in found]


@pytest.mark.parametrize(
    ("ahead", "level", "text"),
    [(0.0, Level.ok, "ms"), (-3.0, Level.warn, "ms ahead"), (100.0, Level.fail, "ms behind")],
)
def test_a_clock_that_is_wrong(servers, ahead, level, text):
    """The own clock is the one that is wrong here: who is asked seems to be the other way."""
    found = list(check_cluster(servers[0].address, clock=lambda: time.time() + ahead))
    (clock,) = (f for f in found if f.subject == "clock of ps/0")
    assert (clock.level, text in clock.text) == (level, True)


def test_a_slow_answer_says_little_of_a_clock():
    said = pb.DiagnoseResponse(task="/job:ps/replica:0/task:0", clock=105.0)
    found = check_skew(Answer("a:1", 100.0, 110.0, said))
    assert (found.level, found.text) == (Level.ok, "0.0 ms behind this one (+-5000.0)")
    assert check_skew(Answer("a:1", 100.0, 100.1, said)).level is Level.warn


def test_other_versions(servers, monkeypatch):
    own = checks.releases()
    monkeypatch.setattr(checks, "releases", lambda: own | {"jax": "9.9", "headrace": "0.0"})
    found = [f for f in check_cluster(servers[0].address) if f.subject == "versions"]
    assert [f.level for f in found] == [Level.fail, Level.warn]
    assert found[0].text.startswith("headrace: here 0.0, ps/0 has ")
    assert found[1].mend.startswith("pip install jax==9.9 there")


def test_tasks_of_a_release_that_cannot_be_asked(servers, monkeypatch):
    def ask(*_, **__):
        raise UnimplementedError(None, None, "Method not found!")

    monkeypatch.setattr(admin, "diagnose", ask)
    found = list(check_cluster(servers[0].address))
    (task,) = (f for f in found if f.subject == "ps/0")
    assert "runs Headrace 0." in task.text
    assert (task.level, task.mend) == (Level.fail, "Use the same release everywhere.")
    assert "versions" not in levels(found)


def test_a_task_that_is_too_slow_has_an_address(monkeypatch):
    def ask(*_, **__):
        raise DeadlineExceededError(None, None, "h:1 did not answer Status within 10 s")

    monkeypatch.setattr(admin, "status", ask)
    (found,) = check_cluster("127.0.0.1:1")
    assert "does the task run" in found.mend


def test_a_folder_that_is_another_one_elsewhere(servers, tmp_path, monkeypatch):
    """One task has something else mounted there."""
    real = operation_calls.storage_problem

    def elsewhere(folder, nonce, task):
        other = tmp_path / "elsewhere"
        other.mkdir(exist_ok=True)
        return real(str(other) if "worker" in task and task.endswith("1") else folder, nonce, task)

    monkeypatch.setattr(operation_calls, "storage_problem", elsewhere)
    here = tmp_path / "here"
    here.mkdir()
    found = [f for f in check_cluster(servers[0].address, str(here)) if f.subject == "storage"]
    assert [f.level for f in found] == [Level.fail, Level.ok]
    assert "at worker/1: it does not see a file that was just made there" in found[0].text
    assert "Mount the same storage" in found[0].mend
    assert not os.listdir(here)


def test_a_folder_that_is_not_there(servers, tmp_path):
    found = list(check_cluster(servers[0].address, str(tmp_path / "none")))
    assert (found[-1].level, found[-1].subject) == (Level.fail, "storage")
    assert "Make the folder first" in found[-1].mend
