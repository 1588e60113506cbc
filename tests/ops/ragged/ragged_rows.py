"""What the tests of ragged tensors share."""

from __future__ import annotations

from typing import Any

import headrace as tf

Rows = list[Any]

X = [[3.0, 1.0], [], [4.0, 1.0, 5.0], [9.0]]


def run(fetch: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetch, feed)


def fed(rows: Rows, **options: Any) -> Any:
    """A ragged tensor of which nothing but the rank is known while the graph is built."""
    value = tf.ragged.constant_value(rows, **options)
    flat = value.flat_values
    return tf.RaggedTensor.from_nested_row_splits(
        tf.placeholder_with_default(flat, [None, *flat.shape[1:]]),
        [tf.placeholder_with_default(s, [None]) for s in value.nested_row_splits],
    )
