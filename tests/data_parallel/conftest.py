"""This process as a worker of a plain script."""

import json

import pytest

import headrace as tf
from headrace.data_parallel import start
from headrace.settings import flags
from headrace.test.cluster import free_ports


def _worker(monkeypatch, mode, index=1):
    hosts = [f"127.0.0.1:{p}" for p in free_ports(4)]
    cluster = {"ps": hosts[:2], "worker": hosts[2:]}
    task = {"type": "worker", "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    monkeypatch.setattr(flags, "data_parallel", mode)
    made = start.begin()
    try:
        with tf.Graph().as_default():
            yield made
    finally:
        start.end()


@pytest.fixture
def second(monkeypatch):
    """The second worker of two, asynchronous, until the test ends."""
    yield from _worker(monkeypatch, "async")


@pytest.fixture
def second_in_step(monkeypatch):
    """The second worker of two whose gradients are averaged."""
    yield from _worker(monkeypatch, "sync")


@pytest.fixture
def chief(monkeypatch):
    """The first worker of two, asynchronous, until the test ends."""
    yield from _worker(monkeypatch, "async", 0)
