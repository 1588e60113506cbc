"""The language model of `distributed.py`, in the shape of the paper's.

Abadi et al., "TensorFlow: a system for large-scale machine learning" (2016), section 6.4: an LSTM
of 512 units over a vocabulary of 40,000, whose embedding and softmax lie on the parameter servers.
The full softmax is multiplied, and its gradient made, where its parts are; the sampled one fetches
the rows of 512 drawn classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed_task import Program, Task

VOCABULARY, UNITS, SAMPLED = 40_000, 512, 512
SENTENCES, STEPS = 16, 20
#: Words of a step: what the table calls a step, times this, are words.
WORDS = SENTENCES * STEPS


def language_step(task: Task, sampled: bool) -> Program:
    """A worker's asynchronous step: 320 words, Adagrad."""
    tf = task.tf
    partitioner = tf.fixed_size_partitioner(task.servers)
    rng = np.random.RandomState(task.index)
    setter = tf.train.replica_device_setter(worker_device=task.worker, cluster=task.cluster)
    with tf.device(setter), tf.variable_scope("model", use_resource=True):
        words = tf.placeholder(tf.int32, [SENTENCES, STEPS])
        targets = tf.placeholder(tf.int64, [SENTENCES, STEPS])

        def table(name: str, shape: list[int]) -> Any:
            uniform = tf.random_uniform_initializer(-0.05, 0.05, seed=1)
            return tf.get_variable(name, shape, initializer=uniform, partitioner=partitioner)

        embedding, weights = (table(n, [VOCABULARY, UNITS]) for n in ("embedding", "softmax"))
        biases = table("biases", [VOCABULARY])
        inputs = tf.nn.embedding_lookup(embedding, words, partition_strategy="div")
        outputs = _lstm(tf, inputs)
        labels = tf.reshape(targets, [-1])
        if sampled:
            losses = tf.nn.sampled_softmax_loss(
                list(weights),
                list(biases),
                tf.reshape(labels, [-1, 1]),
                outputs,
                SAMPLED,
                VOCABULARY,
                partition_strategy="div",
            )
        else:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=_logits(tf, outputs, weights, biases)
            )
        loss = tf.reduce_mean(losses)
        optimizer = tf.train.AdagradOptimizer(0.2)
        train = optimizer.minimize(loss, colocate_gradients_with_ops=True)
    session = task.session()

    def feed() -> dict[Any, Any]:
        # Half of the text is a word that the model can learn to expect.
        text = rng.zipf(1.3, (SENTENCES, STEPS + 1)).clip(max=VOCABULARY) - 1
        text[:, ::2] = 1
        return {words: text[:, :-1], targets: text[:, 1:]}

    first = float(session.run(loss, feed()))

    def check() -> None:
        value = float(session.run(loss, feed()))
        if not value < first - 1.0:
            raise AssertionError(f"the loss was {first}, and is {value}: nothing was learned")

    return Program(lambda: session.run(train, feed()), check)


def _lstm(tf: Any, inputs: Any) -> Any:
    """The outputs ``[sentences * steps, units]`` of an LSTM over ``[sentences, steps, units]``."""
    uniform = tf.random_uniform_initializer(-0.05, 0.05, seed=2)
    kernel = tf.get_variable("kernel", [2 * UNITS, 4 * UNITS], initializer=uniform)
    bias = tf.get_variable("bias", [4 * UNITS], initializer=tf.zeros_initializer())
    c = h = tf.zeros([SENTENCES, UNITS])
    outputs = []
    for t in range(STEPS):
        gates = tf.matmul(tf.concat([inputs[:, t, :], h], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        outputs.append(h)
    return tf.reshape(tf.stack(outputs, 1), [-1, UNITS])


def _logits(tf: Any, outputs: Any, weights: Any, biases: Any) -> Any:
    """The part of each server is multiplied there."""
    parts = []
    for part, bias in zip(weights, biases, strict=True):
        with tf.colocate_with(part.op):
            parts.append(tf.matmul(outputs, part, transpose_b=True) + bias)
    return tf.concat(parts, 1)
