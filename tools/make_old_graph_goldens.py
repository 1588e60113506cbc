"""Write ``tests/golden/old_graphs/``: graphs with control flow by tokens, and their results.

    TF_USE_LEGACY_KERAS=1 PEER_PYTHON tools/make_old_graph_goldens.py [NAME ...]

Runs under an interpreter that has TensorFlow 2.21, which still makes such graphs when it is told
to; under TensorFlow 1.15 it writes those that need `tf.contrib`. Each golden is NAME.pb.gz (a
GraphDef) and NAME.npz: ``in/<tensor>`` are the feeds, ``out/<tensor>`` the results after the
operation ``init``, where there is one.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "old_graphs"
tf = peer.compat.v1
if TYPE_CHECKING:  # Python 3.7, which TensorFlow 1.15 needs, cannot make it
    Feeds = dict[str, np.ndarray]
PROGRAMS: dict[str, Callable[[], tuple[Feeds, list[str]]]] = {}
NEED_CONTRIB: set[str] = set()


def program(function: Callable[[], tuple[Feeds, list[str]]]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def with_contrib(function: Callable[[], tuple[Feeds, list[str]]]) -> Callable[[], Any]:
    NEED_CONTRIB.add(function.__name__)
    return program(function)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def inputs() -> tuple[Any, Any]:
    return tf.placeholder(tf.float32, [3], "x"), tf.placeholder(tf.int32, [], "n")


@program
def loop():
    x, n = inputs()
    i, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2 + x), [0, x])
    tf.identity(y, "y")
    tf.identity(i, "i")
    return {"x:0": values(3), "n:0": np.int32(5)}, ["y:0", "i:0"]


@program
def loop_that_does_not_run():
    x, n = inputs()
    _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2 + x), [0, x])
    tf.identity(y, "y")
    return {"x:0": values(3), "n:0": np.int32(0)}, ["y:0"]


def _branches(n_value: int) -> tuple[Feeds, list[str]]:
    x, n = inputs()
    tf.identity(tf.cond(n > 3, lambda: x + 1, lambda: tf.constant([7.0])), "one")
    first, second = tf.cond(n > 3, lambda: (x, n), lambda: (x * 2, n + 1))
    tf.identity(first, "first")
    tf.identity(second, "second")
    chosen = tf.case([(n > 7, lambda: x * 7), (n > 2, lambda: x * 2)], default=lambda: -x)
    tf.identity(chosen, "chosen")
    feeds = {"x:0": values(3), "n:0": np.int32(n_value)}
    return feeds, ["one:0", "first:0", "second:0", "chosen:0"]


@program
def branch_true():
    return _branches(5)


@program
def branch_false():
    return _branches(1)


@program
def nested():
    x, n = inputs()
    count = tf.cast(n, tf.float32)

    def body(i, a):
        _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b + x), [0, a])
        b = tf.cond(
            tf.equal(i % 2, 0),
            lambda: b * 2,
            lambda: tf.cond(i > 3, lambda: b - 1.0, lambda: b + count),
        )
        return i + 1, b

    def more(i, a):
        return tf.logical_and(i < n, tf.reduce_sum(a) < 1e6)

    _, y = tf.while_loop(more, body, [0, x])
    z = tf.cond(
        tf.reduce_sum(y) > 10,
        lambda: tf.while_loop(lambda k: tf.reduce_sum(k) < 1e4, lambda k: k * 3, [y]),
        lambda: y,
    )
    tf.identity(y, "y")
    tf.identity(z, "z")
    return {"x:0": np.abs(values(3)), "n:0": np.int32(6)}, ["y:0", "z:0"]


@program
def reference_variable():
    v = tf.get_variable("v", initializer=1.0, use_resource=False)
    n = tf.placeholder(tf.int32, [], "n")
    tf.identity(tf.cond(n > 3, lambda: tf.assign_add(v, 2.0), lambda: tf.identity(v)), "c")
    tf.global_variables_initializer()
    return {"n:0": np.int32(5)}, ["c:0"]


@program
def resource_variable():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    n = tf.placeholder(tf.int32, [], "n")

    def body(i):
        with tf.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    end = tf.while_loop(lambda i: i < n, body, [0])
    with tf.control_dependencies([end]):
        once_more = tf.cond(n > 3, lambda: tf.assign_add(v, 10.0), v.read_value)
        tf.identity(once_more, "v_after")
    tf.global_variables_initializer()
    return {"n:0": np.int32(4)}, ["v_after:0"]


@program
def gradients_of_a_loop_and_a_branch():
    x, n = inputs()
    _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2 * y + x), [0, x])
    z = tf.cond(n > 3, lambda: y * y + 1, lambda: x - 1)
    tf.identity(tf.gradients(tf.reduce_sum(z), x)[0], "grad")
    tf.identity(z, "z")
    return {"x:0": 0.1 * values(3), "n:0": np.int32(5)}, ["z:0", "grad:0"]


@program
def maps_and_folds():
    x = tf.placeholder(tf.float32, [3], "x")
    tf.identity(tf.map_fn(lambda t: t * t + 1, x), "mapped")
    tf.identity(tf.foldl(lambda a, t: a * 2 + t, x), "folded")
    sums = tf.scan(lambda a, t: a + t, x)
    tf.identity(sums, "sums")
    tf.identity(tf.gradients(tf.reduce_sum(sums * sums), x)[0], "grad")
    return {"x:0": values(3)}, ["mapped:0", "folded:0", "sums:0", "grad:0"]


@program
def recurrent_network():
    x = tf.placeholder(tf.float32, [4, 3, 2], "x")
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=[3, 1, 2, 3], dtype=tf.float32)
    tf.identity(outputs, "outputs")
    tf.identity(state.h, "h")
    fixed_values()
    return {"x:0": values(4, 3, 2)}, ["outputs:0", "h:0"]


@program
def training_a_recurrent_network():
    x = tf.placeholder(tf.float32, [2, 3, 2], "x")
    cells = [tf.nn.rnn_cell.LSTMCell(3, use_peepholes=True), tf.nn.rnn_cell.GRUCell(2)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, sequence_length=[3, 2], dtype=tf.float32)
    return {"x:0": values(2, 3, 2)}, trained(tf.reduce_mean(tf.square(outputs)))


@program
def training_loops_in_loops():
    x, n = inputs()
    w = tf.get_variable("w", [3])

    def inner(i, a):
        return tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, tf.tanh(b * w + x)), [0, a])

    _, y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, inner(i, a)[1] * w), [0, x])
    return {"x:0": values(3), "n:0": np.int32(4)}, trained(tf.reduce_sum(y * y))


@program
def training_maps_in_maps():
    x = tf.placeholder(tf.float32, [4, 3], "x")
    w = tf.get_variable("w", [3])
    y = tf.map_fn(lambda row: tf.scan(lambda a, t: tf.tanh(a * t) + t, row * w), x)
    return {"x:0": values(4, 3)}, trained(tf.reduce_sum(y * y))


@program
def training_branches_and_loops():
    x, n = inputs()
    w = tf.get_variable("w", [3])

    def loop(a):
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.tanh(a * w)), [0, a])[1]

    def body(i, a):
        small = tf.reduce_sum(a) < 0
        odd = tf.cond(small, lambda: tf.sin(a) * w, lambda: a * a * w)
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: loop(a), lambda: odd)

    _, y = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    y = tf.cond(n > 1, lambda: loop(y + x), lambda: y * w)
    return {"x:0": values(3), "n:0": np.int32(3)}, trained(tf.reduce_sum(y * y))


@program
def training_with_dropout_in_a_branch():
    tf.set_random_seed(3)
    x, n = tf.placeholder(tf.float32, [8, 5], "x"), tf.placeholder(tf.int32, [], "n")
    y = tf.matmul(x, tf.get_variable("w", [5, 4]))
    few = tf.reduce_sum(x) < 1e6
    h = tf.cond(
        n > 1,
        lambda: tf.cond(few, lambda: tf.nn.dropout(y, rate=0.5), lambda: y * 2),
        lambda: y,
    )
    return {"x:0": values(8, 5), "n:0": np.int32(2)}, trained(tf.reduce_sum(h * h))


@with_contrib
def training_a_decoder_with_attention():
    seq2seq = peer.contrib.seq2seq
    source, target = (tf.placeholder(tf.int32, [2, None], name) for name in ("source", "target"))
    table = tf.get_variable("table", [7, 4])
    read = tf.nn.embedding_lookup(table, source)
    states, last = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), read, [4, 2], dtype=tf.float32)
    attention = seq2seq.BahdanauAttention(4, states, memory_sequence_length=[4, 2])
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention, attention_layer_size=4)
    start = cell.zero_state(2, tf.float32).clone(cell_state=last)
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, target), [3, 2])
    decoder = seq2seq.BasicDecoder(cell, helper, start, tf.layers.Dense(7))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    weights = tf.sequence_mask(lengths, dtype=tf.float32)
    loss = seq2seq.sequence_loss(outputs.rnn_output, target, weights)
    feeds = {"source:0": [[1, 2, 3, 4], [3, 2, 0, 0]], "target:0": [[1, 2, 3], [1, 5, 6]]}
    return {k: np.int32(v) for k, v in feeds.items()}, trained(loss)


def trained(loss: Any) -> list[str]:
    """Names of a loss and of the variables after one step of training."""
    tf.identity(loss, "loss")
    # What comes first is not said by edges: variables are read where the loss needs them.
    with tf.control_dependencies([loss]):
        rate = tf.constant(0.5)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    fixed_values()
    with tf.control_dependencies([train]):
        for i, v in enumerate(tf.trainable_variables()):
            tf.identity(v.read_value(), f"after_{i}")
    return ["loss:0", *[f"after_{i}:0" for i in range(len(tf.trainable_variables()))]]


def fixed_values() -> None:
    """An operation ``init`` that gives every variable the same values in all programs."""
    assigns = [
        tf.assign(v, 0.3 * values(*v.shape.as_list(), seed=i))
        for i, v in enumerate(tf.trainable_variables())
    ]
    tf.group(*assigns, name="init")


def write(name: str) -> None:
    tf.reset_default_graph()
    feeds, fetches = PROGRAMS[name]()
    graph = tf.get_default_graph()
    with tf.Session() as sess:
        if any(op.name == "init" for op in graph.get_operations()):
            sess.run("init")
        results = sess.run(fetches, feeds)
    data = graph.as_graph_def().SerializeToString()
    path = OUT / f"{name}.pb.gz"
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
        compressed.write(data)
    arrays = {f"in/{key}": value for key, value in feeds.items()}
    arrays.update((f"out/{key}", value) for key, value in zip(fetches, results))  # noqa: B905
    np.savez_compressed(OUT / f"{name}.npz", **arrays)


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    OUT.mkdir(exist_ok=True)
    for program_name in sys.argv[1:] or PROGRAMS:
        if (program_name in NEED_CONTRIB) == hasattr(peer, "contrib"):
            write(program_name)
