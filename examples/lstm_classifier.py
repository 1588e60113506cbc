"""Digits read row by row by an LSTM: `dynamic_rnn` over sequences of different lengths."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

tf.flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
tf.flags.DEFINE_integer("steps", 300, "Training steps.")
tf.flags.DEFINE_integer("units", 64, "Units of the LSTM.")
FLAGS = tf.flags.FLAGS


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=0, seed=1)
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 28, 28])
    lengths = tf.placeholder(tf.int32, [None])
    labels = tf.placeholder(tf.float32, [None, 10])

    with tf.variable_scope("rnn", initializer=tf.glorot_uniform_initializer(seed=5)):
        cell = tf.nn.rnn_cell.BasicLSTMCell(FLAGS.units, forget_bias=1.0)
        _, state = tf.nn.dynamic_rnn(cell, images, sequence_length=lengths, dtype=tf.float32)
    w = tf.Variable(tf.random_normal([FLAGS.units, 10], stddev=0.1, seed=6))
    logits = tf.matmul(state.h, w)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
    optimizer = tf.train.AdamOptimizer(0.005)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train = optimizer.apply_gradients(zip(gradients, variables))
    correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

    def feed(x, y):
        # Rows of paper at the bottom are left out.
        rows = x.reshape([-1, 28, 28])
        used = 28 - np.argmax(rows[:, ::-1].max(axis=2) > 0, axis=1)
        return {images: rows, lengths: used, labels: y}

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            _, value = sess.run([train, loss], feed(*mnist.train.next_batch(64)))
            if step < 10 or step % 100 == 0:
                print("step %d loss %.6f" % (step, value))
        print("accuracy %.4f" % sess.run(accuracy, feed(mnist.test.images, mnist.test.labels)))


if __name__ == "__main__":
    tf.app.run()
