"""Checks of this machine, with conditions that really fail."""

from __future__ import annotations

import datetime
import json
import os
import socket

import pytest

from headrace.distributed.security.certs import make_cluster_files
from headrace.operations.doctor import machine
from headrace.operations.doctor.findings import Level, fail, ok, warn, worst
from headrace.operations.doctor.security import check_security
from headrace.operations.doctor.storage import check_storage
from headrace.settings import flags


def of(findings, subject):
    (found,) = (f for f in findings if f.subject == subject)
    return found


def test_the_worst_counts():
    assert worst([]) is Level.ok
    assert worst([ok("a", ""), warn("b", "", "")]) is Level.warn
    assert worst([fail("a", "", ""), ok("b", "")]) is Level.fail


def test_this_machine_can_run_tasks(tmp_path):
    found = list(machine.check_machine(storage=str(tmp_path), environ={}))
    assert not [f for f in found if f.level is Level.fail]
    assert {"Python", "packages", "extras", "cores", "memory", "open files", "token"} <= {
        f.subject for f in found
    }
    assert of(found, "storage").level is Level.ok
    assert not os.listdir(tmp_path)


def test_a_port_in_use_fails():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = of(machine.check_machine([port], environ={}), f"port {port}")
        assert (found.level, found.text) == (
            Level.fail,
            f"127.0.0.1:{port}: Address already in use",
        )
        assert "another port" in found.mend
    assert machine.check_port("127.0.0.1", port).level is Level.ok


def test_a_host_of_another_machine_fails():
    found = machine.check_port("192.0.2.1", 2222)
    assert found.level is Level.fail
    assert "none of this machine" in found.mend


def test_the_task_of_tf_config_is_checked():
    task = {"type": "worker", "index": 0}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = {"cluster": {"worker": [f"127.0.0.1:{port}"]}, "task": task}
        found = list(machine.check_machine(environ={"TF_CONFIG": json.dumps(config)}))
    assert of(found, "TF_CONFIG").text == f"worker/0 at 127.0.0.1:{port}"
    assert of(found, f"port {port}").level is Level.fail
    broken = of(machine.check_machine(environ={"TF_CONFIG": "{"}), "TF_CONFIG")
    assert broken.level is Level.fail
    assert "it is no JSON" in broken.text


def test_an_open_address_without_security_fails():
    config = {"cluster": {"worker": ["0.0.0.0:1"]}, "task": {"type": "worker", "index": 0}}
    found = of(machine.check_machine(environ={"TF_CONFIG": json.dumps(config)}), "security")
    assert (found.level, found.mend) == (Level.fail, "headrace certs makes the files.")
    assert "is not loopback" in found.text


def test_limits_that_are_low_are_told(tmp_path):
    assert machine.check_memory(1 << 30).level is Level.warn
    assert machine.check_memory(1 << 34).text == "16.0 GiB"
    assert machine.check_files(1024).level is Level.warn
    assert machine.check_files(-1).text == "no limit"
    absent = machine.check_shared_memory(tmp_path / "shm")
    assert (absent.level, "--shm-size" in absent.mend) == (Level.warn, True)


def test_metrics_without_their_package_fail(monkeypatch):
    monkeypatch.setattr(flags, "metrics_port", "9100")
    monkeypatch.setattr(machine, "_release", lambda name: "" if "prometheus" in name else "99")
    found = of(machine.check_packages(), "metrics")
    assert (found.level, found.mend) == (Level.fail, "pip install 'headrace[metrics]'")


def test_packages_that_are_old_or_absent_fail(monkeypatch):
    there = {"jax": "0.4.1", "numpy": "2.1", "jaxlib": ""}
    monkeypatch.setattr(machine, "_release", lambda name: there.get(name, "99"))
    found = list(machine.check_packages())
    assert of(found, "jax").text == "0.4.1, older than 0.10"
    assert of(found, "jaxlib").mend == "pip install 'jaxlib>=0.10'"


# -- certificates and tokens ----------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    """Makes the files of a cluster, and the variables that name them."""
    pytest.importorskip("cryptography")

    def make(name="tls", **options):
        made = make_cluster_files(tmp_path / name, ["127.0.0.1"], **options)
        own = made.hosts["127.0.0.1"]
        return {
            "HEADRACE_TLS_CA": str(made.ca_file),
            "HEADRACE_TLS_CERT": str(own.cert_file),
            "HEADRACE_TLS_KEY": str(own.key_file),
            "HEADRACE_CLUSTER_TOKEN_FILE": str(made.token_file),
        }

    return make


def test_good_certificates(files):
    found = list(check_security(files(days=30)))
    assert [f.level for f in found] == [Level.ok, Level.ok]
    assert "is valid for 30 more days" in of(found, "certificate").text


def test_an_expired_certificate_fails(files):
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=40)
    found = of(check_security(files(days=30, now=long_ago)), "certificate")
    assert found.level is Level.fail
    assert "certificate has expired" in found.text
    assert "headrace certs" in found.mend


def test_a_certificate_that_ends_soon_is_told(files):
    found = of(check_security(files(days=3)), "certificate")
    assert (found.level, "3 more days" in found.text) == (Level.warn, True)


def test_a_certificate_of_another_authority_fails(files):
    mixed = {**files("a"), "HEADRACE_TLS_CA": files("b")["HEADRACE_TLS_CA"]}
    found = of(check_security(mixed), "certificate")
    assert (found.level, "not accepted by the own authority" in found.text) == (Level.fail, True)


def test_settings_that_are_incomplete_fail(files):
    given = files()
    del given["HEADRACE_TLS_KEY"]
    (found,) = check_security(given)
    assert (found.level, "HEADRACE_TLS_KEY not set" in found.text) == (Level.fail, True)


def test_a_secret_that_all_can_read_is_told(files):
    given = files()
    os.chmod(given["HEADRACE_CLUSTER_TOKEN_FILE"], 0o644)
    found = of(check_security(given), "secrets")
    assert found.mend == f"chmod 600 {given['HEADRACE_CLUSTER_TOKEN_FILE']}"


def test_an_open_cluster_is_told():
    assert of(check_security({"HEADRACE_INSECURE": "1"}), "token").level is Level.warn


# -- storage --------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_fails(tmp_path):
    (tmp_path / "file").write_text("")
    (found,) = check_storage(str(tmp_path / "file" / "folder"))
    assert found.level is Level.fail
    assert "the right to write there" in found.mend


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_fails(tmp_path):
    os.chmod(tmp_path, 0o500)
    assert check_storage(str(tmp_path)).__next__().level is Level.fail


def test_a_folder_of_a_system_that_only_reads_fails():
    (found,) = check_storage("/proc/sys")
    assert found.level is Level.fail


def test_an_unknown_file_system_fails():
    (found,) = check_storage("nowhere://bucket/folder")
    assert (found.level, "nowhere" in found.text) == (Level.fail, True)


def test_a_folder_that_was_not_there_is_told(tmp_path):
    made, used = check_storage(str(tmp_path / "chekpoints"))
    assert (made.level, used.level) == (Level.warn, Level.ok)
    assert "was not there" in made.text
    assert [f.level for f in check_storage(str(tmp_path / "chekpoints"))] == [Level.ok]


def test_what_was_there_stays(tmp_path):
    (tmp_path / "checkpoint").write_text("x")
    assert [f.level for f in check_storage(str(tmp_path))] == [Level.ok]
    assert os.listdir(tmp_path) == ["checkpoint"]
