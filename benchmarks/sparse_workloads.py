"""Training of a few rows of a large table: what a step costs must not grow with the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

BATCH, WIDTH = 128, 128
#: Rows of 512 bytes.
SIZES = {"100 MB": 200_000, "1 GB": 2 << 20, "4 GB": 8 << 20}

#: A program's graph: the training step, and what is fed.
Graph = tuple[Any, dict[Any, np.ndarray]]


def _table(tf: Any, rows: int, name: str) -> Any:
    return tf.get_variable(name, [rows, WIDTH], initializer=tf.zeros_initializer())


def _fed(shape: list[Any]) -> Callable[[Any, int], tuple[Any, dict[Any, np.ndarray]]]:
    """Ids that are fed through a placeholder of ``shape``."""

    def ids(tf: Any, rows: int) -> tuple[Any, dict[Any, np.ndarray]]:
        values = np.random.RandomState(1).randint(rows, size=BATCH).astype(np.int32)
        placeholder = tf.placeholder(tf.int32, shape)
        return placeholder, {placeholder: values.reshape([-1, *[4] * (len(shape) - 1)])}

    return ids


def _computed(tf: Any, rows: int) -> tuple[Any, dict[Any, np.ndarray]]:
    return tf.random_uniform([BATCH], 0, rows, tf.int32), {}


def _lookup(tf: Any, rows: int, make_ids: Any, optimizer: str) -> Graph:
    table = _table(tf, rows, "table")
    ids, feed = make_ids(tf, rows)
    found = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_mean(tf.square(found - 0.5))
    return getattr(tf.train, optimizer)(0.01).minimize(loss), feed


def _columns(tf: Any, rows: int, optimizer: str) -> Graph:
    """The table of an embedding column, as a model_fn has it."""
    ids = tf.placeholder(tf.int64, [None, 1])
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_identity("id", rows),
        WIDTH,
        initializer=tf.zeros_initializer(),
    )
    found = tf.feature_column.input_layer({"id": ids}, [column])
    loss = tf.reduce_mean(tf.square(found - 0.5))
    values = np.random.RandomState(1).randint(rows, size=(BATCH, 1))
    return getattr(tf.train, optimizer)(0.01).minimize(loss), {ids: values}


def _nce(tf: Any, rows: int) -> Graph:
    """Skip-gram word vectors: one table of words, one of classes."""
    table, classes = _table(tf, rows, "table"), _table(tf, rows, "classes")
    biases = tf.get_variable("biases", [rows], initializer=tf.zeros_initializer())
    words, feed = _fed([None])(tf, rows)
    labels = tf.placeholder(tf.int64, [None, 1])
    feed[labels] = np.random.RandomState(2).randint(rows, size=(BATCH, 1))
    found = tf.nn.embedding_lookup(table, words)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=classes,
            biases=biases,
            labels=labels,
            inputs=found,
            num_sampled=64,
            num_classes=rows,
        )
    )
    return tf.train.AdagradOptimizer(0.01).minimize(loss), feed


SGD, ADAGRAD, ADAM = "GradientDescentOptimizer", "AdagradOptimizer", "AdamOptimizer"
_KINDS: dict[str, tuple[str, Callable[[Any, int], Graph]]] = {
    "sgd": ("ids [None], SGD", partial(_lookup, make_ids=_fed([None]), optimizer=SGD)),
    "sgd_2d": (
        "ids [None, None], SGD",
        partial(_lookup, make_ids=_fed([None, None]), optimizer=SGD),
    ),
    "sgd_computed": ("computed ids, SGD", partial(_lookup, make_ids=_computed, optimizer=SGD)),
    "adagrad": ("ids [None], Adagrad", partial(_lookup, make_ids=_fed([None]), optimizer=ADAGRAD)),
    "adagrad_computed": (
        "computed ids, Adagrad",
        partial(_lookup, make_ids=_computed, optimizer=ADAGRAD),
    ),
    "adam": ("ids [None], Adam", partial(_lookup, make_ids=_fed([None]), optimizer=ADAM)),
    "columns_sgd": ("feature columns, SGD", partial(_columns, optimizer=SGD)),
    "columns_adagrad": ("feature columns, Adagrad", partial(_columns, optimizer=ADAGRAD)),
    "nce": ("NCE loss, Adagrad", _nce),
}
#: What takes at most 6 GB, slots included: the sizes of each kind.
_SIZES = {
    "sgd": ("100 MB", "1 GB", "4 GB"),
    "sgd_2d": ("100 MB", "1 GB", "4 GB"),
    "sgd_computed": ("100 MB", "1 GB", "4 GB"),
    "adagrad": ("100 MB", "1 GB"),
    "adagrad_computed": ("100 MB", "1 GB"),
    "adam": ("100 MB", "1 GB"),
    "columns_sgd": ("100 MB",),
    "columns_adagrad": ("100 MB",),
    "nce": ("100 MB", "1 GB"),
}

#: Name, title and ``build(tf)`` of each row.
ROWS = [
    (
        f"sparse_{kind}_{size.replace(' ', '').lower()}",
        f"{_KINDS[kind][0]}, table of {size}",
        partial(_KINDS[kind][1], rows=SIZES[size]),
    )
    for kind, sizes in _SIZES.items()
    for size in sizes
]
