"""Samplers and variational inference on clusters, within one process."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster


def log_density(x):
    return -0.5 * tf.reduce_sum(tf.square((x - 3.0) / 2.0))


@pytest.mark.slow
def test_chains_run_on_all_workers_and_are_judged_together():
    with with_cluster(worker=2) as cluster, tf.Graph().as_default():
        drawn = []
        for task in range(2):
            with tf.device(f"/job:worker/task:{task}"):
                chains = tf.bayes.hmc.sample(
                    log_density, tf.zeros([2]), 400, num_warmup=200, num_chains=2, seed=task
                )
                drawn.append(chains.samples)
        samples = tf.concat(drawn, 0)
        with tf.Session(cluster.target("worker")) as session:
            found, quality = session.run([samples, tf.bayes.summary(samples)])
    assert found.shape == (4, 400, 2)
    assert (found[:2] != found[2:]).any()
    np.testing.assert_allclose(quality.mean, 3.0, atol=0.4)
    np.testing.assert_allclose(quality.stddev, 2.0, rtol=0.15)
    assert (quality.rhat < 1.05).all()


@pytest.mark.slow
def test_workers_train_one_approximation_on_a_server_with_batches_of_their_own():
    """Asynchronous: variables on the server, each worker with other rows of the data."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=[400, 3]).astype(np.float32)
    y = (x @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=400)).astype(np.float32)
    model = tf.bayes.LinearRegression(noise_scale=0.5, num_rows=400)
    ready = threading.Event()
    failures = []

    with with_cluster(ps=1, worker=2) as cluster:

        def work(task):
            with tf.Graph().as_default():
                device = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{task}")
                with tf.device(device):
                    step = tf.train.get_or_create_global_step()
                    rows = tf.placeholder(tf.int32, [40])
                    batch = tf.gather(x[task::2], rows), tf.gather(y[task::2], rows)
                    q = tf.bayes.vi.MeanField(tf.zeros([3]))
                    loss = q.loss(model.log_density(*batch), num_draws=4, seed=task)
                    rate = tf.train.exponential_decay(0.05, step, 300, 0.5)
                    train = tf.train.AdamOptimizer(rate).minimize(loss, step)
                assert q.loc.device == "/job:ps/task:0"
                with tf.Session(cluster.target("worker", task)) as session:
                    if task == 0:
                        session.run(tf.global_variables_initializer())
                        ready.set()
                    ready.wait(60)
                    draw = np.random.default_rng(task)
                    for _ in range(750):
                        session.run(train, {rows: draw.integers(0, 200, 40)})
                    return session.run([q.loc, q.scale, step])

        def other():
            try:
                work(1)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        loc, scale, steps = work(0)
        thread.join()
    assert not failures
    assert steps > 750
    with tf.Graph().as_default(), tf.Session() as session:
        exact = session.run(model.posterior(x, y))
    np.testing.assert_allclose(loc, exact.mean, atol=0.05)
    np.testing.assert_allclose(scale, np.diag(np.linalg.inv(exact.covariance)) ** -0.5, rtol=0.3)
