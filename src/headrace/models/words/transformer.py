"""The Transformer: sequences to sequences by attention alone.

Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser and Polosukhin, "Attention is all you
need" (NIPS 2017, arXiv:1706.03762), section 3 and Figure 1. Table 3 counts 65 million parameters of
the base model and 213 million of the big one, over about 37,000 pieces of words; over exactly
37,000, 63,045,632 and 214,171,648 follow from the layers (no biases in attention, and one table for
words that come, words that go and the softmax).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as tf


def transformer(
    sources: tf.Tensor,
    targets: tf.Tensor,
    vocabulary: int = 37_000,
    units: int = 512,
    layers: int = 6,
    heads: int = 8,
    inner: int = 2048,
    dropout: float = 0.1,
    training: Any = False,
    scope: str = "transformer",
) -> tf.Tensor:
    """Logits of each word of a translation, from the source and the words before it.

    Args:
        sources: int32 ``[batch, n]``, numbers of words; 0 fills up short sentences.
        targets: int32 ``[batch, m]``: at each place what comes there. The network sees it shifted
            by one.
        vocabulary: how many words there are.
        units: of each layer, and of a word's vector (1,024 in the big model).
        layers: of the encoder, and of the decoder.
        heads: of each attention; they share the units (16 in the big model).
        inner: units between the two dense layers (4,096 in the big model).
        dropout: the share of values that rest in training.
        training: whether they do: a bool, or a bool scalar tensor.
        scope: of the variables.

    Returns:
        float32 ``[batch, m, vocabulary]``.

    Raises:
        ValueError: if ``units`` is no multiple of ``heads``.

    >>> sources = tf.placeholder(tf.int32, [8, 30])
    >>> tf.models.transformer(sources, tf.placeholder(tf.int32, [8, 20])).shape.as_list()
    [8, 20, 37000]
    """
    if units % heads:
        raise ValueError(f"{units} units cannot be shared by {heads} heads.")

    def rest(x: tf.Tensor) -> tf.Tensor:
        return tf.layers.dropout(x, dropout, training=training)

    def sublayer(x: tf.Tensor, y: tf.Tensor, name: str) -> tf.Tensor:
        return _normalised(x + rest(y), name)

    def dense(x: tf.Tensor) -> tf.Tensor:
        x = tf.layers.dense(x, inner, tf.nn.relu, name="inner")
        return tf.layers.dense(x, units, name="outer")

    with tf.variable_scope(scope):
        table = tf.get_variable(
            "embedding",
            [vocabulary, units],
            initializer=tf.random_normal_initializer(stddev=units**-0.5),
        )
        unseen = _padding(sources)
        x = rest(_embedded(sources, table))
        for layer in range(layers):
            with tf.variable_scope(f"encoder_{layer}"):
                x = sublayer(x, _attention(x, x, unseen, heads, "itself"), "norm_1")
                x = sublayer(x, dense(x), "norm_2")
        encoded = x
        shifted = tf.pad(targets, [[0, 0], [1, 0]])[:, :-1]
        future = _future(tf.shape(targets)[1])
        x = rest(_embedded(shifted, table))
        for layer in range(layers):
            with tf.variable_scope(f"decoder_{layer}"):
                x = sublayer(x, _attention(x, x, future, heads, "itself"), "norm_1")
                x = sublayer(x, _attention(x, encoded, unseen, heads, "source"), "norm_2")
                x = sublayer(x, dense(x), "norm_3")
        return tf.einsum("bmu,vu->bmv", x, table)


def transformer_loss(logits: tf.Tensor, targets: tf.Tensor, smoothing: float = 0.1) -> tf.Tensor:
    """The mean cross entropy of the words that are there, with smoothed labels (section 5.4).

    Args:
        logits: float32 ``[batch, m, vocabulary]``.
        targets: int32 ``[batch, m]``; 0 counts for nothing.
        smoothing: the share that goes to all words alike.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    logs = tf.nn.log_softmax(logits)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    losses = (1.0 - smoothing) * entropy - smoothing * tf.reduce_mean(logs, axis=2)
    present = tf.cast(tf.not_equal(targets, 0), tf.float32)
    return tf.reduce_sum(losses * present) / tf.maximum(tf.reduce_sum(present), 1.0)


def _embedded(words: tf.Tensor, table: Any) -> tf.Tensor:
    """Vectors of words, and waves of many lengths that tell their places (sections 3.4, 3.5)."""
    units = int(table.shape[1])
    places = tf.cast(tf.range(tf.shape(words)[1]), tf.float32)
    rates = np.exp(-math.log(10_000.0) * np.arange(0, units, 2) / units).astype(np.float32)
    angles = tf.expand_dims(places, 1) * rates
    waves = tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)[:, :units]
    return tf.nn.embedding_lookup(table, words) * math.sqrt(units) + waves


def _padding(words: tf.Tensor) -> tf.Tensor:
    """-1e9 where there is no word: ``[batch, 1, 1, n]``, to add to scores."""
    missing = tf.cast(tf.equal(words, 0), tf.float32)
    return -1e9 * tf.expand_dims(tf.expand_dims(missing, 1), 1)


def _future(steps: tf.Tensor) -> tf.Tensor:
    """-1e9 where the key comes after the query: ``[1, 1, m, m]``."""
    past = tf.matrix_band_part(tf.ones([steps, steps]), -1, 0)
    return -1e9 * tf.reshape(1.0 - past, [1, 1, steps, steps])


def _attention(
    x: tf.Tensor, memory: tf.Tensor, unseen: tf.Tensor, heads: int, name: str
) -> tf.Tensor:
    """Section 3.2: each head mixes values of the memory by how their keys meet its queries."""
    units = int(x.shape[2])

    def project(y: tf.Tensor, part: str) -> tf.Tensor:
        y = tf.layers.dense(y, units, use_bias=False, name=part)
        y = tf.reshape(y, [tf.shape(y)[0], tf.shape(y)[1], heads, units // heads])
        return tf.transpose(y, [0, 2, 1, 3])

    with tf.variable_scope(name):
        query, key, value = project(x, "query"), project(memory, "key"), project(memory, "value")
        scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(units // heads)
        mixed = tf.matmul(tf.nn.softmax(scores + unseen), value)
        mixed = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [tf.shape(x)[0], -1, units])
        return tf.layers.dense(mixed, units, use_bias=False, name="output")


def _normalised(x: tf.Tensor, name: str) -> tf.Tensor:
    """Layer normalisation (Ba, Kiros and Hinton 2016)."""
    with tf.variable_scope(name):
        units = [int(x.shape[2])]
        scale = tf.get_variable("scale", units, initializer=tf.ones_initializer())
        offset = tf.get_variable("offset", units, initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [2], keep_dims=True)
        return (x - mean) * tf.rsqrt(variance + 1e-6) * scale + offset
