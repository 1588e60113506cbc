"""Sequences of different lengths by `tf.data`: buckets, padded batches, a feedable iterator."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=250)
args = parser.parse_args()


def sequences(seed, count):
    """Numbers 1 to 9; the label says whether a 7 comes behind a 3."""

    def generate():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            numbers = rng.randint(1, 10, rng.randint(3, 13))
            if rng.rand() < 0.5:
                numbers[1:3] = [3, 7]
            behind = any(3 in numbers[:i] for i in np.where(numbers == 7)[0])
            yield numbers, int(behind)

    data = tf.data.Dataset.from_generator(generate, (tf.int32, tf.int32), ([None], []))
    return data.apply(
        tf.data.experimental.bucket_by_sequence_length(
            element_length_func=lambda numbers, label: tf.shape(numbers)[0],
            bucket_boundaries=[5, 9],
            bucket_batch_sizes=[32, 32, 32],
        )
    )


training = sequences(0, 2000).repeat().make_one_shot_iterator()
testing = sequences(1, 300).make_initializable_iterator()
handle = tf.placeholder(tf.string, [])
types, shapes = (tf.int32, tf.int32), (tf.TensorShape([None, None]), tf.TensorShape([None]))
iterator = tf.data.Iterator.from_string_handle(handle, types, shapes)
numbers, labels = iterator.get_next()

lengths = tf.reduce_sum(tf.cast(numbers > 0, tf.int32), 1)
initial = tf.random_uniform_initializer(-0.4, 0.4, seed=1)
table = tf.get_variable("table", [10, 8], initializer=initial)
cell = tf.nn.rnn_cell.GRUCell(24, kernel_initializer=tf.orthogonal_initializer(seed=2))
_, state = tf.nn.dynamic_rnn(
    cell, tf.nn.embedding_lookup(table, numbers), lengths, dtype=tf.float32
)
logits = tf.layers.dense(state, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)
right = tf.nn.in_top_k(logits, labels, 1)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), testing.initializer])
    train_handle, test_handle = sess.run([training.string_handle(), testing.string_handle()])
    for step in range(args.steps):
        _, value = sess.run([train_op, loss], {handle: train_handle})
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, value))
    results = []
    try:
        while True:
            results.extend(sess.run(right, {handle: test_handle}))
    except tf.errors.OutOfRangeError:
        print("tested %d" % len(results))
    print("accuracy %.4f" % np.mean(results))
