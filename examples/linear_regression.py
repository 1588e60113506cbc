"""A line through points, by gradient descent: the smallest program that trains."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--learning_rate", type=float, default=0.1)
args = parser.parse_args()

rng = np.random.RandomState(0)
train_x = rng.uniform(-1, 1, 50).astype(np.float32)
train_y = (3.0 * train_x - 1.0 + 0.1 * rng.randn(50)).astype(np.float32)

X = tf.placeholder("float")
Y = tf.placeholder("float")
W = tf.Variable(0.5, name="weight")
b = tf.Variable(0.0, name="bias")

prediction = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_mean(tf.pow(prediction - Y, 2))
optimizer = tf.train.GradientDescentOptimizer(args.learning_rate).minimize(cost)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        _, loss = sess.run([optimizer, cost], feed_dict={X: train_x, Y: train_y})
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, loss))
    w, offset = sess.run([W, b])
    print("weight %.3f bias %.3f" % (w, offset))
    print("error %.6f" % (abs(w - 3.0) + abs(offset + 1.0)))
