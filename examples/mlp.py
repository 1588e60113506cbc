"""A multilayer perceptron with dropout, `get_variable` and scopes, trained with Adam."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
flags.DEFINE_integer("steps", 400, "Training steps.")
flags.DEFINE_integer("hidden", 128, "Units of each hidden layer.")
FLAGS = flags.FLAGS


def layer(x, size, name, seed, activation=None):
    with tf.variable_scope(name):
        initializer = tf.truncated_normal_initializer(stddev=0.05, seed=seed)
        w = tf.get_variable("w", [x.get_shape()[1], size], initializer=initializer)
        b = tf.get_variable("b", [size], initializer=tf.constant_initializer(0.1))
        y = tf.nn.xw_plus_b(x, w, b)
        return y if activation is None else activation(y)


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=1)
    tf.set_random_seed(42)
    x = tf.placeholder(tf.float32, [None, 784], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    keep = tf.placeholder_with_default(1.0, [], name="keep_prob")

    h = layer(x, FLAGS.hidden, "hidden1", 1, tf.nn.relu)
    h = tf.nn.dropout(h, keep_prob=keep, seed=7)
    h = layer(h, FLAGS.hidden, "hidden2", 2, tf.nn.relu)
    logits = layer(h, 10, "output", 3)

    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    weights = [v for v in tf.trainable_variables() if v.op.name.endswith("/w")]
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(w) for w in weights])
    global_step = tf.Variable(0, trainable=False, name="global_step")
    rate = tf.train.exponential_decay(2e-3, global_step, 200, 0.5, staircase=True)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            images, targets = mnist.train.next_batch(64)
            feed = {x: images, labels: targets, keep: 0.8}
            _, value = sess.run([train, loss], feed)
            if step < 10 or step % 100 == 0:
                print("step %d loss %.6f" % (step, value))
        feed = {x: mnist.test.images, labels: mnist.test.labels}
        print("accuracy %.4f" % sess.run(accuracy, feed))


if __name__ == "__main__":
    tf.app.run()
