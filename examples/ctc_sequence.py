"""Reading a strip of digits without knowing where each of them stands: CTC over an LSTM."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=250)
args = parser.parse_args()

SYMBOLS, FEATURES, TIME = 5, 8, 24


def batch(rng, patterns, count):
    """Each symbol is a pattern held for 2 to 4 frames, with noise; gaps are silent."""
    x = 0.2 * rng.randn(count, TIME, FEATURES)
    labels = []
    for i in range(count):
        at, row = rng.randint(2), []
        while at < TIME - 6:
            symbol, width = rng.randint(SYMBOLS), rng.randint(2, 5)
            x[i, at : at + width] += patterns[symbol]
            row.append(symbol)
            at += width + rng.randint(1, 4)
        labels.append(row)
    return x.astype(np.float32), labels


def sparse(rows):
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = [v for row in rows for v in row]
    shape = (len(rows), max(len(row) for row in rows))
    return tf.SparseTensorValue(np.array(indices, np.int64), np.array(values, np.int32), shape)


tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, TIME, FEATURES])
y = tf.sparse_placeholder(tf.int32)
lengths = tf.fill([tf.shape(x)[0]], TIME)
with tf.variable_scope("rnn", initializer=tf.glorot_uniform_initializer(seed=1)):
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(32), x, lengths, dtype=tf.float32)
logits = tf.layers.dense(
    outputs, SYMBOLS + 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2)
)
logits = tf.transpose(logits, [1, 0, 2])
loss = tf.reduce_mean(tf.nn.ctc_loss(y, logits, lengths))
train = tf.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True).minimize(loss)
(decoded,), _ = tf.nn.ctc_greedy_decoder(logits, lengths)
(beamed,), _ = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=8)
error = tf.reduce_mean(tf.edit_distance(tf.cast(decoded, tf.int32), y))
beam_error = tf.reduce_mean(tf.edit_distance(tf.cast(beamed, tf.int32), y))

rng = np.random.RandomState(0)
patterns = rng.randn(SYMBOLS, FEATURES)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        frames, rows = batch(rng, patterns, 32)
        _, value = sess.run([train, loss], {x: frames, y: sparse(rows)})
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, value))
    frames, rows = batch(rng, patterns, 100)
    print("greedy %.4f" % sess.run(error, {x: frames, y: sparse(rows)}))
    print("error %.4f" % sess.run(beam_error, {x: frames, y: sparse(rows)}))
