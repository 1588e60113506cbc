"""Softmax regression on handwritten digits: the first program of every tutorial."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
flags.DEFINE_integer("steps", 500, "Training steps.")
flags.DEFINE_integer("batch_size", 100, "Images in a step.")
FLAGS = flags.FLAGS


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=0, seed=1)
    x = tf.placeholder(tf.float32, [None, 784])
    y_ = tf.placeholder(tf.float32, [None, 10])
    W = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.matmul(x, W) + b

    cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

    sess = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    for step in range(FLAGS.steps):
        batch_xs, batch_ys = mnist.train.next_batch(FLAGS.batch_size)
        _, loss = sess.run([train_step, cross_entropy], feed_dict={x: batch_xs, y_: batch_ys})
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, loss))
    test = {x: mnist.test.images, y_: mnist.test.labels}
    print("accuracy %.4f" % accuracy.eval(feed_dict=test))


if __name__ == "__main__":
    tf.app.run()
