"""A language model of stacked LSTMs over words.

Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization" (2014, arXiv:1409.2329),
sections 3 and 4.1: dropout between the layers and none in time. Of its models over the 10,000 words
of the Penn Treebank, the medium one (2 layers of 650 units) has 20 million parameters and the large
one (1,500 units) 66 million, as later papers list them (Press and Wolf, "Using the output embedding
to improve language models", EACL 2017, Table 3).

    layer                         out                     parameters, 650 and 1,500 units
    embedding                     batch x steps x units        6,500,000       15,000,000
    lstm, twice                   batch x steps x units        6,765,200       36,012,000
    softmax                       batch x steps x 10,000       6,510,000       15,010,000
                                                   in all:    19,775,200       66,022,000
"""

from __future__ import annotations

from typing import Any

import headrace as tf


def word_lstm(
    words: tf.Tensor,
    state: Any = None,
    vocabulary: int = 10_000,
    units: int = 650,
    layers: int = 2,
    keep: Any = 1.0,
    scope: str = "word_lstm",
) -> tuple[tf.Tensor, Any]:
    """Logits of the word behind each word, and the state behind the last.

    Args:
        words: int32 ``[batch, steps]``, numbers of words.
        state: what an earlier call gave, to go on with a text; zeros unless told.
        vocabulary: how many words there are.
        units: of each layer, and of a word's vector.
        layers: how many lie on each other.
        keep: the share of values that go from layer to layer in training (0.5 in the medium model,
            0.35 in the large one): a float, or a float32 scalar tensor.
        scope: of the variables.

    Returns:
        float32 ``[batch, steps, vocabulary]``, and a tuple of a state ``(c, h)`` a layer, each
        float32 ``[batch, units]``.

    Raises:
        TypeError: if the words are no integers.

    >>> logits, state = tf.models.word_lstm(tf.placeholder(tf.int32, [20, 35]))
    >>> logits.shape.as_list(), state[0].h.shape.as_list()
    ([20, 35, 10000], [20, 650])
    """
    uniform = tf.random_uniform_initializer(-0.05, 0.05)
    with tf.variable_scope(scope, initializer=uniform):
        embedding = tf.get_variable("embedding", [vocabulary, units])
        x = tf.nn.dropout(tf.nn.embedding_lookup(embedding, words), keep_prob=keep)
        cells = [
            tf.nn.rnn_cell.DropoutWrapper(
                tf.nn.rnn_cell.BasicLSTMCell(units, forget_bias=0.0), output_keep_prob=keep
            )
            for _ in range(layers)
        ]
        x, state = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.MultiRNNCell(cells), x, initial_state=state, dtype=tf.float32
        )
        logits = tf.layers.dense(x, vocabulary, kernel_initializer=uniform, name="softmax")
        return logits, state


def word_loss(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """The mean cross entropy a word: its exponential is the perplexity.

    Args:
        logits: float32 ``[batch, steps, vocabulary]``.
        targets: integers ``[batch, steps]``: the words that come next.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    )
