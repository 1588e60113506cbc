"""Fixtures of clusters of real servers in this process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from server_clusters import Cluster, eventually, open_sockets, our_threads

import headrace as tf
from headrace.distributed.services import client


@pytest.fixture(scope="session")
def _warm() -> None:
    """The first server of a process opens what gRPC keeps for later ones."""
    server = tf.train.Server.create_local_server()
    tf.Session(server.target).list_devices()
    server.stop()


@pytest.fixture
def cluster(_warm: None) -> Iterator[Callable[..., Cluster]]:
    """``cluster(ps=2, worker=3)`` starts all tasks; with ``start=False`` none.

    At the end nothing must be left: steps, plans, sessions, threads, sockets, shared memory.
    """
    threads, sockets = our_threads(), open_sockets()
    made: list[Cluster] = []

    def make(config: Any = None, start: bool = True, **jobs: int) -> Cluster:
        one = Cluster(config, **jobs)
        made.append(one)
        return one.start_all() if start else one

    yield make
    left: list[Any] = []
    for one in made:
        eventually(lambda: not one.leftovers())  # noqa: B023
        left += one.leftovers()
        one.stop()
    assert not left, left
    gc.collect()
    assert eventually(lambda: not our_threads() - threads), our_threads() - threads
    assert eventually(lambda: not open_sockets() - sockets), open_sockets() - sockets


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions act as if no server were in this process: everything crosses the network."""
    monkeypatch.setattr(client, "local_server", lambda address: None)


@pytest.fixture(params=["local", "remote"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice: with the master in the client's process, and as if in another."""
    if request.param == "remote":
        monkeypatch.setattr(client, "local_server", lambda address: None)
    return str(request.param)
