"""The work that is timed: one program text for both sides, written with public 1.x names.

A workload builds its graph in the default graph of `tf` (`tensorflow.compat.v1` or `headrace`) and
answers what one step is. Plain JAX counterparts are in `jax_workloads.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import checkpoint_workloads
import convolution_cases
import numpy as np
import operation_cases
import sparse_workloads
from convolution_cases import Convolution, square


@dataclass(frozen=True)
class Step:
    """One step, and what makes sure that all steps so far are done.

    `run` may answer the seconds it took, when only a part of what it does is to be timed.
    Of steps that sides are compared by, `values` runs one and answers what it made.
    """

    run: Callable[[], float | None]
    sync: Callable[[], Any] = lambda: None
    values: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Workload:
    """A row of the table. `target` bounds the time of Headrace over the time of the `baseline`."""

    name: str
    title: str
    target: float
    build: Callable[[Any], Step] | None
    baseline: str = "tensorflow"
    fresh: bool = False  # every repetition in a process of its own, with an empty compile cache
    alone: bool = False  # so large that one side runs at a time, in a process of its own
    sides: tuple[str, ...] = ("headrace", "tensorflow")
    asked_for: bool = False  # only timed when it is named


#: The sides of `accelerators.py`.
ACCELERATED = ("headrace", "jax", "torch")


@dataclass
class _Model:
    """Session and training step of one model: the part that all training workloads share."""

    tf: Any
    train: Any
    watched: Any
    feed: dict[Any, np.ndarray] = field(default_factory=dict)

    def step(self) -> Step:
        session = self.tf.Session()
        session.run(self.tf.global_variables_initializer())

        def run() -> None:
            session.run(self.train, feed_dict=self.feed)

        return Step(run, lambda: session.run(self.watched))


def digits(batch: int, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Noise in the form of MNIST: pixels [batch, 784] and labels [batch, classes], one-hot."""
    rng = np.random.RandomState(0)
    x = rng.random_sample((batch, 784)).astype(np.float32)
    return x, np.eye(classes, dtype=np.float32)[rng.randint(classes, size=batch)]


def no_op(tf: ModuleType) -> Step:
    session, fetch = tf.Session(), tf.no_op()
    return Step(lambda: session.run(fetch))


def constant(tf: ModuleType) -> Step:
    session, fetch = tf.Session(), tf.constant(1.0)
    return Step(lambda: session.run(fetch))


def softmax(tf: ModuleType) -> Step:
    images, labels = digits(100)
    x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, w) + b)
    loss = -tf.reduce_sum(y_ * tf.log(y))
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss)
    return _Model(tf, train, b, {x: images, y_: labels}).step()


def mlp(tf: ModuleType) -> Step:
    images, labels = digits(100)
    x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    rng, h = np.random.RandomState(1), x
    for i, (fan_in, fan_out) in enumerate(((784, 512), (512, 512), (512, 10))):
        scale = np.float32(np.sqrt(2 / fan_in))
        w = tf.Variable(rng.standard_normal((fan_in, fan_out)).astype(np.float32) * scale)
        b = tf.Variable(tf.zeros([fan_out]))
        h = tf.matmul(h, w) + b
        h = tf.nn.relu(h) if i < 2 else h
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=h))
    train = tf.train.AdamOptimizer(1e-4).minimize(loss)
    return _Model(tf, train, b, {x: images, y_: labels}).step()


def chain(tf: ModuleType) -> Step:
    x = tf.placeholder(tf.float32, [10])
    y = x
    for i in range(500):
        y = tf.tanh(y + 0.01 * (i % 7))
    session, feed = tf.Session(), {x: np.zeros(10, np.float32)}
    return Step(lambda: session.run(y, feed_dict=feed))


def side_by_side(tf: ModuleType) -> Step:
    x = tf.placeholder(tf.float32, [10])
    fetches = [x + float(i) for i in range(1000)]
    session, feed = tf.Session(), {x: np.zeros(10, np.float32)}
    return Step(lambda: session.run(fetches, feed_dict=feed))


def wide(tf: ModuleType) -> Step:
    rng = np.random.RandomState(4)
    x = tf.placeholder(tf.float32, [4, 8])

    def value(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    y = tf.add_n([tf.matmul(x, value(8, 8)) + value(8) for _ in range(1000)])
    session, feed = tf.Session(), {x: value(4, 8)}

    def run() -> None:
        session.run(y, feed_dict=feed)

    return Step(run)


def _deep_graph(tf: ModuleType) -> tuple[Any, Any, dict[Any, np.ndarray]]:
    """About 10,000 ops in TensorFlow's count: 525 layers of four ops, and their gradients."""
    x = tf.placeholder(tf.float32, [8, 16])
    variables = [tf.Variable(tf.ones([16]) * 0.5) for _ in range(10)]
    h = x
    for i in range(525):
        h = tf.tanh(h * variables[i % 10] + x) - 0.1
    gradients = tf.gradients(tf.reduce_sum(h), variables)
    return gradients, tf.global_variables_initializer(), {x: np.ones((8, 16), np.float32)}


def build_graph(tf: ModuleType) -> Step:
    def run() -> float:
        with tf.Graph().as_default():
            start = time.perf_counter()
            _deep_graph(tf)
            return time.perf_counter() - start

    return Step(run)


def first_step(tf: ModuleType) -> Step:
    def run() -> float:
        with tf.Graph().as_default(), tf.Session() as session:
            gradients, initialise, feed = _deep_graph(tf)
            session.run(initialise)
            start = time.perf_counter()
            session.run(gradients, feed_dict=feed)
            return time.perf_counter() - start

    return Step(run)


def lstm(tf: ModuleType) -> Step:
    batch, steps, size, vocabulary, layers = 20, 20, 200, 10_000, 2
    rng = np.random.RandomState(2)

    def weights(*shape: int) -> Any:
        return tf.Variable(rng.uniform(-0.1, 0.1, shape).astype(np.float32))

    words = tf.placeholder(tf.int32, [batch, steps])
    targets = tf.placeholder(tf.int32, [batch, steps])
    embedding = weights(vocabulary, size)
    cells = [(weights(2 * size, 4 * size), weights(4 * size)) for _ in range(layers)]
    out_w, out_b = weights(size, vocabulary), weights(vocabulary)
    inputs = tf.nn.embedding_lookup(embedding, words)
    state = [(tf.zeros([batch, size]), tf.zeros([batch, size])) for _ in range(layers)]
    outputs = []
    for t in range(steps):
        x = inputs[:, t, :]
        for layer, (w, b) in enumerate(cells):
            c, h = state[layer]
            i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w) + b, 4, axis=1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            x = h = tf.tanh(c) * tf.sigmoid(o)
            state[layer] = (c, h)
        outputs.append(x)
    logits = tf.matmul(tf.reshape(tf.stack(outputs, 1), [-1, size]), out_w) + out_b
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(targets, [-1]), logits=logits
    )
    loss = tf.reduce_sum(losses) / batch
    variables = [embedding, *(v for cell in cells for v in cell), out_w, out_b]
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    train = optimizer.apply_gradients(list(zip(clipped, variables, strict=True)))
    tokens = rng.randint(vocabulary, size=(batch, steps + 1)).astype(np.int32)
    return _Model(tf, train, cells[0][1], {words: tokens[:, :-1], targets: tokens[:, 1:]}).step()


def alexnet(tf: ModuleType, batch: int = 16, half: bool = False) -> Step:
    """The "one weird trick" AlexNet of convnet-benchmarks, forward, backward and update.

    With `half`, layers compute in bfloat16 and variables stay float32.
    """
    rng = np.random.RandomState(3)
    dtype = tf.bfloat16 if half else tf.float32

    def weights(*shape: int) -> Any:
        fan_in = np.prod(shape[:-1])
        values = rng.standard_normal(shape).astype(np.float32) * np.float32(np.sqrt(2 / fan_in))
        initial = tf.placeholder(tf.float32, shape)
        feed[initial] = values
        return cast(tf.Variable(initial))

    def cast(x: Any) -> Any:
        return tf.cast(x, dtype) if half else x

    def convolve(x: Any, size: int, out: int, stride: int, margin: int) -> Any:
        if margin:
            x = tf.pad(x, [[0, 0], [margin, margin], [margin, margin], [0, 0]])
        w = weights(size, size, int(x.shape[3]), out)
        y = tf.nn.conv2d(x, w, strides=[1, stride, stride, 1], padding="VALID")
        return tf.nn.relu(tf.nn.bias_add(y, cast(tf.Variable(tf.zeros([out])))))

    def pool(x: Any) -> Any:
        return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "VALID")

    def dense(x: Any, out: int) -> Any:
        return tf.matmul(x, weights(int(x.shape[1]), out)) + cast(tf.Variable(tf.zeros([out])))

    feed: dict[Any, np.ndarray] = {}
    images = tf.placeholder(tf.float32, [batch, 224, 224, 3])
    labels = tf.placeholder(tf.int32, [batch])
    x = pool(convolve(cast(images), 11, 64, 4, 2))
    x = pool(convolve(x, 5, 192, 1, 2))
    x = convolve(x, 3, 384, 1, 1)
    x = convolve(x, 3, 256, 1, 1)
    x = pool(convolve(x, 3, 256, 1, 1))
    x = tf.nn.relu(dense(tf.reshape(x, [batch, 6 * 6 * 256]), 4096))
    logits = dense(tf.nn.relu(dense(x, 4096)), 1000)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.cast(logits, tf.float32)
        )
    )
    train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer(), feed_dict=feed)
    data = {
        images: rng.random_sample((batch, 224, 224, 3)).astype(np.float32),
        labels: rng.randint(1000, size=batch).astype(np.int32),
    }
    bias = tf.trainable_variables()[-1]
    return Step(lambda: session.run(train, feed_dict=data), lambda: session.run(bias))


def product(tf: ModuleType, size: int, dtype: str) -> Step:
    """One product of square matrices a step, which stay on the device."""
    values = np.random.RandomState(0).standard_normal((size, size)).astype(np.float32)
    initial = tf.placeholder(tf.float32, [size, size])
    x, y = (tf.Variable(tf.cast(initial, dtype)) for _ in range(2))
    train = tf.assign(y, tf.matmul(y, x) / tf.cast(size**0.5, dtype)).op
    session = tf.Session()
    session.run(tf.global_variables_initializer(), {initial: values})
    watched = y[0, 0]
    return Step(lambda: session.run(train), lambda: session.run(watched))


def feed(tf: ModuleType, megabytes: int) -> Step:
    """Numbers from the host, added up on the device."""
    x = tf.placeholder(tf.float32, [megabytes << 18])
    total, session = tf.reduce_sum(x), tf.Session()
    data = {x: np.ones(megabytes << 18, np.float32)}
    return Step(lambda: session.run(total, data) and None)


def fetch(tf: ModuleType, megabytes: int) -> Step:
    """Numbers from the device to the host."""
    made, session = tf.Variable(tf.ones([megabytes << 18])) + 1.0, tf.Session()
    session.run(tf.global_variables_initializer())

    def run() -> None:
        session.run(made)

    return Step(run)


def lengths(tf: ModuleType) -> Step:
    """An LSTM of 64 units over 32 sequences of another length at each step, Adam."""
    rng = np.random.RandomState(6)
    x = tf.placeholder(tf.float32, [None, None, 32])
    labels = tf.placeholder(tf.int64, [None])
    cell = tf.nn.rnn_cell.BasicLSTMCell(64)
    _, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    logits = tf.matmul(state.h, tf.get_variable("weights", [64, 10]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    return _changing(
        tf,
        [tf.train.AdamOptimizer(1e-3).minimize(loss), loss],
        lambda: {x: rng.rand(32, rng.randint(1, 101), 32), labels: rng.randint(0, 10, 32)},
    )


def batches(tf: ModuleType) -> Step:
    """Two convolutions over 1 to 64 images, another number at each step, Adam."""
    rng = np.random.RandomState(7)
    x = tf.placeholder(tf.float32, [None, 32, 32, 3])
    labels = tf.placeholder(tf.int64, [None])
    h: Any = x
    for i, (inputs, outputs) in enumerate([(3, 16), (16, 32)]):
        w = tf.get_variable(f"w{i}", [3, 3, inputs, outputs])
        h = tf.nn.relu(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    logits = tf.matmul(tf.reduce_mean(h, [1, 2]), tf.get_variable("weights", [32, 10]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)

    def feed() -> dict[Any, np.ndarray]:
        size = rng.randint(1, 65)
        return {x: rng.rand(size, 32, 32, 3), labels: rng.randint(0, 10, size)}

    return _changing(tf, [tf.train.AdamOptimizer(1e-3).minimize(loss), loss], feed)


def growing_sequence(tf: ModuleType) -> Step:
    """A loop that makes 40 rows, each of all rows before it: the sampling of a text, say."""
    size, rounds, rng = 64, 40, np.random.RandomState(8)
    into, out = (
        tf.constant(rng.standard_normal((size, size)).astype(np.float32) / 8) for _ in range(2)
    )
    first = tf.placeholder(tf.float32, [1, size])

    def body(i: Any, past: Any) -> tuple[Any, Any]:
        last = past[-1:]
        scores = tf.matmul(tf.matmul(last, into), past, transpose_b=True) / 8.0
        seen = tf.matmul(tf.nn.softmax(scores), past)
        return i + 1, tf.concat([past, tf.tanh(tf.matmul(seen, out) + last)], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([None, size])]
    _, rows = tf.while_loop(lambda i, _: i < rounds, body, [0, first], shapes)
    session, start = tf.Session(), {first: rng.rand(1, size)}

    def run() -> None:
        session.run(rows, start)

    return Step(run)


def growing_graph(tf: ModuleType) -> Step:
    """Three convolutions over 32 images, by a fetch that is new at each step."""
    rng = np.random.RandomState(9)
    x = tf.placeholder(tf.float32, [None, 32, 32, 3])
    h: Any = x
    for i, (inputs, outputs) in enumerate([(3, 32), (32, 32), (32, 64)]):
        w = tf.get_variable(f"w{i}", [3, 3, inputs, outputs])
        h = tf.nn.relu(tf.nn.conv2d(h, w, [1, 2, 2, 1], "SAME"))
    means = tf.reduce_mean(h, [1, 2])
    session, images = tf.Session(), rng.rand(32, 32, 32, 3)
    session.run(tf.global_variables_initializer())

    def run() -> None:
        session.run(tf.argmax(means, 1), {x: images})

    return Step(run)


def _changing(tf: ModuleType, fetches: list[Any], feed: Callable[[], dict[Any, Any]]) -> Step:
    """Steps with sizes that change, after the first of them."""
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    for _ in range(_STEPS_BEFORE):
        session.run(fetches, feed())

    def run() -> None:
        session.run(fetches, feed())

    return Step(run)


def initializer(name: str) -> Callable[[ModuleType], Step]:
    """The first run of a graph that fills a variable with 14 million numbers."""

    def build(tf: ModuleType) -> Step:
        def run() -> float:
            with tf.Graph().as_default(), tf.Session() as session:
                v = tf.Variable(getattr(tf, name)([14_000_000], stddev=0.1, seed=5))
                initialise, last = v.initializer, v[-1]
                start = time.perf_counter()
                session.run(initialise)
                seconds = time.perf_counter() - start
                session.run(last)
                return seconds

        return Step(run)

    return build


def sparse(tf: ModuleType, build: Callable[[Any], sparse_workloads.Graph]) -> Step:
    train, feed = build(tf)
    watched = tf.global_variables()[-1][:1]
    return _Model(tf, train, watched, feed).step()


#: Steps before those that are timed where sizes change.
_STEPS_BEFORE = 200


def checkpoint(
    tf: ModuleType, timed: Callable[[checkpoint_workloads.Checkpoint], Any], megabytes: int
) -> Step:
    made = checkpoint_workloads.Checkpoint(tf, megabytes)
    return Step(lambda: timed(made))


def _convolution(case: Convolution) -> Workload:
    def build(tf: ModuleType) -> Step:
        session, run, results = case.build(tf)
        rank = len(results[0].shape)
        # A number that is there after the step.
        watched = tf.reshape(tf.slice(results[0], [0] * rank, [1] * rank), [])

        def values() -> list[np.ndarray]:
            session.run(run)
            return case.last(session.run(results), tf.__name__)

        return Step(lambda: session.run(run), lambda: session.run(watched), values)

    return Workload(case.name, case.title, 1.5, build)


_WITH_JAX = ("headrace", "tensorflow", "jax")

WORKLOADS = (
    Workload("no_op", "run of a no-op", 0.5, no_op),
    Workload("constant", "run of a constant", 0.5, constant),
    Workload("softmax", "MNIST softmax step, batch 100", 0.33, softmax, sides=_WITH_JAX),
    Workload("mlp", "MLP 784-512-512-10 Adam step, batch 100", 0.6, mlp, sides=_WITH_JAX),
    Workload(
        "mlp_jax", "the same against plain jitted JAX", 1.1, mlp, "jax", sides=("headrace", "jax")
    ),
    Workload("chain", "1,000 small ops in a chain", 0.5, chain),
    Workload("side_by_side", "1,000 small ops side by side, fetched", 0.5, side_by_side),
    Workload("wide", "1,000 products and sums side by side, added", 0.7, wide),
    Workload("build", "build 10,000 ops with gradients", 0.5, build_graph),
    Workload("first_step", "first step of that graph", 1.5, first_step, fresh=True),
    Workload("import", "import", 0.5, None, fresh=True),
    Workload("lstm", "LSTM language model step", 0.6, lstm),
    Workload("lengths", "LSTM training step, 1 to 100 elements", 1.0, lengths),
    Workload("batches", "convnet training step, 1 to 64 images", 2.0, batches),
    Workload("growing_sequence", "loop that makes 40 rows of all before", 1.5, growing_sequence),
    Workload("growing_graph", "three convolutions, a new fetch each time", 0.6, growing_graph),
    Workload("alexnet", "AlexNet step, batch 16", 1.2, alexnet),
    Workload("normal", "initialise 14 million, random_normal", 1.0, initializer("random_normal")),
    Workload(
        "truncated", "initialise 14 million, truncated_normal", 1.0, initializer("truncated_normal")
    ),
    *(
        Workload(name, title, target, build, "jax", sides=ACCELERATED, asked_for=True)
        for name, title, target, build in (
            ("alexnet_128", "AlexNet step, batch 128", 1.1, partial(alexnet, batch=128)),
            (
                "alexnet_128_bfloat16",
                "the same, layers in bfloat16",
                1.1,
                partial(alexnet, batch=128, half=True),
            ),
            (
                "product_float32",
                "product of 4096 x 4096, float32",
                1.1,
                partial(product, size=4096, dtype="float32"),
            ),
            (
                "product_bfloat16",
                "product of 8192 x 8192, bfloat16",
                1.1,
                partial(product, size=8192, dtype="bfloat16"),
            ),
            ("feed_64mb", "feed 64 MB and add up", 1.1, partial(feed, megabytes=64)),
            ("fetch_64mb", "fetch 64 MB", 1.1, partial(fetch, megabytes=64)),
        )
    ),
    _convolution(square(9, 2, 256, 256, 20, 50)),
    _convolution(square(5, 2, 64, 128, 28, 64)),
    *(
        Workload(name, title, 0.5, partial(sparse, build=build), alone="100mb" not in name)
        for name, title, build in sparse_workloads.ROWS
    ),
    *(
        Workload(
            name,
            title,
            1.0,
            partial(checkpoint, timed=timed, megabytes=size),
            alone=True,
            asked_for=size >= 1024,
        )
        for name, title, timed, size in checkpoint_workloads.ROWS
    ),
)


def _single(operation: operation_cases.Operation) -> Workload:
    def build(tf: ModuleType) -> Step:
        session, fetches = operation(tf)
        run = session.make_callable(fetches)

        def step() -> None:
            run()

        return Step(step, values=run)

    return Workload(operation.name, operation.title, 1.5, build)


def named(name: str) -> Workload:
    """The workload of that name: in the table, any convolution or any single operation."""
    if name.startswith(convolution_cases.PREFIX):
        return _convolution(Convolution.named(name))
    if name.startswith(operation_cases.PREFIX):
        return _single(operation_cases.Operation.named(name))
    return next(w for w in WORKLOADS if w.name == name)
