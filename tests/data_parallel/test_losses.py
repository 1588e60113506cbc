"""Sums, means and neither: what losses are made of."""

import pytest

import headrace as tf
from headrace.data_parallel.losses import examine


def rows():
    return tf.placeholder(tf.float32, [None, 4])


def count(x):
    return tf.cast(tf.shape(x)[0], tf.float32)


def cross_entropy(x):
    labels = tf.placeholder(tf.int64, [None])
    logits = tf.layers.dense(x, 3)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


MEANS = {
    "mean": lambda x: tf.reduce_mean(tf.square(x)),
    "mean of sums": lambda x: tf.reduce_mean(-tf.reduce_sum(x, axis=1)),
    "regularised": lambda x: tf.reduce_mean(x) + 0.1 * tf.nn.l2_loss(tf.Variable([1.0])),
    "sum by count": lambda x: tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32),
    "cross entropy": lambda x: tf.reduce_mean(cross_entropy(x)),
    "tf.losses": lambda x: tf.losses.mean_squared_error(tf.zeros_like(x), x),
    "total": lambda x: [tf.losses.absolute_difference(x, x + 1.0), tf.losses.get_total_loss()][1],
    "rows by count": lambda x: tf.reduce_sum(tf.reduce_sum(x, axis=1) / count(x)),
    "rows by count, later": lambda x: tf.reduce_sum(2.0 * tf.reduce_sum(x / count(x), axis=1)),
    "rows by the number of ones": lambda x: tf.reduce_sum(
        tf.square(x) / tf.reduce_sum(tf.ones_like(x))
    ),
    "rows by their weight": lambda x: tf.reduce_sum(x / tf.reduce_sum(tf.abs(x))),
    "times the inverse count": lambda x: tf.reduce_sum(x) * (1.0 / count(x)),
    "by one at least": lambda x: tf.reduce_sum(x) / tf.maximum(count(x), 1.0),
    "if there are any": lambda x: tf.where(count(x) > 0.0, tf.reduce_sum(x) / count(x), 0.0),
    "with drawn rows": lambda x: tf.reduce_mean(x + tf.random_normal(tf.shape(x))),
    "with filled rows": lambda x: tf.reduce_mean(x[:, 0] * tf.fill([tf.shape(x)[0]], 0.5)),
    "product of matrices": lambda x: (
        tf.reshape(tf.matmul(x, x, transpose_a=True), [16])[0] / count(x)
    ),
    "no input": lambda x: tf.square(tf.Variable(1.0)),
}
SUMS = {
    "sum": lambda x: tf.reduce_sum(tf.square(x)),
    "sum by a constant": lambda x: tf.reduce_sum(x) / 100.0,
    "two sums": lambda x: tf.reduce_sum(x) - 2.0 * tf.reduce_sum(x, axis=0)[0],
    "rows": lambda x: tf.reduce_sum(x, axis=1),
    "from a dataset": lambda x: tf.reduce_sum(
        tf.data.Dataset.range(4).batch(2).make_one_shot_iterator().get_next()
    ),
    "rows over rows": lambda x: tf.reduce_sum(x / tf.sqrt(tf.reduce_sum(x, 1, keepdims=True))),
    "mean times count": lambda x: tf.reduce_mean(x) * count(x),
    "sum of squares": lambda x: tf.nn.l2_loss(x),
    "product of matrices": lambda x: tf.matmul(x, x, transpose_a=True)[0, 0],
    "dropout": lambda x: tf.reduce_sum(tf.nn.dropout(x, 0.5)),
}
NEITHER = {
    "largest": lambda x: tf.reduce_max(x),
    "root of a mean": lambda x: tf.sqrt(tf.reduce_mean(x)),
    "product": lambda x: tf.reduce_mean(x) * tf.reduce_sum(x),
    "by the root of the count": lambda x: tf.reduce_sum(x) / tf.sqrt(count(x)),
    "mean by count": lambda x: tf.reduce_mean(x) / count(x),
    "mean of rows by count": lambda x: tf.reduce_mean(x / count(x)),
    "square of rows by count": lambda x: tf.reduce_sum(tf.square(x / count(x))),
    "the first row": lambda x: x[0, 0],
    "the larger of two sums": lambda x: tf.maximum(tf.reduce_sum(x), tf.reduce_sum(-x)),
    "sum and term": lambda x: tf.reduce_sum(x) + tf.Variable(1.0),
}


@pytest.mark.parametrize("make", MEANS.values(), ids=MEANS)
def test_means(make):
    found = examine(make(rows()))
    assert found.is_mean, found.kinds


@pytest.mark.parametrize("make", SUMS.values(), ids=SUMS)
def test_sums(make):
    found = examine(make(rows()))
    assert found.is_sum, found.kinds


@pytest.mark.parametrize("make", NEITHER.values(), ids=NEITHER)
def test_neither(make):
    found = examine(make(rows()))
    assert not found.is_sum, found.kinds
    assert not found.is_mean, found.kinds


def test_batch_normalisation_mixes_examples():
    x = rows()
    assert not examine(tf.reduce_mean(tf.layers.dense(x, 2))).mixing
    normal = tf.layers.batch_normalization(x, training=True)
    assert examine(tf.reduce_mean(normal)).mixing
