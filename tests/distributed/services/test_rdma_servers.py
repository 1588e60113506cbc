"""Servers of the protocol "grpc+rdma"."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.transport import connect, rdma
from headrace.settings import flags
from headrace.test.cluster import free_ports


@pytest.mark.skipif(not rdma.available(), reason="UCX is not installed (headrace[rdma])")
def test_rdma_takes_the_place_of_tcp(monkeypatch):
    # In one process and on one host there is something better: act as if on two.
    monkeypatch.setattr(flags, "shared_memory", False)
    monkeypatch.setattr(connect, "dial", partial(connect.dial, allow_inproc=False))
    jobs = ("ps", "worker")
    spec = {job: [f"127.0.0.1:{port}"] for job, port in zip(jobs, free_ports(2), strict=True)}
    ps, worker = [tf.train.Server(spec, job_name=job, protocol="grpc+rdma") for job in jobs]
    try:
        fed = tf.placeholder(tf.float32, [100_000])
        with tf.device("/job:ps/task:0"):
            doubled = fed * 2.0
        with tf.device("/job:worker/task:0"):
            result = doubled + 1.0
        with tf.Session(worker.target) as sess:
            value = sess.run(result, {fed: np.ones(100_000)})
            (link,) = worker.task.peers.all()
            assert link.pipe.kind == "rdma"
        np.testing.assert_array_equal(value, np.full(100_000, 3.0))
    finally:
        worker.stop()
        ps.stop()
