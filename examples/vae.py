"""A variational autoencoder: `tf.distributions`, the reparameterised gradient, analytic KL."""

from __future__ import absolute_import, division, print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

tf.flags.DEFINE_string("data_dir", "MNIST_data", "Folder of the MNIST files.")
tf.flags.DEFINE_integer("steps", 400, "Training steps.")
tf.flags.DEFINE_integer("latent", 8, "Length of the code.")
FLAGS = tf.flags.FLAGS
tfd = tf.distributions


def dense(x, units, seed, activation=None):
    return tf.layers.dense(
        x, units, activation, kernel_initializer=tf.glorot_uniform_initializer(seed=seed)
    )


def encoder(images):
    x = dense(images, 128, 1, tf.nn.relu)
    loc = dense(x, FLAGS.latent, 2)
    scale = dense(x, FLAGS.latent, 3, tf.nn.softplus)
    return tfd.Normal(loc, scale + 1e-3)


def decoder(code):
    x = dense(code, 128, 4, tf.nn.relu)
    return tfd.Bernoulli(logits=dense(x, 784, 5), dtype=tf.float32)


def main(_):
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=1)
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 784])
    make_decoder = tf.make_template("decoder", decoder)

    prior = tfd.Normal(tf.zeros([FLAGS.latent]), tf.ones([FLAGS.latent]))
    posterior = encoder(images)
    code = posterior.sample(seed=6)
    likelihood = tf.reduce_sum(make_decoder(code).log_prob(images), 1)
    divergence = tf.reduce_sum(tfd.kl_divergence(posterior, prior), 1)
    elbo = tf.reduce_mean(likelihood - divergence)
    train = tf.train.AdamOptimizer(0.002).minimize(-elbo)
    drawn = make_decoder(prior.sample(4, seed=7)).mean()

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            batch, _ = mnist.train.next_batch(100)
            _, value = sess.run([train, elbo], {images: (batch > 0.5).astype("f")})
            if step < 10 or step % 100 == 0:
                print("step %d loss %.6f" % (step, -value))
        test = (mnist.test.images > 0.5).astype("f")
        print("drawn", sess.run(drawn).shape)
        print("bound %.3f" % -sess.run(elbo, {images: test}))


if __name__ == "__main__":
    tf.app.run()
