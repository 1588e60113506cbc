"""Training in replicas equals training by one with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.distribute import MirroredStrategy, ReduceOp
from headrace.distribute.experimental import CentralStorageStrategy

DEVICES = ["/cpu:0", "/cpu:1", "/cpu:2"]
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.01),
}
STRATEGIES = {
    "mirrored": lambda: MirroredStrategy(DEVICES),
    "central": lambda: CentralStorageStrategy(DEVICES, "/cpu:0"),
}
QUICK = ("momentum", "mirrored")
WORDS = np.array([[0, 1], [1, 3], [3, 3], [2, 0], [5, 1], [0, 0]], np.int32)
TARGETS = np.linspace(-1.0, 1.0, 6).astype(np.float32)


def build(optimizer, words, targets, total):
    """A step on some rows: the loss is their part of the mean over the whole batch."""
    table = tf.get_variable("table", initializer=np.linspace(0, 1, 24, dtype="f").reshape(6, 4))
    weights = tf.get_variable("weights", initializer=np.linspace(-1, 1, 4, dtype="f").reshape(4, 1))
    rows = tf.reduce_sum(tf.nn.embedding_lookup(table, words), 1)
    errors = tf.squeeze(tf.matmul(rows, weights), 1) - targets
    loss = tf.reduce_sum(tf.square(errors)) / total
    step = tf.train.get_or_create_global_step()
    train = optimizer().minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        return tf.identity(loss)


def trained(optimizer, make_strategy=None):
    """Losses of three steps, and all variables then."""
    with tf.Graph().as_default():
        config = tf.ConfigProto()
        if make_strategy is None:
            loss = build(optimizer, WORDS, TARGETS, 6.0)
        else:
            strategy = make_strategy()
            config = strategy.update_config_proto(config)
            with strategy.scope():
                data = tf.data.Dataset.from_tensor_slices((WORDS, TARGETS)).batch(6).repeat()
                batches = strategy.experimental_distribute_dataset(data).make_one_shot_iterator()
                losses = strategy.experimental_run_v2(
                    lambda words, targets: build(optimizer, words, targets, 6.0),
                    args=batches.get_next(),
                )
                loss = strategy.reduce(ReduceOp.SUM, losses)
        names = [v.op.name for v in tf.global_variables()]
        copies = [c for v in tf.global_variables() for c in getattr(v, "values", ())[1:]]
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run(loss) for _ in range(3)]
            values = session.run(tf.global_variables())
            others = session.run([c.value() for c in copies])
        firsts = [
            x
            for v, x in zip(tf.global_variables(), values, strict=True)
            for _ in getattr(v, "values", ())[1:]
        ]
    for first, other in zip(firsts, others, strict=True):
        np.testing.assert_array_equal(first, other)
    return found, dict(zip(names, values, strict=True))


ALL = [
    pytest.param(name, kind, marks=() if (name, kind) == QUICK else pytest.mark.slow)
    for name in OPTIMIZERS
    for kind in STRATEGIES
]


@pytest.mark.parametrize(("name", "kind"), ALL)
def test_replicas_learn_what_one_learns_from_the_whole_batch(name, kind):
    losses, values = trained(OPTIMIZERS[name])
    found_losses, found = trained(OPTIMIZERS[name], STRATEGIES[kind])
    np.testing.assert_allclose(found_losses, losses, rtol=1e-4)
    assert sorted(found) == sorted(values)
    for variable, value in values.items():
        np.testing.assert_allclose(found[variable], value, rtol=2e-4, atol=1e-6, err_msg=variable)
