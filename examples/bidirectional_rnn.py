"""Does a token occur again, before or after? It takes a recurrent network in both directions."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

LENGTH = 12


def batch(rng, count):
    """Tokens, lengths, and for each token whether it occurs again somewhere else."""
    tokens = rng.randint(1, 10, size=(count, LENGTH))
    lengths = rng.randint(4, LENGTH + 1, size=count)
    inside = np.arange(LENGTH) < lengths[:, None]
    tokens = tokens * inside
    same = (tokens[:, :, None] == tokens[:, None, :]) & inside[:, None, :] & inside[:, :, None]
    return tokens, lengths, (same.sum(2) > 1).astype(np.int32)


tf.set_random_seed(1)
tokens = tf.placeholder(tf.int32, [None, LENGTH])
lengths = tf.placeholder(tf.int32, [None])
labels = tf.placeholder(tf.int32, [None, LENGTH])
embedding = tf.get_variable("embedding", [10, 16], initializer=tf.orthogonal_initializer(seed=1))
x = tf.nn.embedding_lookup(embedding, tokens)
with tf.variable_scope("both", initializer=tf.glorot_uniform_initializer(seed=2)):
    (forward, backward), states = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.LSTMCell(32),
        tf.nn.rnn_cell.LSTMCell(32),
        x,
        sequence_length=lengths,
        dtype=tf.float32,
    )
features = tf.concat([forward, backward, x], 2)
hidden = tf.layers.dense(
    features, 32, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=3)
)
logits = tf.layers.dense(hidden, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=4))
mask = tf.sequence_mask(lengths, LENGTH, dtype=tf.float32)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
train = tf.train.AdamOptimizer(0.01).minimize(loss)
right = tf.cast(tf.equal(tf.argmax(logits, 2, output_type=tf.int32), labels), tf.float32)
accuracy = tf.reduce_sum(right * mask) / tf.reduce_sum(mask)

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        t, n, y = batch(rng, 64)
        _, value = sess.run([train, loss], {tokens: t, lengths: n, labels: y})
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, value))
    t, n, y = batch(rng, 500)
    print("accuracy %.4f" % sess.run(accuracy, {tokens: t, lengths: n, labels: y}))
