"""Programs whose first minute is timed: one text for both sides, with public 1.x names.

    python benchmarks/first_minute_workloads.py headrace|tensorflow PROGRAM STEPS

trains one for so many steps in this process and answers a line of JSON with the time of day at the
end of the import, of the first step and of the last one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import workloads
from model_workloads import classifier
from side import arguments_of_side

#: Trains one step; the other waits for those so far.
Program = tuple[Callable[[], Any], Callable[[], Any]]


def _started(tf: ModuleType, trains: list[Any], feed: dict[Any, np.ndarray]) -> Program:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    small = min(tf.trainable_variables(), key=lambda v: int(np.prod(v.shape.as_list())))
    return (
        lambda: [session.run(train, feed) for train in trains],
        lambda: session.run(small),
    )


def _pictures(
    tf: ModuleType, file: str, function: str, size: int, batch: int, **more: Any
) -> Program:
    """A network of `headrace.models`, Adam, as courses train it."""
    feed: dict[Any, np.ndarray] = {}
    loss = classifier(file, function, size, **more)(tf, batch, feed)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer(1e-4).minimize(loss)
    return _started(tf, [train], feed)


def _lstm(tf: ModuleType) -> Program:
    """Two layers of 200 units unrolled over 20 words, as in `make bench`."""
    step = workloads.lstm(tf)
    return step.run, step.sync


def _attention(tf: ModuleType) -> Program:
    """A GRU reads 12 words; one that looks at what it made writes 12, unrolled; Adam, clipped."""
    batch, length, units, vocabulary = 32, 12, 128, 1000
    rng = np.random.RandomState(0)
    source, before, target = (tf.placeholder(tf.int32, [batch, length]) for _ in range(3))
    embedding = tf.get_variable("embedding", [vocabulary, units])
    with tf.variable_scope("encoder"):
        memory, state = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.GRUCell(units),
            tf.nn.embedding_lookup(embedding, source),
            dtype=tf.float32,
        )
    query, keys = (tf.get_variable(n, [units, units]) for n in ("query", "keys"))
    score = tf.get_variable("score", [units])
    joined = tf.get_variable("joined", [2 * units, units])
    ready = tf.reshape(tf.matmul(tf.reshape(memory, [-1, units]), keys), [batch, length, units])
    words = tf.nn.embedding_lookup(embedding, before)
    cell, outputs = tf.nn.rnn_cell.GRUCell(units), []
    attention = tf.zeros([batch, units])
    with tf.variable_scope("decoder"):
        for t in range(length):
            output, state = cell(tf.concat([words[:, t], attention], 1), state)
            asked = tf.tanh(ready + tf.expand_dims(tf.matmul(output, query), 1))
            weights = tf.nn.softmax(tf.reduce_sum(asked * score, 2))
            context = tf.reduce_sum(tf.expand_dims(weights, 2) * memory, 1)
            attention = tf.tanh(tf.matmul(tf.concat([output, context], 1), joined))
            outputs.append(attention)
    logits = tf.layers.dense(tf.stack(outputs, 1), vocabulary)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
    )
    optimizer = tf.train.AdamOptimizer(1e-3)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
    train = optimizer.apply_gradients(zip(clipped, variables, strict=True))
    read, written = rng.randint(1, vocabulary, size=(2, batch, length)).astype(np.int32)
    shifted = np.pad(written[:, :-1], [(0, 0), (1, 0)])
    return _started(tf, [train], {source: read, before: shifted, target: written})


def _adversaries(tf: ModuleType) -> Program:
    """A generator of 784 pixels and its judge, dense; both take a step of Adam in turn."""
    batch, rng = 128, np.random.RandomState(0)
    noise, real = (tf.placeholder(tf.float32, [batch, n]) for n in (100, 784))

    def dense(x: Any, units: int, name: str, activation: Any = None) -> Any:
        return tf.layers.dense(x, units, activation, name=name, reuse=tf.AUTO_REUSE)

    def judge(x: Any) -> Any:
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            return dense(dense(x, 128, "hidden", tf.nn.leaky_relu), 1, "out")

    def cross_entropy(logits: Any, label: float) -> Any:
        labels = tf.fill(tf.shape(logits), label)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses)

    with tf.variable_scope("generator"):
        made = dense(dense(noise, 128, "hidden", tf.nn.relu), 784, "out", tf.sigmoid)
    told, fooled = judge(real), judge(made)
    losses = {
        "judge": cross_entropy(told, 1.0) + cross_entropy(fooled, 0.0),
        "generator": cross_entropy(fooled, 1.0),
    }
    trains = [
        tf.train.AdamOptimizer(1e-3).minimize(loss, var_list=tf.trainable_variables(name))
        for name, loss in losses.items()
    ]
    feed = {
        noise: rng.uniform(-1, 1, (batch, 100)).astype(np.float32),
        real: rng.random_sample((batch, 784)).astype(np.float32),
    }
    return _started(tf, trains, feed)


#: By name: what the table says of it, and what builds it.
PROGRAMS: dict[str, tuple[str, Callable[[Any], Program]]] = {
    "alexnet": (
        "AlexNet, batch 2",
        partial(_pictures, file="alexnet.py", function="alexnet", size=224, batch=2),
    ),
    "lstm": ("LSTM, 2 x 200, unrolled over 20 words", _lstm),
    "attention": ("seq2seq with attention, 12 words", _attention),
    "gan": ("GAN of dense layers, two steps each", _adversaries),
    "residual": (
        "ResNet-50 of a course, 64 x 64, batch 4",
        partial(
            _pictures,
            file="resnet.py",
            function="resnet_50",
            size=64,
            batch=4,
            classes=6,
            training=True,
        ),
    ),
}


def main() -> None:
    tf, (name, steps), answers = arguments_of_side()
    times = {"import": time.time()}
    step, wait = PROGRAMS[name][1](tf)
    times["built"] = time.time()
    for count in range(int(steps)):
        step()
        if count == 0:
            wait()
            times["first"] = time.time()
    wait()
    times["last"] = time.time()
    json.dump({"version": tf.__version__, "times": times}, answers)
    answers.flush()


if __name__ == "__main__":
    main()
