"""Synchronous training for `distributed.py`: replicas that wait for each other in every step."""

from __future__ import annotations

import numpy as np
from distributed_task import Program, Task

#: Four square layers of float32: 100 MB.
LAYERS, UNITS, BATCH = 4, 2560, 16


def sync_step(task: Task) -> Program:
    """A replica's step of synchronous training of a dense model, its layers on the servers."""
    tf = task.tf
    rng = np.random.RandomState(task.index)
    with tf.device(tf.train.replica_device_setter(worker_device=task.worker, cluster=task.cluster)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [BATCH, UNITS])
        hidden = x
        for i in range(LAYERS):
            start = tf.random_normal_initializer(stddev=UNITS**-0.5, seed=i)
            w = tf.get_variable(f"w{i}", [UNITS, UNITS], initializer=start, use_resource=True)
            hidden = tf.nn.relu(tf.matmul(hidden, w))
        loss = tf.reduce_mean(tf.square(hidden - 1.0))
        sgd = tf.train.GradientDescentOptimizer(0.1)
        optimizer = tf.train.SyncReplicasOptimizer(sgd, task.workers, task.workers)
        train = optimizer.minimize(loss, global_step=step)
    # Without tokens to begin with no replica runs ahead, so none is ever short of gradients.
    hook = optimizer.make_session_run_hook(task.index == 0, num_tokens=0)
    session = tf.train.MonitoredTrainingSession(
        task.target, task.index == 0, hooks=[hook], log_step_count_steps=None
    )
    feed = {x: np.abs(rng.normal(size=[BATCH, UNITS])).astype(np.float32)}
    taken = [0]

    def run() -> None:
        session.run(train, feed_dict=feed)
        taken[0] += 1

    def check() -> None:
        steps = int(session._tf_sess().run(step))
        if steps != taken[0]:
            raise AssertionError(f"{taken[0]} steps of this replica are {steps} updates")

    return Program(run, check)
