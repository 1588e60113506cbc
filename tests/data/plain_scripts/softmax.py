"""The softmax program of README.md, with batches of one seed, that prints its loss as it goes."""

import os
import sys

import headrace as tf
from headrace.examples.tutorials.mnist import input_data

mnist = input_data.read_data_sets(os.environ["MNIST"], one_hot=True, validation_size=0, seed=3)
x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
W, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
y = tf.nn.softmax(tf.matmul(x, W) + b)
reduce = tf.reduce_mean if "mean" in sys.argv else tf.reduce_sum
rate = 0.5 if "mean" in sys.argv else 0.005
loss = reduce(-tf.reduce_sum(y_ * tf.log(y + 1e-10), 1))
step = tf.train.GradientDescentOptimizer(rate).minimize(loss)
right = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
test = {x: mnist.test.images[:500], y_: mnist.test.labels[:500]}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(60):
        batch_x, batch_y = mnist.train.next_batch(101)
        sess.run(step, {x: batch_x, y_: batch_y})
        if i % 10 == 9 and "sync" in sys.argv:
            print("loss", sess.run(loss, test))
    print("accuracy", sess.run(accuracy, test))
