"""Adding binary numbers with a GRU, unrolled by `static_rnn`."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--bits", type=int, default=8)
args = parser.parse_args()


def batch(rng, count):
    """Two numbers, least significant bit first, and their sum."""
    numbers = rng.randint(2 ** (args.bits - 1), size=(count, 2))
    bits = (numbers[:, :, None] >> np.arange(args.bits)) & 1
    total = (numbers.sum(1)[:, None] >> np.arange(args.bits)) & 1
    return bits.transpose(0, 2, 1).astype(np.float32), total.astype(np.float32)


tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, args.bits, 2])
y = tf.placeholder(tf.float32, [None, args.bits])
with tf.variable_scope("adder", initializer=tf.orthogonal_initializer(seed=1)):
    cell = tf.nn.rnn_cell.GRUCell(16)
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
w = tf.get_variable("w", [16, 1], initializer=tf.random_normal_initializer(0, 0.3, seed=2))
b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
logits = tf.concat([tf.matmul(output, w) + b for output in outputs], 1)
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.AdamOptimizer(0.02).minimize(loss)
right = tf.reduce_all(tf.equal(logits > 0, y > 0.5), axis=1)
accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        bits, total = batch(rng, 64)
        _, value = sess.run([train, loss], {x: bits, y: total})
        if step < 10 or step % 200 == 0:
            print("step %d loss %.6f" % (step, value))
    bits, total = batch(rng, 500)
    print("accuracy %.4f" % sess.run(accuracy, {x: bits, y: total}))
