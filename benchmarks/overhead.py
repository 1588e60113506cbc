"""What a step costs beside its arithmetic: `python benchmarks/overhead.py` prints microseconds.

Each row runs a step so small that nearly all of its time is Session.run, the plan, and the call of
the compiled program. Rows of updates show how the cost grows with the number of variables, those of
loops how with that of iterations; the last two are one step, the second time by an Estimator.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as tf

WARM_UP = 20
REPEATS = 7
SECONDS = 0.1

Step = Callable[[], Any]


def microseconds(step: Step) -> float:
    """The median time of one call over several batches of calls."""
    for _ in range(WARM_UP):
        step()
    start = time.perf_counter()
    step()
    count = max(1, int(SECONDS / max(time.perf_counter() - start, 1e-7)))
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(count):
            step()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times) * 1e6


def no_op(sess: tf.Session) -> Step:
    op = tf.no_op()
    return lambda: sess.run(op)


def constant(sess: tf.Session) -> Step:
    value = tf.constant(1.0)
    return lambda: sess.run(value)


def fed(sess: tf.Session) -> Step:
    x = tf.placeholder(tf.float32, [4])
    y, value = tf.tanh(x), np.ones(4, np.float32)
    return lambda: sess.run(y, {x: value})


def fed_callable(sess: tf.Session) -> Step:
    x = tf.placeholder(tf.float32, [4])
    step, value = sess.make_callable(tf.tanh(x), [x]), np.ones(4, np.float32)
    return lambda: step(value)


def update(count: int) -> Callable[[tf.Session], Step]:
    def make(sess: tf.Session) -> Step:
        x = tf.placeholder(tf.float32, [4])
        variables = [tf.Variable(tf.zeros([4])) for _ in range(count)]
        step = tf.group(*[v.assign_add(x * 0.5, read_value=False) for v in variables])
        sess.run(tf.global_variables_initializer())
        value = np.ones(4, np.float32)
        return lambda: sess.run(step, {x: value})

    return make


def loop(count: int, is_known: bool) -> Callable[[tf.Session], Step]:
    """A loop of a known number of iterations asks nobody whether it goes on, others may."""

    def make(sess: tf.Session) -> Step:
        x, n = tf.placeholder(tf.float32, [8, 8]), tf.placeholder(tf.int32, [])
        end = count if is_known else n
        start = [tf.constant(0), x]
        y = tf.while_loop(lambda i, _: i < end, lambda i, y: (i + 1, y @ y * 0.1 + 1.0), start)[1]
        feeds = {x: np.ones((8, 8), np.float32), n: count}
        return lambda: sess.run(y, feeds)

    return make


def rnn(sess: tf.Session) -> Step:
    x, lengths = tf.placeholder(tf.float32, [16, 20, 32]), tf.placeholder(tf.int32, [16])
    cell = tf.nn.rnn_cell.BasicLSTMCell(64)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    train = tf.train.AdamOptimizer().minimize(tf.reduce_mean(outputs**2))
    sess.run(tf.global_variables_initializer())
    feeds = {x: np.ones((16, 20, 32), np.float32), lengths: np.full(16, 20, np.int32)}
    return lambda: sess.run(train, feeds)


def _training() -> tuple[Any, Any]:
    """The loss and the train operation of a small model."""
    w = tf.get_variable("w", [8, 8])
    loss = tf.reduce_sum(tf.square(tf.matmul(w, w)))
    optimizer = tf.train.GradientDescentOptimizer(1e-9)
    return loss, optimizer.minimize(loss, tf.train.get_or_create_global_step())


def training(sess: tf.Session) -> Step:
    loss, train = _training()
    sess.run(tf.global_variables_initializer())
    return lambda: sess.run([train, loss])


class _Watch(tf.train.SessionRunHook):
    """The times of lots of steps. An Estimator's summaries and logs every 100 are among them."""

    LOT = 200

    def __init__(self) -> None:
        self.times: list[float] = []
        self._steps = 0

    def before_run(self, run_context: Any) -> None:
        if self._steps % self.LOT == 0:
            self.times.append(time.perf_counter())
        self._steps += 1


def in_an_estimator() -> float:
    """Microseconds of a step of `training`, by an Estimator with its usual hooks."""

    def model_fn(features: Any, mode: str) -> Any:
        loss, train = _training()
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    watch = _Watch()
    with tempfile.TemporaryDirectory() as folder:
        estimator = tf.estimator.Estimator(model_fn, folder)
        estimator.train(lambda: tf.constant(1.0), hooks=[watch], steps=15 * _Watch.LOT)
        tf.summary.FileWriterCache.clear()
    lots = [b - a for a, b in itertools.pairwise(watch.times[1:])]
    return statistics.median(lots) / _Watch.LOT * 1e6


ROWS: dict[str, Callable[[tf.Session], Step]] = {
    "no-op": no_op,
    "constant": constant,
    "tanh of a fed vector": fed,
    "the same, by make_callable": fed_callable,
    "update of 2 variables": update(2),
    "update of 100 variables": update(100),
    **{f"while_loop, {k} iterations": loop(k, True) for k in (10, 100, 1000)},
    **{f"while_loop, {k} fed": loop(k, False) for k in (10, 100, 1000)},
    "LSTM, 20 steps, training": rnn,
    "training step": training,
}


def main() -> None:
    for name, make in ROWS.items():
        with tf.Graph().as_default(), tf.Session() as sess:
            print(f"{name:32}{microseconds(make(sess)):10.1f} us")
    print(f"{'the same, by an Estimator':32}{in_an_estimator():10.1f} us")


if __name__ == "__main__":
    main()
