"""Graphs of many kinds, to be exported here and served by TensorFlow.

A case is a function that builds a graph in the default graph and returns its inputs and outputs by
the names of a signature, and the values to feed. It may also say how often to run (``steps``), and
name an operation to run after loading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import headrace as tf


@dataclass
class Case:
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    feeds: dict[str, Any]
    steps: int = 1
    init_op: Any = None
    load: Callable[[Any], None] | None = None  # gives variables their values


def values(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _x(*shape: int | None) -> Any:
    return tf.placeholder(tf.float32, shape, "x")


def dense(folder: Path) -> Case:
    x = _x(None, 4)
    hidden = tf.layers.dense(x, 5, tf.nn.relu)
    y = tf.nn.softmax(tf.layers.dense(hidden, 3))
    return Case({"x": x}, {"y": y, "class": tf.argmax(y, 1)}, {"x": values(2, 4)})


def convolutions(folder: Path) -> Case:
    x = _x(None, 8, 8, 2)
    y = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    y = tf.layers.max_pooling2d(y, 2, 2)
    y = tf.layers.separable_conv2d(y, 3, 2)
    y = tf.layers.conv2d_transpose(y, 2, 3, strides=2)
    y = tf.layers.average_pooling2d(y, 2, 1)
    return Case({"x": x}, {"y": tf.reduce_mean(y, [1, 2])}, {"x": values(3, 8, 8, 2)})


def normalised_with_dropout(folder: Path) -> Case:
    x = _x(None, 4, 4, 3)
    training = tf.placeholder_with_default(False, [], "training")
    y = tf.layers.batch_normalization(x, training=training)
    y = tf.layers.dropout(tf.layers.flatten(y), 0.5, training=training)
    return Case({"x": x}, {"y": tf.layers.dense(y, 2)}, {"x": values(2, 4, 4, 3)})


def embeddings(folder: Path) -> Case:
    ids = tf.placeholder(tf.int64, [None, None], "ids")
    table = tf.get_variable("table", [10, 3])
    sparse = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([1, 2, 3], tf.int64), [2, 2])
    mean = tf.nn.embedding_lookup_sparse(table, sparse, None, combiner="mean")
    return Case(
        {"ids": ids},
        {"rows": tf.nn.embedding_lookup(table, ids), "mean": mean},
        {"ids": np.array([[1, 2], [9, 0]])},
    )


def recurrent(folder: Path) -> Case:
    x = _x(None, None, 3)
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(4), tf.nn.rnn_cell.GRUCell(2)])
    outputs, _ = tf.nn.dynamic_rnn(cells, x, lengths, dtype=tf.float32)
    with tf.variable_scope("both"):
        both, _ = tf.nn.bidirectional_dynamic_rnn(
            *(tf.nn.rnn_cell.BasicRNNCell(3) for _ in range(2)), x, dtype=tf.float32
        )
    return Case(
        {"x": x, "lengths": lengths},
        {"y": outputs, "both": tf.concat(both, 2)},
        {"x": values(2, 5, 3), "lengths": np.array([3, 5], np.int32)},
    )


def loops(folder: Path) -> Case:
    x = _x(None)
    w = tf.get_variable("w", initializer=[0.5])
    _, y = tf.while_loop(
        lambda i, _: i < 5,
        lambda i, y: (i + 1, tf.cond(i > 2, lambda: y * w, lambda: y + w)),
        [0, x],
    )
    array = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    _, array = tf.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))), [0, array]
    )
    chosen = tf.switch_case(tf.cast(x[0] > 0, tf.int32), [lambda: x, lambda: -x])
    return Case({"x": x}, {"y": y, "rows": array.stack(), "chosen": chosen}, {"x": values(4)})


def scans(folder: Path) -> Case:
    x = _x(None, 3)
    w = tf.get_variable("w", initializer=values(3, 3, seed=3))
    return Case(
        {"x": x},
        {
            "mapped": tf.map_fn(lambda row: tf.tensordot(row, w, 1), x),
            "scanned": tf.scan(lambda a, row: a * 0.5 + tf.tanh(row), x),
            "folded": tf.foldl(lambda a, row: a + row * row, x),
            "back": tf.foldr(lambda a, row: a * 0.5 - row, x, initializer=tf.zeros([3])),
            "pairs": tf.map_fn(lambda p: (p[0] + p[1], p[0]), (x, x), (tf.float32, tf.float32))[0],
        },
        {"x": values(4, 3)},
    )


def partitioned(folder: Path) -> Case:
    ids = tf.placeholder(tf.int64, [None], "ids")
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("table", [11, 2])
        kernel = tf.get_variable("kernel", [2, 4])
    rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    return Case(
        {"ids": ids},
        {"rows": rows, "y": tf.matmul(rows, tf.convert_to_tensor(kernel))},
        {"ids": np.array([0, 3, 7, 10])},
    )


def tables(folder: Path) -> Case:
    vocabulary = folder / "words.txt"
    vocabulary.write_text("zero\none\ntwo\n")
    words = tf.placeholder(tf.string, [None], "words")
    path = tf.constant(str(vocabulary), name="vocabulary")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
    ids = tf.contrib.lookup.index_table_from_file(path, num_oov_buckets=2)
    back = tf.contrib.lookup.index_to_string_table_from_file(path, default_value="?")
    found = ids.lookup(words)
    return Case(
        {"words": words},
        {"ids": found, "back": back.lookup(found)},
        {"words": np.array([b"two", b"none", b"zero"])},
        init_op=tf.tables_initializer(),
    )


#: A trained table, as `export` of it gives it.
FROZEN_KEYS = np.array([-(2**63), -5, 0, 7, 2**62])


def frozen_table(folder: Path, constant: bool = True) -> Case:
    rows = values(len(FROZEN_KEYS), 3)
    table = tf.lookup.FrozenEmbeddingTable(FROZEN_KEYS, rows, [0.5, -1.0, 2.0], constant)
    keys = tf.placeholder(tf.int64, [None], "keys")
    x = tf.nn.embedding_lookup(table, keys)
    y = tf.layers.dense(x, 2, kernel_initializer=tf.initializers.ones())
    return Case(
        {"keys": keys},
        {"rows": x, "y": y},
        {"keys": np.array([2**62, 1, -(2**63), -5, 2**62 + 1])},
        init_op=tf.tables_initializer(),
        load=table.load,
    )


def frozen_table_of_variables(folder: Path) -> Case:
    return frozen_table(folder, constant=False)


def strings(folder: Path) -> Case:
    text = tf.placeholder(tf.string, [None], "text")
    split = tf.string_split(text, " ")
    return Case(
        {"text": text},
        {
            "words": split.values,
            "joined": tf.string_join([text, tf.as_string(tf.strings.length(text))], "-"),
            "hashed": tf.string_to_hash_bucket_fast(text, 100),
            "part": tf.substr(text, 1, 2),
            "replaced": tf.regex_replace(text, "[aeiou]", "_"),
        },
        {"text": np.array([b"some words", b"and more"])},
    )


def examples(folder: Path) -> Case:
    serialized = tf.placeholder(tf.string, [None], "examples")
    parsed = tf.parse_example(
        serialized,
        {
            "x": tf.FixedLenFeature([2], tf.float32),
            "n": tf.FixedLenFeature([], tf.int64, default_value=7),
            "words": tf.VarLenFeature(tf.string),
        },
    )
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, 2.5])
    example.features.feature["words"].bytes_list.value.extend([b"a", b"bc"])
    return Case(
        {"examples": serialized},
        {
            "x": parsed["x"] * 2.0,
            "n": parsed["n"],
            "words": tf.sparse_tensor_to_dense(parsed["words"], default_value=""),
        },
        {"examples": np.array([example.SerializeToString()])},
    )


def _trained(loss: Any, optimizer: Any) -> Any:
    """The loss; evaluating it also makes a step of training."""
    train = optimizer.minimize(loss)
    with tf.control_dependencies([train]):
        return tf.identity(loss)


def _network(x: Any) -> Any:
    hidden = tf.layers.dense(x, 4, tf.nn.tanh)
    scores = tf.layers.dense(hidden, 3)
    wanted = tf.one_hot(tf.cast(tf.reduce_sum(tf.abs(x), 1), tf.int32) % 3, 3)
    exact = tf.nn.softmax_cross_entropy_with_logits(labels=wanted, logits=scores)
    return tf.reduce_mean(exact) + tf.reduce_sum(tf.nn.softmax(scores)[:, :2] ** 2)


def _optimizer_case(make: Any) -> Any:
    def case(folder: Path) -> Case:
        x = _x(None, 4)
        loss = _trained(_network(x), make())
        return Case({"x": x}, {"loss": loss}, {"x": values(3, 4)}, steps=3)

    return case


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1),
}


def trained_embeddings(folder: Path) -> Case:
    ids = tf.placeholder(tf.int32, [None], "ids")
    table = tf.get_variable("table", [6, 3])
    rows = tf.nn.embedding_lookup(table, ids)
    columns = tf.gather(table, ids[:2], axis=1)
    sliced = tf.slice(rows, [0, ids[0]], [-1, 1])
    loss = tf.reduce_sum(rows**2) + tf.reduce_sum(columns**2) + tf.reduce_sum(tf.tanh(sliced))
    sparse = tf.reduce_sum(tf.nn.embedding_lookup(tf.get_variable("other", [6, 2]), ids) ** 2)
    return Case(
        {"ids": ids},
        {"loss": _trained(loss + sparse, tf.train.AdamOptimizer(0.1))},
        {"ids": np.array([1, 2, 1], np.int32)},
        steps=3,
    )


def trained_recurrent(folder: Path) -> Case:
    x = _x(None, 4, 3)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), x, dtype=tf.float32)
    mapped = tf.map_fn(
        lambda t: tf.cond(tf.reduce_sum(t) > 0, lambda: tf.tanh(t) * t, lambda: t * 2.0), outputs
    )
    total = tf.scan(lambda a, b: a * 0.5 + b, tf.transpose(mapped, [1, 0, 2]))
    loss = tf.reduce_mean(
        tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.sin(a)), [0, total])[1]
    )
    return Case(
        {"x": x},
        {"loss": _trained(loss, tf.train.AdamOptimizer(0.1))},
        {"x": values(2, 4, 3)},
        steps=3,
    )


def trained_convolutions(folder: Path) -> Case:
    x = _x(None, 6, 6, 2)
    y = tf.layers.conv2d(x, 3, 3, strides=2, padding="same", activation=tf.nn.elu)
    y = tf.layers.batch_normalization(y, training=True)
    y = tf.layers.max_pooling2d(tf.nn.leaky_relu(y), 2, 1)
    y = tf.log(tf.nn.sigmoid(tf.reduce_mean(y, [1, 2])))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        loss = tf.reduce_mean(y)
    clipped = tf.train.MomentumOptimizer(0.1, 0.9)
    gradients = clipped.compute_gradients(loss)
    tensors, _ = tf.clip_by_global_norm([g for g, _ in gradients], 0.5)
    train = clipped.apply_gradients(
        zip(tensors, [v for _, v in gradients], strict=True), tf.train.get_or_create_global_step()
    )
    with tf.control_dependencies([train]):
        loss = tf.identity(loss)
    return Case({"x": x}, {"loss": loss}, {"x": values(2, 6, 6, 2)}, steps=3)


def ragged(folder: Path) -> Case:
    x = _x(None)
    rows = tf.RaggedTensor.from_row_splits(x, tf.constant([0, 2, 2, 5], tf.int64))
    ids = tf.RaggedTensor.from_value_rowids(x, tf.constant([0, 0, 1, 3, 3], tf.int64))
    return Case(
        {"x": x},
        {
            "sums": tf.reduce_sum(rows, axis=1),
            "dense": (rows + rows * 2.0).to_tensor(),
            "lengths": ids.row_lengths(),
            "means": tf.reduce_mean(ids, axis=1),
        },
        {"x": values(5)},
    )


def beams(folder: Path) -> Case:
    steps = tf.placeholder(tf.int32, [None, None, 3], "symbols")
    parents = tf.constant(
        [[[0, 0, 0]] * 2, [[0, 1, 1], [2, 1, 0]], [[2, 1, 2], [0, 0, 1]]], tf.int32
    )
    found = tf.contrib.seq2seq.gather_tree(steps, parents, [3, 2], 9)
    return Case(
        {"symbols": steps},
        {"beams": found},
        {"symbols": np.arange(18, dtype=np.int32).reshape(3, 2, 3)},
    )


def shapes_and_slices(folder: Path) -> Case:
    x = _x(None, 6)
    first, second = tf.split(x[:, ::-1], 2, axis=1)
    values_, indices = tf.nn.top_k(x, 2)
    return Case(
        {"x": x},
        {
            "y": tf.pad(tf.concat([second, first], 1), [[0, 1], [1, 0]]),
            "top": values_,
            "at": indices,
            "rows": tf.reshape(tf.gather(x, [1, 0]), [-1, 2, 3]),
            "where": tf.where(x > 0, x, tf.zeros_like(x)),
            "count": tf.shape(x)[0],
            "diagonal": tf.matrix_diag(x[:, :2]),
            "part": tf.matrix_diag_part(tf.reshape(x, [-1, 2, 3])),
            "norm": tf.nn.l2_normalize(x, 1),
            "cum": tf.cumsum(x, axis=1, exclusive=True),
        },
        {"x": values(2, 6)},
    )


def decoder(folder: Path) -> Case:
    """A beam search with attention, whose arrays grow."""
    x = _x(None, 4, 3)
    seq2seq = tf.contrib.seq2seq
    memory = seq2seq.tile_batch(tf.layers.dense(x, 5), 2)
    attention = seq2seq.LuongAttention(5, memory)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(5), attention, attention_layer_size=5)
    count = tf.shape(x)[0]
    search = seq2seq.BeamSearchDecoder(
        cell,
        tf.get_variable("embedding", [7, 5]),
        tf.fill([count], 1),
        2,
        cell.zero_state(count * 2, tf.float32),
        2,
        output_layer=tf.layers.Dense(7),
    )
    outputs, _, _ = seq2seq.dynamic_decode(search, maximum_iterations=6)
    return Case({"x": x}, {"ids": outputs.predicted_ids}, {"x": values(2, 4, 3)})


def labels_of_sequences(folder: Path) -> Case:
    x = _x(None, 5, 3)
    lengths = tf.constant([5, 3])
    likelihood, moves = tf.contrib.crf.crf_log_likelihood(
        x, tf.constant([[0, 1, 2, 0, 1]] * 2), lengths
    )
    best, score = tf.contrib.crf.crf_decode(x, moves, lengths)
    outputs = {"likelihood": likelihood, "best": best, "score": score}
    return Case({"x": x}, outputs, {"x": values(2, 5, 3)})


def second_derivatives(folder: Path) -> Case:
    x = _x(3)
    w = tf.get_variable("w", [3])
    top, _ = tf.nn.top_k(tf.tanh(x * w), 2)
    f = tf.reduce_sum(tf.nn.softmax(x * w) ** 3) + tf.reduce_sum(tf.sigmoid(top) * top)
    (first,) = tf.gradients(f, x)
    (second,) = tf.gradients(tf.reduce_sum(first**2), w)
    return Case({"x": x}, {"first": first, "second": second}, {"x": values(3)})


def trained_loops_in_loops(folder: Path) -> Case:
    x = _x(None, 3)
    w = tf.get_variable("w", [3, 3])

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any) -> Any:
            return j + 1, tf.tanh(tf.matmul(b, w)) * tf.reduce_sum(x)

        return i + 1, tf.while_loop(lambda j, _: j < 2, inner, [0, a])[1]

    looped = tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]
    scanned = tf.scan(lambda a, r: tf.map_fn(lambda e: e * 2.0, a) + tf.reduce_sum(w) * r, x)
    loss = tf.reduce_sum(looped) + tf.reduce_sum(scanned)
    (grad,) = tf.gradients(tf.reduce_sum(looped), x)
    loss = _trained(loss, tf.train.GradientDescentOptimizer(0.01))
    return Case({"x": x}, {"loss": loss, "grad": grad}, {"x": values(3, 3) * 0.3}, steps=1)


def averaged(folder: Path) -> Case:
    """Moving averages, a decaying rate, summaries, metrics and queues beside what is served."""
    x = _x(None, 3)
    loss = tf.reduce_mean(tf.layers.dense(x, 2) ** 2)
    tf.summary.scalar("loss", loss)
    tf.metrics.mean(x)
    tf.train.batch([tf.train.input_producer(tf.constant([1.0, 2.0])).dequeue()], 2)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 1, 0.9)
    train = tf.train.AdamOptimizer(rate).minimize(loss, step)
    with tf.control_dependencies([train]):
        kept = tf.train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())
    with tf.control_dependencies([kept]):
        loss = tf.identity(loss)
    return Case({"x": x}, {"loss": loss}, {"x": values(2, 3)}, steps=3)


def counted(folder: Path) -> Case:
    """A signature that changes a variable."""
    x = _x()
    total = tf.get_variable("total", initializer=2.0, trainable=False)
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), trainable=False)
    added = tf.assign_add(total, x)
    with tf.control_dependencies([added]):
        counted_ = tf.assign_add(count, 1)
    return Case(
        {"x": x},
        {"total": tf.identity(added), "count": tf.identity(counted_)},
        {"x": np.float32(1.5)},
        steps=3,
    )


def keras_layers(folder: Path) -> Case:
    """Layers of Keras, trained: their gradients, updates and both ways of a dropout."""
    layers = tf.keras.layers
    x = _x(None, 8, 8, 1)
    h = layers.MaxPooling2D(2)(layers.Conv2D(4, 3, activation="relu")(x))
    h = layers.Dropout(0.5)(layers.BatchNormalization()(h))
    y = layers.Dense(3, activation="softmax")(layers.Flatten()(h))
    tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.square(y)))
    return Case({"x": x}, {"y": y}, {"x": values(3, 8, 8, 1)})


def functions_of_jax(folder: Path) -> Case:
    """Several outputs of other sizes, an input that is not used, and a call in a body."""
    x = _x(None, 4)
    unused = tf.constant([1, 2])
    joined, total = tf.from_jax(lambda a, b: (a.reshape(-1), a.sum(0)))(x, unused)
    many = tf.map_fn(tf.from_jax(lambda row: row * 2), tf.ones([2, 3]))
    return Case({"x": x}, {"joined": joined, "total": total, "many": many}, {"x": values(2, 4)})


#: TensorFlow 2 runs StableHLO; 1.15 has no such operation.
WITH_STABLEHLO = {f.__name__: f for f in (keras_layers, functions_of_jax)}
CASES = {
    function.__name__: function
    for function in (
        *(dense, convolutions, normalised_with_dropout, embeddings, recurrent, loops, scans),
        *(frozen_table, frozen_table_of_variables),
        *(partitioned, tables, strings, examples, trained_embeddings, trained_recurrent),
        *(trained_convolutions, ragged, beams, shapes_and_slices, counted, averaged),
        *(decoder, labels_of_sequences, second_derivatives, trained_loops_in_loops),
    )
} | {f"trained_with_{name}": _optimizer_case(make) for name, make in OPTIMIZERS.items()}
