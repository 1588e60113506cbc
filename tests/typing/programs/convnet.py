"""A convolutional network of `tf.layers`, with batch normalisation and its updates."""

from typing import assert_type

import headrace as tf
from headrace.layers import conv2d, max_pooling2d
from headrace.train import GradientDescentOptimizer


def network(images: tf.Tensor, training: bool) -> tf.Tensor:
    net = conv2d(images, filters=8, kernel_size=3, activation=tf.nn.relu, name="conv")
    net = tf.layers.batch_normalization(net, training=training)
    assert_type(net, tf.Tensor)
    net = max_pooling2d(net, 2, 2)
    with tf.variable_scope("head"):
        weights = tf.get_variable("weights", [8 * 14 * 14, 10])
        assert_type(weights, tf.Variable)
    return tf.matmul(tf.layers.flatten(net), weights)


images = tf.placeholder(tf.float32, [None, 28, 28, 1])
labels = tf.placeholder(tf.int64, [None])
logits = network(images, training=True)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
assert_type(loss, tf.Tensor)
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = GradientDescentOptimizer(0.1).minimize(loss)
assert_type(train, tf.Operation)
right = tf.equal(tf.argmax(logits, 1), labels)
assert_type(tf.reduce_mean(tf.cast(right, tf.float32)), tf.Tensor)
