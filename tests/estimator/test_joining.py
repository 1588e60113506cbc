"""TF_CONFIG of a process that joins a running cluster by an address."""

import json

import pytest

import headrace as tf
from headrace.test.cluster import free_ports


@pytest.fixture
def contact():
    ports = free_ports(2)
    jobs = {"ps": [f"127.0.0.1:{ports[0]}"], "chief": [f"127.0.0.1:{ports[1]}"]}
    servers = [tf.train.Server(jobs, job_name=job, task_index=0) for job in jobs]
    yield jobs["ps"][0]
    for server in servers:
        server.stop()


def _config(monkeypatch, **config):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    return tf.estimator.RunConfig()


def test_a_worker_joins_once_however_many_configurations_there_are(monkeypatch, contact):
    task = {"type": "worker"}
    config = _config(monkeypatch, cluster_address=contact, task=task)
    server = config._place.server
    try:
        assert (config.task_type, config.task_id, config.is_chief) == ("worker", 0, False)
        assert (config.num_ps_replicas, config.num_worker_replicas) == (1, 2)
        assert config.master == server.target
        assert config.session_config.device_filters[:] == ["/job:ps", "/job:worker/task:0"]
        again = _config(monkeypatch, cluster_address=contact, task=task)
        assert again._place.server is server
    finally:
        server.stop()
    other = _config(monkeypatch, cluster_address=contact, task=task)._place.server
    assert other is not server
    other.stop()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cluster_address": "a:1"}, "is a 'worker' or a 'ps': .* is None"),
        ({"cluster_address": "a:1", "task": {"type": "evaluator"}}, "leave the address out"),
        ({"cluster_address": "a", "task": {"type": "worker"}}, "no port"),
        ({"cluster_address": 3, "task": {"type": "worker"}}, "must be a string, not 3"),
        (
            {"cluster_address": "a:1", "cluster": {"chief": ["a:1"]}, "task": {"type": "worker"}},
            "has both 'cluster' and 'cluster_address'",
        ),
        ({"cluster": {"chief": ["a:1"]}, "replicas": "1"}, "must be an integer, not '1'"),
    ],
)
def test_what_makes_no_sense(monkeypatch, config, message):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(ValueError, match=message):
        tf.estimator.RunConfig()


def test_servers_keep_copies(monkeypatch):
    cluster = {"chief": ["a:1"], "ps": ["b:1", "c:1"]}
    task = {"type": "chief", "index": 0}
    config = _config(monkeypatch, cluster=cluster, task=task, replicas=1)
    assert config.cluster_spec.replicas == 1
