"""Synchronous replicas: what N of them train is what one trains on N-fold batches."""

import numpy as np
import pytest
from every_optimizer import OPTIMIZERS
from sync_training import Replica, shares, together

import headrace as tf

STEPS, REPLICAS = 3, 2
RNG = np.random.RandomState(7)
INPUTS = RNG.normal(size=(STEPS, 8, 4)).astype(np.float32)
TARGETS = RNG.normal(size=(STEPS, 8, 3)).astype(np.float32)
IDS = RNG.permutation(24).reshape(STEPS, 8)


def dense_model(rows):
    """A linear model on a part of each batch."""
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 3])
    start = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
    w = tf.get_variable("w", initializer=start)
    b = tf.get_variable("b", initializer=tf.zeros([3]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    return loss, step, lambda i: {x: INPUTS[i % STEPS, rows], y: TARGETS[i % STEPS, rows]}


def sparse_model(rows):
    """Rows of an embedding; no row is in two parts of a batch."""
    step = tf.train.get_or_create_global_step()
    ids, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 3])
    start = np.linspace(-1.0, 1.0, 72, dtype=np.float32).reshape(24, 3)
    table = tf.get_variable("table", initializer=start)
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids) - y))
    return loss, step, lambda i: {ids: IDS[i % STEPS, rows], y: TARGETS[i % STEPS, rows]}


def alone(model, optimizer):
    """The variables after training on whole batches in one process."""
    with tf.Graph().as_default():
        loss, step, feeds = model(slice(None))
        train = optimizer().minimize(loss, global_step=step)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for i in range(STEPS):
                sess.run(train, feeds(i))
            return sess.run(tf.trainable_variables())


#: The others are as slow, and differ in the step of the chief only.
QUICK = ("momentum", "adam", "adagrad")


@pytest.mark.parametrize("model", [dense_model, sparse_model])
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OPTIMIZERS]
)
def test_replicas_train_as_one_does_on_their_batches_together(cluster, name, model):
    servers = cluster(ps=2, worker=REPLICAS)
    replicas = [
        Replica(
            servers,
            i,
            lambda rows=rows: model(rows),
            lambda: tf.train.SyncReplicasOptimizer(OPTIMIZERS[name](), REPLICAS),
        )
        for i, rows in enumerate(shares(8, REPLICAS))
    ]
    found = together(replicas, STEPS)
    assert [r.tokens for r in replicas] == [[1, 2, 3]] * REPLICAS
    for got, expected in zip(found, alone(model, OPTIMIZERS[name]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)
