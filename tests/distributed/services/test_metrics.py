"""Metrics for Prometheus, scraped over a socket and read by its own parser."""

from __future__ import annotations

import re
import socket
import ssl
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

import headrace as tf
from headrace.distributed.security.certs import make_cluster_files
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


def test_with_tls_only_who_has_a_certificate_of_the_cluster_sees_metrics(tmp_path, monkeypatch):
    pytest.importorskip("cryptography")
    files = make_cluster_files(tmp_path, ["127.0.0.1"])
    own = files.hosts["127.0.0.1"]
    monkeypatch.setenv("HEADRACE_TLS_CA", str(files.ca_file))
    monkeypatch.setenv("HEADRACE_TLS_CERT", str(own.cert_file))
    monkeypatch.setenv("HEADRACE_TLS_KEY", str(own.key_file))
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN_FILE", str(files.token_file))
    server = tf.train.Server({"worker": ["127.0.0.1:0"]}, metrics_port=0)
    try:
        stranger = ssl.create_default_context(cafile=str(files.ca_file))
        with pytest.raises(OSError, match=r"(?i)certificate|eof|reset"):
            scrape(server.metrics_address, stranger)
        context = files.security("127.0.0.1").client_context()
        assert scrape(server.metrics_address, context)
    finally:
        server.stop()
