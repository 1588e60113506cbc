"""Tasks that reach each other at the port of the control plane only."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from server_clusters import eventually

import headrace as tf
from headrace.distributed.transport import connect
from headrace.errors import UnavailableError

PS = "/job:ps/replica:0/task:0"


def refuse(*args, **kwargs):
    raise UnavailableError(None, None, "refused")


@pytest.fixture
def no_data_ports(monkeypatch):
    """Every connection to a data port fails, as behind a firewall."""

    monkeypatch.setattr(connect, "dial", refuse)


def test_without_data_ports_tensors_go_through_grpc(no_data_ports, cluster):
    servers = cluster(ps=1, worker=1)
    x = tf.placeholder(tf.float32, [200_000])
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([200_000]), use_resource=True)
        doubled = v * 2.0
    with tf.device("/job:worker/task:0"):
        y = doubled + x
    with tf.Session(servers.target()) as sess:
        sess.run(v.initializer)
        value = sess.run(y, {x: np.arange(200_000)})
        (link,) = servers["worker", 0].task.peers.all()
        assert link.pipe.kind == "grpc"
    np.testing.assert_array_equal(value, np.arange(200_000) + 2)


def test_a_data_port_that_comes_back_is_used_again(cluster, monkeypatch, either):
    servers = cluster(ps=1, worker=1)
    for server in servers.servers.values():
        peers = server.task.peers
        monkeypatch.setattr(peers, "timing", dataclasses.replace(peers.timing, data_port=0.05))
    with pytest.MonkeyPatch.context() as meanwhile:
        meanwhile.setattr(connect, "dial", refuse)
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(3.0, use_resource=True)
        with tf.device("/job:worker/task:0"):
            y = v * 2.0
        sess = tf.Session(servers.target())
        sess.run(v.initializer)
        peers = servers["worker", 0].task.peers
        assert peers.known(PS).pipe.kind == "grpc"
        assert sess.run(y) == 6.0
    with sess:
        assert eventually(lambda: peers.known(PS).pipe.kind != "grpc")
        assert sess.run(y) == 6.0
        assert peers.known(PS).stats.frames_out > 1
        assert not peers.known(PS).lost
        # What was on its way over the old link still arrives.
        old = [link for link in peers.all() if link.pipe.kind == "grpc" and link.peer.task == PS]
        assert len(old) == 1
        assert not old[0].lost
        assert eventually(lambda: not peers._fallbacks)
