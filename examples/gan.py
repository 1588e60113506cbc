"""Two networks against each other: a generator learns a distribution of points on a ring."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=1500)
args = parser.parse_args()


def dense(x, units, name, seed, activation=None):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        w = tf.get_variable(
            "w", [x.shape[1].value, units], initializer=tf.glorot_normal_initializer(seed=seed)
        )
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
    y = tf.matmul(x, w) + b
    return activation(y) if activation else y


def generator(z):
    with tf.variable_scope("generator"):
        h = dense(z, 32, "h1", 1, tf.nn.relu)
        h = dense(h, 32, "h2", 2, tf.nn.relu)
        return dense(h, 2, "out", 3)


def discriminator(x):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        h = dense(x, 32, "h1", 4, tf.nn.leaky_relu)
        h = dense(h, 32, "h2", 5, tf.nn.leaky_relu)
        return dense(h, 1, "out", 6)


def ring(rng, count):
    angle = rng.uniform(0, 2 * np.pi, count)
    radius = 2 + 0.05 * rng.randn(count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32)


tf.set_random_seed(1)
z = tf.placeholder(tf.float32, [None, 8])
real = tf.placeholder(tf.float32, [None, 2])
fake = generator(z)
real_score, fake_score = discriminator(real), discriminator(fake)


def cross_entropy(logits, label):
    labels = tf.fill(tf.shape(logits), label)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))


d_loss = cross_entropy(real_score, 1.0) + cross_entropy(fake_score, 0.0)
g_loss = cross_entropy(fake_score, 1.0)
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="discriminator")
d_train = tf.train.AdamOptimizer(1e-3, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_train = tf.train.AdamOptimizer(1e-3, beta1=0.5).minimize(g_loss, var_list=g_vars)

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        noise = rng.randn(128, 8).astype(np.float32)
        _, loss = sess.run([d_train, d_loss], {z: noise, real: ring(rng, 128)})
        sess.run(g_train, {z: rng.randn(128, 8).astype(np.float32)})
        if step < 10 or step % 500 == 0:
            print("step %d loss %.6f" % (step, loss))
    made = sess.run(fake, {z: rng.randn(1000, 8).astype(np.float32)})
radius = np.sqrt((made**2).sum(1))
print("radius mean %.3f" % radius.mean())
print("error %.4f" % np.abs(radius - 2).mean())
