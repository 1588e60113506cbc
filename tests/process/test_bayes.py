"""Bayesian methods on a cluster of processes: chains on workers, an approximation on a server."""

import numpy as np
import pytest
from task_processes import Tasks

import headrace as tf

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(300)]


def test_chains_on_two_workers_and_batches_for_a_server():
    rng = np.random.default_rng(0)
    x = rng.normal(size=[300, 3]).astype(np.float32)
    y = (x @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=300)).astype(np.float32)
    model = tf.bayes.LinearRegression(noise_scale=0.5, num_rows=300)
    tasks = Tasks({"ps": 1, "worker": 2})
    try:
        with tf.Graph().as_default():
            exact = model.posterior(x, y)
            drawn = []
            for task in range(2):
                with tf.device(f"/job:worker/task:{task}"):
                    chains = tf.bayes.hmc.sample(
                        model.log_density(x, y), tf.zeros([3]), 300, 150, num_chains=2, seed=task
                    )
                    drawn.append(chains.samples)
            with tf.device(tf.train.replica_device_setter(1, worker_device="/job:worker/task:1")):
                rows = tf.placeholder(tf.int32, [30])
                q = tf.bayes.vi.MeanField(tf.zeros([3]))
                batch = tf.gather(x, rows), tf.gather(y, rows)
                loss = q.loss(model.log_density(*batch), num_draws=4, seed=1)
                train = tf.train.AdamOptimizer(0.02).minimize(loss)
            with tf.Session(tasks.target("worker")) as session:
                session.run(tf.global_variables_initializer())
                samples, exact = session.run([tf.concat(drawn, 0), exact])
                for _ in range(500):
                    session.run(train, {rows: rng.integers(0, 300, 30)})
                loc = session.run(q.loc)
    finally:
        tasks.kill_all()
    scale = np.sqrt(np.diag(exact.covariance))
    assert samples.shape == (4, 300, 3)
    np.testing.assert_allclose(samples.mean((0, 1)), exact.mean, atol=0.02)
    np.testing.assert_allclose(samples.std((0, 1)), scale, rtol=0.2)
    np.testing.assert_allclose(loc, exact.mean, atol=0.06)
