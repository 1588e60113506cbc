"""A slim model: `arg_scope`, batch norm, regularisation, `create_train_op`."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.examples.tutorials.mnist import input_data

tf.app.flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
tf.app.flags.DEFINE_integer("steps", 150, "Training steps.")
FLAGS = tf.app.flags.FLAGS


def arg_scope(is_training):
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=slim.l2_regularizer(5e-4),
        weights_initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1),
    ):
        with slim.arg_scope([slim.dropout], is_training=is_training) as scope:
            return scope


def lenet(images):
    end_points = {}
    net = slim.conv2d(images, 16, [5, 5], scope="conv1")
    net = end_points["pool1"] = slim.max_pool2d(net, [2, 2], 2, scope="pool1")
    net = slim.conv2d(net, 32, [5, 5], normalizer_fn=slim.batch_norm, scope="conv2")
    net = end_points["pool2"] = slim.max_pool2d(net, [2, 2], 2, scope="pool2")
    net = slim.flatten(net)
    net = end_points["fc3"] = slim.fully_connected(net, 64, scope="fc3")
    net = slim.dropout(net, 0.7, scope="dropout3")
    return slim.fully_connected(net, 10, activation_fn=None, scope="logits"), end_points


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=1)
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int64, [None])
    with slim.arg_scope(arg_scope(is_training=False)):
        logits, end_points = lenet(tf.reshape(images, [-1, 28, 28, 1]))
    slim.losses.sparse_softmax_cross_entropy(logits, labels)
    total = slim.losses.get_total_loss()
    train = slim.learning.create_train_op(total, tf.train.AdamOptimizer(0.002))
    accuracy, update = slim.metrics.streaming_accuracy(tf.argmax(logits, 1), labels)
    slim.model_analyzer.analyze_vars(slim.get_model_variables(), print_info=False)
    print("end points", sorted(end_points))

    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for step in range(FLAGS.steps):
            x, y = mnist.train.next_batch(50)
            value = sess.run(train, {images: x, labels: y})
            if step < 10 or step % 50 == 0:
                print("step %d loss %.6f" % (step, value))
        for i in range(4):
            rows = slice(i * 250, (i + 1) * 250)
            sess.run(update, {images: mnist.test.images[rows], labels: mnist.test.labels[rows]})
        print("accuracy %.4f" % sess.run(accuracy))


if __name__ == "__main__":
    tf.app.run()
