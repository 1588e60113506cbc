"""TLS settings that do not fit are told at once, with what to do; IPv6 can be served."""

from __future__ import annotations

import socket
import time

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.security import tls
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import admin
from headrace.distributed.services.server import Server
from headrace.settings import flags

VARIABLES = ("HEADRACE_TLS_CA", "HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY")


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """The settings that two authorities give to a host, for IPv4 and IPv6."""
    made = []
    for name in ("ours", "other"):
        files = make_cluster_files(tmp_path_factory.mktemp(name) / "certs", ["127.0.0.1", "::1"])
        made.append(files.security)
    return made


@pytest.fixture
def settings(monkeypatch):
    """``settings(security)`` are those of this process from now on."""
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "token")

    def use(security):
        paths = (None,) * 3
        if security is not None:
            paths = security.ca_file, security.cert_file, security.key_file
        for variable, path in zip(VARIABLES, paths, strict=True):
            if path is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.setenv(variable, path)

    return use


CASES = {
    "no TLS here": (0, None, r"speaks TLS, and this process has no certificates: set HEADRACE_TLS"),
    "no TLS there": (None, 0, r"answers without TLS, and this process has certificates"),
    "another authority": (
        0,
        1,
        r"The certificate of 127.0.0.1:\d+ is not accepted: .*HEADRACE_TLS",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_settings_that_do_not_fit_are_told_at_once(
    cluster, remote, settings, authorities, monkeypatch, case
):
    there, here, text = CASES[case]
    settings(None if there is None else authorities[there]("127.0.0.1"))
    servers = cluster(worker=1)
    settings(None if here is None else authorities[here]("127.0.0.1"))
    monkeypatch.setattr(flags, "connect_timeout", 60.0)
    began = time.monotonic()
    with tf.Session(servers.target()) as session:
        with pytest.raises(tf.errors.UnauthenticatedError, match=text) as caught:
            session.run(tf.constant(1.0))
        assert "Start it again" not in str(caught.value)
        with pytest.raises(tf.errors.UnauthenticatedError, match=text):
            admin.status(servers["worker", 0].address)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("case", CASES)
def test_tasks_that_do_not_fit_are_told_at_once(
    cluster, either, settings, authorities, monkeypatch, case
):
    there, here, text = CASES[case]
    servers = cluster(start=False, ps=1, worker=1)
    settings(None if there is None else authorities[there]("127.0.0.1"))
    servers.start("ps")
    settings(None if here is None else authorities[here]("127.0.0.1"))
    servers.start("worker")
    monkeypatch.setattr(flags, "connect_timeout", 60.0)
    with tf.device("/job:ps/task:0"):
        y = tf.random_uniform([])
    with (
        tf.Session(servers.target()) as session,
        pytest.raises(tf.errors.UnauthenticatedError, match=text),
    ):
        session.run(y)


def test_a_server_that_does_not_take_our_certificate(cluster, settings, authorities, tmp_path):
    """Only the server's side refuses: the client knows its authority."""
    ours, other = (make("127.0.0.1") for make in authorities)
    settings(ours)
    servers = cluster(worker=1)
    mixed = Security(ours.ca_file, other.cert_file, other.key_file, b"token")
    address = servers["worker", 0].address
    found = tls.diagnose(address, mixed, 5.0)
    assert isinstance(found, tf.errors.UnauthenticatedError)
    assert f"{address} does not accept the certificate of this process" in found.message
    assert other.cert_file in found.message
    assert tls.diagnose(address, ours, 5.0) is None


def test_where_nobody_answers_nothing_is_said_of_settings(authorities):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        for security in (Security(), authorities[0]("127.0.0.1")):
            assert tls.diagnose(address, security, 0.1) is None
    for security in (Security(), authorities[0]("127.0.0.1")):
        assert tls.diagnose("127.0.0.1:1", security, 0.1) is None
        assert tls.diagnose("nonsense", security, 0.1) is None


# -- addresses of IPv6 --------------------------------------------------------------------------


def _has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 on this machine")
@pytest.mark.parametrize("secured", [False, True])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_addresses_of_ipv6_can_be_served(
    remote, settings, authorities, monkeypatch, secured, shared_memory
):
    monkeypatch.setattr(flags, "shared_memory", shared_memory)
    settings(authorities[0]("::1") if secured else None)
    server = Server({"worker": ["[::1]:0"]})
    try:
        assert server.target.startswith("grpc://[::1]:")
        with tf.Graph().as_default(), tf.Session(server.target) as session:
            x = tf.placeholder(tf.float32, [50_000])
            value = np.arange(50_000, dtype=np.float32)
            np.testing.assert_array_equal(session.run(x + 1.0, {x: value}), value + 1)
            (status,) = admin.status(server.address)
        assert status.address == server.address
    finally:
        server.stop()


def test_a_host_that_has_no_address_is_an_error_of_ours(monkeypatch):
    monkeypatch.setenv("HEADRACE_INSECURE", "1")
    with pytest.raises(tf.errors.UnavailableError, match=r"Cannot listen at nosuch\.invalid:0"):
        Server({"worker": ["nosuch.invalid:0"]})


def test_a_data_port_in_use_is_an_error_of_ours(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(flags, "data_port", other.getsockname()[1])
        with pytest.raises(tf.errors.UnavailableError, match="HEADRACE_DATA_PORT says where"):
            Server({"worker": ["127.0.0.1:0"]})
