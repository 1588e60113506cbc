"""The ranking model of `distributed.py`: many sparse features, their rows on the servers.

100 features share one table of 10^7 rows of 64 floats, half of it on each server: 2.56 GB, and as
much again for Adagrad's sums. A table for each feature would take 500 GB. Each of the 512 examples
has one id of each feature, by Zipf's law: 51,200 ids a step, other ones in every step, and another
number of distinct ones. They are looked up as feature columns do it, each distinct id once.
`--rows 100000` makes a table that fits small machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed_task import Program, Task

BATCH, FEATURES, WIDTH, UNITS = 512, 100, 64, 16
ROWS = 10**7
#: Batches of a worker; with the first of them both sides are warmed up, whatever they compile.
_DRAWN, _WARM = 64, 12


def features_step(task: Task, rows: int = ROWS) -> Program:
    """A worker's asynchronous step: 512 examples, Adagrad."""
    tf = task.tf
    partitioner = tf.fixed_size_partitioner(task.servers)
    setter = tf.train.replica_device_setter(worker_device=task.worker, cluster=task.cluster)
    with tf.device(setter), tf.variable_scope("model", use_resource=True):
        ids = tf.placeholder(tf.int64, [BATCH, FEATURES])
        labels = tf.placeholder(tf.float32, [BATCH])
        table = tf.get_variable(
            "table", [rows, WIDTH], initializer=tf.zeros_initializer(), partitioner=partitioner
        )
        count = BATCH * FEATURES
        places = np.stack([np.arange(count), np.zeros(count)], axis=1).astype(np.int64)
        flat = tf.SparseTensor(places, tf.reshape(ids, [-1]), [count, 1])
        found = tf.nn.embedding_lookup_sparse(table, flat, None, combiner="sum")
        inputs = tf.reshape(found, [BATCH, FEATURES * WIDTH])
        hidden = tf.tanh(_dense(tf, "hidden", inputs, UNITS))
        logits = tf.reshape(_dense(tf, "logits", hidden, 1), [-1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    session = task.session()
    fed = [_drawn(rows, task.index * _DRAWN + i) for i in range(_DRAWN)]
    turn = 0

    def feed() -> dict[Any, Any]:
        nonlocal turn
        turn += 1
        chosen, clicked = fed[turn % _DRAWN]
        return {ids: chosen, labels: clicked}

    untrained = float(np.log(2.0))

    def check() -> None:
        value = float(session.run(loss, feed()))
        if not value < untrained - 0.02:
            raise AssertionError(f"the loss is {value}, not below {untrained}: nothing was learned")

    for _ in range(_WARM):
        session.run(train, feed())
    return Program(lambda: session.run(train, feed()), check)


def _dense(tf: Any, name: str, inputs: Any, units: int) -> Any:
    uniform = tf.random_uniform_initializer(-0.05, 0.05, seed=1)
    kernel = tf.get_variable(name, [inputs.shape[1], units], initializer=uniform)
    bias = tf.get_variable(f"{name}_bias", [units], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, kernel) + bias


def _drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids ``[batch, features]``, spread over the table, and labels that the first one tells."""
    rng = np.random.default_rng(seed)
    values = rng.zipf(1.1 + 0.1 * rng.random(), (BATCH, FEATURES))
    spread = (values % rows * 2_654_435_761 + np.arange(FEATURES) * 40_503) % rows
    return spread, (values[:, 0] % 5 == 0).astype(np.float32)
