"""An autoencoder of digits, its weights in dictionaries, with image summaries of what it makes."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
flags.DEFINE_string("summaries_dir", "", "Folder for TensorBoard.")
flags.DEFINE_integer("steps", 300, "Training steps.")
FLAGS = flags.FLAGS

sizes = {"input": 784, "h1": 128, "h2": 32}


def variable(shape, seed):
    return tf.Variable(tf.random_normal(shape, stddev=0.1, seed=seed))


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=1)
    tf.set_random_seed(1)
    X = tf.placeholder("float", [None, sizes["input"]])
    weights = {
        "encoder_h1": variable([sizes["input"], sizes["h1"]], 1),
        "encoder_h2": variable([sizes["h1"], sizes["h2"]], 2),
        "decoder_h1": variable([sizes["h2"], sizes["h1"]], 3),
        "decoder_h2": variable([sizes["h1"], sizes["input"]], 4),
    }
    biases = {
        "encoder_b1": tf.Variable(tf.zeros([sizes["h1"]])),
        "encoder_b2": tf.Variable(tf.zeros([sizes["h2"]])),
        "decoder_b1": tf.Variable(tf.zeros([sizes["h1"]])),
        "decoder_b2": tf.Variable(tf.zeros([sizes["input"]])),
    }
    x = X
    for part in ("encoder", "decoder"):
        for i in ("1", "2"):
            wx = tf.matmul(x, weights[part + "_h" + i])
            x = tf.nn.sigmoid(tf.add(wx, biases[part + "_b" + i]))
    loss = tf.reduce_mean(tf.pow(X - x, 2))
    train = tf.train.RMSPropOptimizer(0.005).minimize(loss)
    tf.summary.scalar("loss", loss)
    tf.summary.image("reconstructed", tf.reshape(x, [-1, 28, 28, 1]), max_outputs=2)
    merged = tf.summary.merge_all()

    with tf.Session() as sess:
        writer = (
            tf.summary.FileWriter(FLAGS.summaries_dir, sess.graph) if FLAGS.summaries_dir else None
        )
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            batch, _ = mnist.train.next_batch(100)
            _, value = sess.run([train, loss], {X: batch})
            if step < 10 or step % 100 == 0:
                print("step %d loss %.6f" % (step, value))
            if writer and step % 20 == 0:
                writer.add_summary(sess.run(merged, {X: batch}), step)
        if writer:
            writer.close()
        print("error %.5f" % sess.run(loss, {X: mnist.test.images}))


if __name__ == "__main__":
    tf.app.run()
