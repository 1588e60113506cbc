"""A convolutional network on `tf.layers`, with batch normalisation and its update ops."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

tf.app.flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
tf.app.flags.DEFINE_integer("steps", 200, "Training steps.")
tf.app.flags.DEFINE_integer("batch_size", 50, "Images in a step.")
FLAGS = tf.app.flags.FLAGS


def init(seed):
    return tf.variance_scaling_initializer(scale=2.0, seed=seed)


def model(images, training):
    x = tf.reshape(images, [-1, 28, 28, 1])
    for i, filters in enumerate((16, 32)):
        x = tf.layers.conv2d(x, filters, 5, padding="same", kernel_initializer=init(i))
        x = tf.layers.batch_normalization(x, training=training)
        x = tf.nn.relu(x)
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.flatten(x)
    x = tf.layers.dense(x, 64, activation=tf.nn.relu, kernel_initializer=init(2))
    x = tf.layers.dropout(x, 0.3, training=training, seed=11)
    return tf.layers.dense(x, 10, kernel_initializer=init(3))


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=1)
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int32, [None])
    training = tf.placeholder_with_default(False, [])
    logits = model(images, training)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.005, 0.9).minimize(loss)
    correct = tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            x, y = mnist.train.next_batch(FLAGS.batch_size)
            _, value = sess.run([train, loss], {images: x, labels: y, training: True})
            if step < 10 or step % 50 == 0:
                print("step %d loss %.6f" % (step, value))
        feed = {images: mnist.test.images, labels: mnist.test.labels}
        print("accuracy %.4f" % sess.run(accuracy, feed))


if __name__ == "__main__":
    tf.app.run()
