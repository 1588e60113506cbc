"""Tasks that reach each other at the port of the control plane only."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.transport import connect
from headrace.errors import UnavailableError


@pytest.fixture
def no_data_ports(monkeypatch):
    """Every connection to a data port fails, as behind a firewall."""

    def refuse(*args, **kwargs):
        raise UnavailableError(None, None, "refused")

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
