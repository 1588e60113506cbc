"""Metrics for Prometheus, scraped over a socket and read by its own parser."""

from __future__ import annotations

import re
import socket
import ssl
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

import headrace as tf
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.services import metrics_http
from headrace.distributed.services.metrics import METRICS
from headrace.errors import UnavailableError
from headrace.structured_logs import EVENTS
from headrace.test.cluster import free_ports

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
SOON = tf.RunOptions(timeout_in_ms=20)


def scrape(address, context=None):
    scheme = "http" if context is None else "https"
    with urllib.request.urlopen(f"{scheme}://{address}/metrics", context=context) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def servers():
    """A server and a worker with metrics."""
    ports = free_ports(2)
    spec = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    made = [tf.train.Server(spec, job, 0, metrics_port=0) for job in spec]
    yield made
    for server in made:
        server.stop()


def test_what_a_training_does_is_scraped(servers):
    ps, worker = servers
    with tf.Graph().as_default(), tf.Session(worker.target) as sess:
        with tf.device("/job:ps/task:0"):
            weights = tf.Variable(tf.zeros([250, 4]), name="weights", use_resource=True)
        more = weights.assign_add(tf.fill([250, 4], tf.placeholder(tf.float32, [], name="by")))
        shape = tf.placeholder(tf.int32, [2])
        sess.run(weights.initializer)
        for _ in range(3):
            sess.run(more.op, {"by:0": 1.0})
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(tf.reshape(tf.identity(weights), shape), {shape: [3, -1]})
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(tf.FIFOQueue(1, tf.float32).dequeue(), options=SOON)
        at_ps, at_worker = scrape(ps.metrics_address), scrape(worker.metrics_address)
    mine = ("task", "worker/0")
    assert at_worker["headrace_steps_total", ("outcome", "ok"), mine] == 4
    assert at_worker["headrace_steps_total", ("outcome", "failed"), mine] == 1
    assert at_worker["headrace_steps_total", ("outcome", "given_up"), mine] == 1
    assert 0 < at_worker["headrace_step_seconds_total", mine] < 100
    assert at_worker["headrace_sessions", mine] == 1
    own = ("task", "ps/0")
    assert at_ps["headrace_parts_total", own] >= 4
    assert at_ps["headrace_variable_bytes", ("kind", "variable"), own] == 4000
    assert at_ps["headrace_variables", ("kind", "variable"), own] == 1
    link = (("peer", "worker/0"), own, ("transport", "inproc"))
    assert at_ps["headrace_link_receive_frames_total", *link] > 0
    assert at_ps["headrace_link_transmit_bytes_total", *link] > 0
    assert at_ps["headrace_resident_memory_bytes", own] > 2**20
    assert at_ps["headrace_events_total", ("event", "step_failed"), own] >= 1


def test_all_metrics_of_the_table_are_there_and_no_other(servers):
    found = {name for name, *_ in scrape(servers[0].metrics_address)}
    # There are no links yet.
    assert found == {
        m.name for m in METRICS if not m.name.startswith(("headrace_link", "headrace_variable"))
    }


def test_names_keep_to_the_conventions():
    for metric in METRICS:
        assert re.fullmatch(r"headrace(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.help.endswith(".")


def test_the_page_has_the_table():
    rows = re.findall(r"^\| `(headrace_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (m.name, m.kind, ", ".join(f"`{label}`" for label in ("task", *m.labels)), m.help)
        for m in METRICS
    ]
    events = dict(re.findall(r"^\| `([a-z_]+)` \| ([^|]*?) \|$", PAGE, re.MULTILINE))
    assert {name: events.get(name) for name in EVENTS} == dict(EVENTS)


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"Cannot offer metrics at 127.0.0.1:{port}"):
            tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=port)


def test_a_port_that_there_is_not_is_refused():
    with pytest.raises(UnavailableError, match=r"metrics at 127.0.0.1:99999: .*0-65535"):
        tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=99999)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ImportError, match=r"pip install 'headrace\[metrics\]'"):
        tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=0)


def test_the_setting_of_the_process_counts(monkeypatch):
    from headrace.settings import flags

    monkeypatch.setattr(flags, "metrics_port", "0")
    server = tf.train.Server({"worker": ["127.0.0.1:0"]})
    try:
        assert scrape(server.metrics_address)["headrace_sessions", ("task", "worker/0")] == 0
    finally:
        server.stop()
    with pytest.raises(OSError, match="refused"):
        scrape(server.metrics_address)


@pytest.fixture
def secured(tmp_path, monkeypatch):
    """Files of a cluster with TLS, by the settings of this process."""
    pytest.importorskip("cryptography")
    files = make_cluster_files(tmp_path, ["127.0.0.1"])
    own = files.hosts["127.0.0.1"]
    monkeypatch.setenv("HEADRACE_TLS_CA", str(files.ca_file))
    monkeypatch.setenv("HEADRACE_TLS_CERT", str(own.cert_file))
    monkeypatch.setenv("HEADRACE_TLS_KEY", str(own.key_file))
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN_FILE", str(files.token_file))
    return files


def test_with_tls_only_who_has_a_certificate_of_the_cluster_sees_metrics(secured):
    server = tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=0)
    try:
        stranger = ssl.create_default_context(cafile=str(secured.ca_file))
        with pytest.raises(OSError, match=r"(?i)certificate|eof|reset"):
            scrape(server.metrics_address, stranger)
        context = secured.security("127.0.0.1").client_context()
        assert scrape(server.metrics_address, context)
    finally:
        server.stop()


def test_who_connects_and_says_nothing_holds_up_nobody(secured):
    """Neither who asks for metrics nor the end of the server."""
    server = tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=0)
    try:
        host, port = server.metrics_address.split(":")
        silent = socket.create_connection((host, int(port)))
        context = secured.security("127.0.0.1").client_context()
        assert scrape(server.metrics_address, context)
    finally:
        server.stop()
    silent.settimeout(20)
    assert silent.recv(1) == b""
    silent.close()


def test_there_are_only_so_many_connections(servers):
    host, port = servers[0].metrics_address.split(":")
    before = threading.active_count()
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    for one in silent[:60]:
        one.settimeout(20)
        assert one.recv(1) == b""
    assert threading.active_count() < before + 60
    assert scrape(servers[0].metrics_address)
    for one in silent:
        one.close()


def test_who_takes_too_long_is_left(servers, monkeypatch):
    monkeypatch.setattr(metrics_http, "_LONGEST", 0.0)
    host, port = servers[0].metrics_address.split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        slow.settimeout(20)
        assert slow.recv(1) == b""


def test_what_is_no_http_says_nothing_in_the_log_of_a_training(servers, capfd):
    host, port = servers[0].metrics_address.split(":")
    for data in (b"\xff\0" * 500, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", b"GET"):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(data)
    assert scrape(servers[0].metrics_address)
    assert capfd.readouterr().err == ""
