"""Nearest neighbour by L1 distance on handwritten digits: no training, one graph."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
flags.DEFINE_integer("train", 3000, "Images to compare with.")
flags.DEFINE_integer("test", 100, "Images to classify.")
FLAGS = flags.FLAGS


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=0, seed=1)
    train_x, train_y = mnist.train.next_batch(FLAGS.train, shuffle=False)
    test_x, test_y = mnist.test.next_batch(FLAGS.test, shuffle=False)

    xtr = tf.placeholder("float", [None, 784])
    xte = tf.placeholder("float", [784])
    distance = tf.reduce_sum(tf.abs(tf.add(xtr, tf.negative(xte))), axis=1)
    pred = tf.argmin(distance, 0)

    hits = 0.0
    with tf.Session() as sess:
        for i in range(len(test_x)):
            index, near = sess.run(
                [pred, tf.get_default_graph().get_tensor_by_name(distance.name)],
                feed_dict={xtr: train_x, xte: test_x[i, :]},
            )
            if i < 10:
                print("step %d loss %.6f" % (i, near[index]))
            hits += np.argmax(train_y[index]) == np.argmax(test_y[i])
    print("accuracy %.4f" % (hits / len(test_x)))


if __name__ == "__main__":
    tf.app.run()
