"""Bits that flip between two tasks: a step gives the right value or UnavailableError, no other."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from flipping_proxy import FlippingProxy
from server_clusters import eventually

import headrace as tf
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import control
from headrace.distributed.services.control import Control
from headrace.distributed.transport import connect, grpc_pipe
from headrace.errors import DeadlineExceededError, UnavailableError
from headrace.settings import flags

PS = "/job:ps/replica:0/task:0"


def proxy_of_links(port, monkeypatch):
    """A proxy of a data port, through which all links are made from now on."""
    proxy = FlippingProxy(port)
    dial = connect.dial

    def dial_proxy(endpoint, *args, **kwargs):
        changed = dataclasses.replace(endpoint, port=proxy.port)
        return dial(changed, *args, **{**kwargs, "allow_inproc": False, "allow_unix": False})

    monkeypatch.setattr(connect, "dial", dial_proxy)
    return proxy


def unreachable(*args, **kwargs):
    raise ConnectionRefusedError("all is to go through the proxy")


class Way:
    """A worker and a server whose links all go through a proxy, and a step that uses both."""

    def __init__(self, servers, monkeypatch, fallback=False) -> None:
        self.servers = servers
        port = servers["ps", 0]._listener.endpoint.port
        if fallback:
            port = int(servers["ps", 0].address.rpartition(":")[2])
        else:  # else two greetings that are damaged in turn would end the damage
            monkeypatch.setattr(grpc_pipe, "connect", unreachable)
        self.proxy = proxy_of_links(port, monkeypatch)
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.fed = tf.placeholder(tf.float32, [None])
            with tf.device("/job:ps/task:0"):
                there = [self.fed * 2.0, tf.reduce_sum(self.fed), tf.identity(self.fed)]
            with tf.device("/job:worker/task:0"):
                self.fetched = [there[0] + 1.0, there[1] + 0.0, there[2] * 1.0]
        self.session = tf.Session(servers.target("worker"), graph=self.graph)

    def run(self, value):
        return self.session.run(self.fetched, {self.fed: value})

    def is_right(self, value):
        """Whether the step gave its values; they are never others."""
        try:
            found = self.run(value)
        except UnavailableError:
            return False
        np.testing.assert_array_equal(found[0], value * 2 + 1)
        assert found[1] == np.float32(value.sum(dtype=np.float64))
        np.testing.assert_array_equal(found[2], value)
        return True

    def close(self):
        self.proxy.calm()
        self.session.close()
        assert eventually(
            lambda: not self.servers.leftovers()
        )  # what is told goes through the proxy
        self.proxy.close()


@pytest.fixture
def way(cluster, monkeypatch):
    made = []

    def make(checksums="1"):
        monkeypatch.setattr(flags, "checksums", checksums)
        made.append(Way(cluster(ps=1, worker=1), monkeypatch))
        return made[-1]

    yield make
    for one in made:
        one.close()


def values(size):
    """Small integers: sums of them are exact in any order."""
    return np.random.RandomState(size).randint(0, 8, size).astype(np.float32)


def test_without_checksums_a_flipped_bit_is_a_wrong_value(way):
    """What the others of this file would be worth nothing without."""
    one = way("0")
    value = values(100_000)
    assert one.is_right(value)
    one.proxy.flip("up", 200_000, 5)
    with pytest.raises(AssertionError):
        one.is_right(value)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_flipped_bit_ends_the_link_and_the_next_step_is_right(way, direction):
    one = way()
    value = values(100_000)
    assert one.is_right(value)
    one.proxy.flip(direction, 200_000, 5)
    with pytest.raises(UnavailableError, match=PS):
        one.run(value)
    assert one.proxy.flipped == 1
    assert one.is_right(value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_flips_anywhere_are_right_values_or_unavailable(way, seed):
    one = way()
    rng = random.Random(seed)
    right = 0
    for number in range(125):
        value = values(rng.choice([1, 3, 100, 5000, 20_000, 70_000]))
        reach = rng.choice([300, 3000, 4 * value.size + 600])
        one.proxy.flip(rng.choice(["up", "down"]), rng.randrange(reach), rng.randrange(8))
        right += one.is_right(value)
        if number % 10 == 9:
            one.proxy.calm()
            # A bit that flipped before may still end the link under the first of them.
            assert one.is_right(value) or one.is_right(value)
    one.proxy.calm()
    assert one.is_right(value) or one.is_right(value)
    assert one.proxy.flipped > 60
    assert 10 < right < 125


def test_loopback_has_no_checksums_unless_asked_for(way):
    one = way("auto")
    assert one.is_right(values(10))
    (link,) = one.servers["worker", 0].task.peers.all()
    assert (link.pipe.kind, link.pipe.checked) == ("stream", False)


@pytest.mark.parametrize("seed", range(2))
def test_flips_in_tls_are_retried_as_what_they_are(cluster, monkeypatch, tmp_path, seed):
    """In the middle of a link, and in its handshakes."""
    use_tls(monkeypatch, tmp_path)
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "token")
    one = Way(cluster(ps=1, worker=1), monkeypatch)
    rng = random.Random(seed)
    value = values(5000)
    try:
        failed = 0
        for _ in range(12):
            reach = rng.choice([100, 6000, 20_000])
            one.proxy.flip(rng.choice(["up", "down"]), rng.randrange(reach), rng.randrange(8))
            failed += not one.is_right(value)
        one.proxy.calm()
        assert one.is_right(value) or one.is_right(value)
        assert failed
        assert one.proxy.flipped > 3
    finally:
        one.close()


class CountsSessions(tf.train.SessionRunHook):
    """How many sessions a monitored session has made."""

    made = 0

    def after_create_session(self, session, coord):
        self.made += 1


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_monitored_session_outlives_flips_in_tls(cluster, monkeypatch, tmp_path, direction):
    """The program sees none of it: each flip costs a session, and variables keep all steps.

    A step whose answer was damaged has been made, and is made once more.
    """
    use_tls(monkeypatch, tmp_path)
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "token")
    servers = cluster(ps=1, worker=1)
    proxy = proxy_of_links(servers["ps", 0]._listener.endpoint.port, monkeypatch)
    value = values(5000)
    sessions = CountsSessions()
    folder = str(tmp_path / "checkpoints")
    flips, again = 0, 0
    try:
        with tf.Graph().as_default():
            fed = tf.placeholder(tf.float32, [None])
            with tf.device("/job:ps/task:0"):
                step = tf.train.get_or_create_global_step()
                total = tf.get_variable("total", initializer=tf.zeros([5000]))
                added = total.assign_add(fed)
            with tf.control_dependencies([added]), tf.device("/job:ps/task:0"):
                counted = tf.assign_add(step, 1)
            with tf.train.MonitoredTrainingSession(
                servers.target("worker"),
                checkpoint_dir=folder,
                hooks=[sessions],
                save_checkpoint_steps=2,
                save_summaries_steps=None,
                log_step_count_steps=None,
            ) as session:
                seen = 0
                for number in range(40):
                    if number % 5 == 2:
                        proxy.flip(direction, 400, number % 8)
                        flips += 1
                    done, sums = session.run([counted, added], {fed: value})
                    np.testing.assert_array_equal(sums, value * done)
                    again += done - seen - 1
                    assert 0 <= again <= (flips if direction == "down" else 0)
                    seen = int(done)
                proxy.calm()
        assert proxy.flipped == flips
        assert 1 + flips // 2 < sessions.made <= 1 + flips
        assert again or direction == "up"
        assert tf.train.latest_checkpoint(folder).endswith(f"-{seen}")
        assert eventually(lambda: not servers.leftovers())
    finally:
        proxy.close()


@pytest.mark.slow
@pytest.mark.parametrize("secured", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_flips_in_control_calls(cluster, monkeypatch, tmp_path, caplog, secured, seed):
    """Each gives its answer or UnavailableError: neither is the end of a monitored session."""
    if secured:
        use_tls(monkeypatch, tmp_path)
    monkeypatch.setenv("HEADRACE_CLUSTER_TOKEN", "token")
    options = {**dict(control._CHANNEL_OPTIONS), **IMPATIENT}
    monkeypatch.setattr(control, "_CHANNEL_OPTIONS", list(options.items()))
    server = cluster(worker=1)["worker", 0]
    proxy = FlippingProxy(int(server.address.rpartition(":")[2]))
    one = Control(f"127.0.0.1:{proxy.port}", Security.from_environment())
    request = cpb.EndpointRequest(version=control.PROTOCOL_VERSION)
    expected = one.call("Endpoint", request, 10.0)
    rng = random.Random(seed)
    right = 0
    for _ in range(30):
        reach = rng.choice([50, 400, 2000])
        proxy.flip(rng.choice(["up", "down"]), rng.randrange(reach), rng.randrange(8))
        try:
            assert one.call("Endpoint", request, 1.0) == expected
            right += 1
        except (UnavailableError, DeadlineExceededError):
            proxy.calm()
            assert eventually(lambda: calls(one, request) == expected)
    assert proxy.flipped > 10
    assert right > 3
    assert not [record for record in caplog.records if record.exc_info]
    one.close()
    proxy.close()


#: A damaged length lets a connection hang until it answers no ping.
IMPATIENT = {"grpc.keepalive_time_ms": 200, "grpc.keepalive_timeout_ms": 200}


def calls(one, request):
    try:
        return one.call("Endpoint", request, 2.0)
    except (UnavailableError, DeadlineExceededError):
        return None


def use_tls(monkeypatch, folder):
    """This process has certificates of an authority of its own."""
    security = make_cluster_files(folder / "certs", ["127.0.0.1"]).security("127.0.0.1")
    monkeypatch.setenv("HEADRACE_TLS_CA", security.ca_file)
    monkeypatch.setenv("HEADRACE_TLS_CERT", security.cert_file)
    monkeypatch.setenv("HEADRACE_TLS_KEY", security.key_file)


@pytest.mark.parametrize("checked", [True, False])
def test_flips_in_pipes_of_grpc(cluster, monkeypatch, checked):
    """HTTP/2 has no checksum, either."""
    monkeypatch.setattr(flags, "checksums", "1" if checked else "0")
    servers = cluster(ps=1, worker=1)

    def refuse(*args, **kwargs):
        raise UnavailableError(None, None, "refused")

    one = Way(servers, monkeypatch, fallback=True)
    monkeypatch.setattr(connect, "dial", refuse)
    controls = servers["worker", 0]._controls
    at = controls.at
    through = f"127.0.0.1:{one.proxy.port}"
    address = servers["ps", 0].address
    monkeypatch.setattr(controls, "at", lambda a: at(through if a == address else a))
    value = values(100_000)
    try:
        assert one.is_right(value)
        (link,) = servers["worker", 0].task.peers.all()
        assert link.pipe.kind == "grpc"
        assert isinstance(link.pipe, grpc_pipe.GrpcPipe)
        one.proxy.flip("up", 200_000, 5)
        if checked:
            assert not one.is_right(value)
            assert one.is_right(value)
        else:
            with pytest.raises(AssertionError):
                one.is_right(value)
    finally:
        one.close()
