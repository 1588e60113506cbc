"""A graph convolutional network: who belongs to which club, from links and two known members."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("steps", 60, "Training steps.")
flags.DEFINE_float("dropout", 0.3, "Share of the features that is left out.")
FLAGS = flags.FLAGS

NODES, CLUBS, FEATURES, KNOWN = 60, 3, 16, 2


def make_network():
    """Links are more frequent within a club; features hint at it."""
    rng = np.random.RandomState(0)
    club = np.arange(NODES) % CLUBS
    same = club[:, None] == club[None]
    links = rng.rand(NODES, NODES) < np.where(same, 0.25, 0.02)
    links = np.maximum(links, links.T) + np.eye(NODES)
    scale = links.sum(1) ** -0.5
    features = (rng.rand(NODES, FEATURES) < 0.2).astype(np.float32)
    features[np.arange(NODES), club] = rng.rand(NODES) < 0.7
    return links * scale[:, None] * scale[None], features, club


def to_tuple(matrix):
    """Coordinates, values and shape: what a sparse placeholder is fed."""
    places = np.argwhere(matrix)
    return places, matrix[tuple(places.T)].astype(np.float32), matrix.shape


def sparse_dropout(x, keep_prob, noise_shape):
    kept = tf.floor(keep_prob + tf.random_uniform(noise_shape, seed=7))
    return tf.sparse_retain(x, tf.cast(kept, tf.bool)) * (1.0 / keep_prob)


def convolution(x, support, sizes, seed, sparse_inputs=False):
    weights = tf.Variable(tf.random_uniform(sizes, -0.4, 0.4, seed=seed))
    multiply = tf.sparse_tensor_dense_matmul if sparse_inputs else tf.matmul
    return tf.sparse_tensor_dense_matmul(support, multiply(x, weights)), weights


def main(_):
    links, features, club = make_network()
    support = tf.sparse_placeholder(tf.float32, name="support")
    inputs = tf.sparse_placeholder(tf.float32, shape=[NODES, FEATURES], name="features")
    labels = tf.placeholder(tf.int64, [NODES], name="labels")
    mask = tf.placeholder(tf.float32, [NODES], name="mask")
    dropout = tf.placeholder_with_default(0.0, [], name="dropout")
    count = tf.placeholder(tf.int32, [1], name="count")

    tf.set_random_seed(1)
    dropped = sparse_dropout(inputs, 1 - dropout, count)
    hidden, first = convolution(dropped, support, [FEATURES, 16], 1, sparse_inputs=True)
    logits, _ = convolution(tf.nn.relu(hidden), support, [16, CLUBS], 2)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask) + 5e-4 * tf.nn.l2_loss(first)
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    right = tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32)
    accuracy = tf.reduce_sum(right * (1 - mask)) / tf.reduce_sum(1 - mask)

    known = np.zeros(NODES, np.float32)
    known[: KNOWN * CLUBS] = 1
    fed = to_tuple(features)
    feed = {support: to_tuple(links), inputs: fed, labels: club, mask: known, count: fed[1].shape}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            value, _ = sess.run([loss, train], feed_dict={**feed, dropout: FLAGS.dropout})
            if step < 10 or step % 20 == 0:
                print("step %d loss %.6f" % (step, value))
        print("accuracy %.3f" % sess.run(accuracy, feed_dict=feed))


if __name__ == "__main__":
    tf.app.run()
