"""Clusters over hosts of their own: network namespaces, with and without TLS."""

import os
import subprocess
import time

import numpy as np
import pytest
from namespaces import Namespaces, why_not
from task_processes import Tasks, Training, eventually

import headrace as tf
from headrace.distributed.security.certs import make_cluster_files
from headrace.distributed.services import admin
from headrace.errors import PermissionDeniedError, UnavailableError

_WHY_NOT = why_not()
pytestmark = [
    pytest.mark.netns,
    pytest.mark.process,
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"no network namespaces: {_WHY_NOT}"),
    pytest.mark.timeout(180),
]

NOTICED = 5.0
PORT = 7001


@pytest.fixture(scope="module")
def hosts():
    made = Namespaces(3)
    yield made
    made.close()


@pytest.fixture(scope="module", params=["insecure", "tls"])
def tasks(request, hosts, tmp_path_factory):
    """A server in each of two namespaces and a worker in a third; this process is the client."""
    jobs = {"worker": 1, "ps": 2}
    order = {("worker", 0): 0, ("ps", 0): 1, ("ps", 1): 2}
    addresses = {
        job: [f"{hosts.hosts[order[job, i]]}:{PORT}" for i in range(count)]
        for job, count in jobs.items()
    }
    variables = {"HEADRACE_INSECURE": "1"}
    by_host = {}
    if request.param == "tls":
        directory = tmp_path_factory.mktemp("certs")
        files = make_cluster_files(directory, [*hosts.hosts, hosts.here])
        variables = {
            "HEADRACE_TLS_CA": str(files.ca_file),
            "HEADRACE_CLUSTER_TOKEN_FILE": str(files.token_file),
        }
        for host, own in files.hosts.items():
            by_host[host] = {
                "HEADRACE_TLS_CERT": str(own.cert_file),
                "HEADRACE_TLS_KEY": str(own.key_file),
            }

    def prefix(job, index):
        place = order[job, index]
        own = by_host.get(hosts.hosts[place], {})
        return [*hosts.prefix(place), "env", *(f"{k}={v}" for k, v in own.items())]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**variables, **by_host.get(hosts.here, {})}.items():
            patch.setenv(name, value)
        made = Tasks(jobs, prefix, addresses)
        try:
            yield made
            ends = made.terminate_all()
            assert all(end == (0, "joined\n") for end in ends.values()), ends
        finally:
            made.kill_all()


@pytest.fixture
def training(tasks):
    """Training on both servers, that is closed at the end."""
    made = Training(tasks, 0, [0, 1]).open().go()
    made.goes_on()
    yield made
    made.pause()
    made.session.close()


def until_it_works(training, deadline_in_ms=0):
    """Run steps of the same session until one is made: after how many seconds.

    None of them may hang: the deadline fails the test then, with the tasks that are waited for.
    """
    options = tf.RunOptions(timeout_in_ms=deadline_in_ms)

    def works():
        try:
            training.session.run(training.step, options=options)
        except UnavailableError:
            return False
        return True

    return eventually(works)


def test_training_over_three_hosts(tasks, training):
    training.pause()
    assert training.session.run(training.values) == [training.steps] * 2
    links = {x.transport for t in admin.status(tasks.addresses["ps"][0]) for x in t.links}
    assert links == {"stream"}
    training.go()


def test_large_tensors_over_the_byte_stream(tasks):
    graph = tf.Graph()
    with graph.as_default():
        fed = tf.placeholder(tf.float32, [1024, None])
        with tf.device("/job:ps/task:0"):
            there = fed + 1.0
        with tf.device("/job:ps/task:1"):
            further = there * 2.0
    values = np.arange(8 << 20, dtype=np.float32).reshape(1024, -1)
    with tf.Session(tasks.target("worker"), graph=graph) as session:
        assert np.array_equal(session.run(further, {fed: values}), (values + 1) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(10))
def test_no_step_hangs_after_a_cut(tasks, hosts, training, round_):
    """Without deadlines: what is sent while links come back arrives, or fails."""
    hosts.cut(1)
    try:
        training.failure(time.monotonic())
    finally:
        hosts.restore(1)
    until_it_works(training)
    training.go()


@pytest.mark.parametrize("how", ["cut", pytest.param("down", marks=pytest.mark.slow)])
def test_a_host_is_cut_off_for_a_while(tasks, hosts, training, how, record_property):
    other = Training(tasks, 0, [1]).open().go()
    began = time.monotonic()
    cut, restore = (hosts.cut, hosts.restore) if how == "cut" else (hosts.down, hosts.up)
    cut(1)
    try:
        error, seconds = training.failure(began)
        other.goes_on()
    finally:
        restore(1)
    assert isinstance(error, UnavailableError)
    assert "Task /job:ps/replica:0/task:0, which step " in error.message
    record_property("noticed after", seconds)
    print(f"{how}: noticed after {seconds:.2f} s")
    assert seconds < NOTICED
    again = until_it_works(training, deadline_in_ms=30_000)
    print(f"{how}: again after {again:.2f} s")
    values = training.session.run(training.values)
    assert all(training.steps + 1 <= v <= training.steps + 2 for v in values)
    other.goes_on()
    other.pause()
    other.session.close()
    training.go()


def test_a_slow_link_is_not_a_dead_one(hosts, training):
    try:
        hosts.delay(1, 100)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"tc cannot delay here: {error.stderr.strip()}")
    try:
        before = training.steps
        began = time.monotonic()
        eventually(lambda: training.steps > before + 5 or training.error is not None)
        assert training.error is None
        assert time.monotonic() - began >= 0.5
    finally:
        hosts.delay(1, 0)
    training.goes_on()


def test_an_open_address_without_tls_is_refused(hosts, monkeypatch):
    for name in [n for n in os.environ if n.startswith("HEADRACE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(PermissionDeniedError, match="HEADRACE_INSECURE"):
        tf.train.Server({"worker": [f"{hosts.here}:{PORT}"]})
