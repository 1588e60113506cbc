"""Keras layers in a plain graph: placeholders, a `tf.train` optimiser, one session for both."""

from __future__ import absolute_import, division, print_function

import argparse

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data
from tensorflow.keras import backend as K

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data_dir", default="MNIST_data")
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

mnist = input_data.read_data_sets(args.data_dir, one_hot=True, validation_size=0)
sess = tf.Session()
K.set_session(sess)

images = tf.placeholder(tf.float32, [None, 784])
labels = tf.placeholder(tf.float32, [None, 10])
x = tf.keras.layers.Reshape((28, 28, 1))(images)
x = tf.keras.layers.Conv2D(8, 3, strides=2, activation="relu")(x)
x = tf.keras.layers.BatchNormalization()(x, training=True)
x = tf.keras.layers.Flatten()(x)
x = tf.keras.layers.Dense(64, activation="relu")(x)
x = tf.keras.layers.Dropout(0.5)(x)
predictions = tf.keras.layers.Dense(10, activation="softmax")(x)
loss = tf.reduce_mean(tf.keras.losses.categorical_crossentropy(labels, predictions))
right = tf.equal(tf.argmax(predictions, 1), tf.argmax(labels, 1))
accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
train_step = tf.train.AdamOptimizer(0.002).minimize(loss)

with sess.as_default():
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        batch = mnist.train.next_batch(50)
        feeds = {images: batch[0], labels: batch[1], K.learning_phase(): 1}
        _, value = sess.run([train_step, loss], feeds)
        if step % 50 == 0:
            print("step %d loss %.4f" % (step, value))
    feeds = {images: mnist.test.images, labels: mnist.test.labels, K.learning_phase(): 0}
    print("variables %d" % len(tf.trainable_variables()))
    print("accuracy %.4f" % accuracy.eval(feeds))
