"""Models of the years 2016 to 2018 that make data: written as their papers' programs were."""

from __future__ import annotations

import numpy as np

import headrace as tf


def _digits(count: int) -> np.ndarray:
    """Ten smooth patterns of 6x6 pixels with noise, the stand-in for images of digits."""
    rng = np.random.RandomState(0)
    patterns = (rng.rand(10, 36) < 0.4).astype(np.float32)
    noise = rng.rand(count, 36) < 0.05
    return np.abs(patterns[rng.randint(0, 10, count)] - noise).astype(np.float32)


def _dense(x, size, name, activation=None):
    with tf.variable_scope(name):
        shape = [x.get_shape()[1], size]
        w = tf.get_variable("w", shape, initializer=tf.random_normal_initializer(0.0, 0.2, seed=1))
        b = tf.get_variable("b", [size], initializer=tf.constant_initializer(0.0))
    y = tf.nn.bias_add(tf.matmul(x, w), b)
    return y if activation is None else activation(y)


def test_variational_autoencoder_beats_the_entropy_of_single_pixels():
    data = _digits(512)
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 36])
    h = _dense(x, 48, "encoder", tf.nn.elu)
    mu, log_var = _dense(h, 6, "mu"), _dense(h, 6, "log_var")
    z = mu + tf.exp(log_var / 2) * tf.random_normal(tf.shape(mu), 0, 1, dtype=tf.float32)

    def decode(code, reuse=None):
        with tf.variable_scope("decoder", reuse=reuse):
            return _dense(_dense(code, 48, "hidden", tf.nn.elu), 36, "pixels")

    xent = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=decode(z))
    kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mu) - tf.exp(log_var), reduction_indices=1)
    loss = tf.reduce_mean(tf.reduce_sum(xent, axis=1) + kl)
    train = tf.train.AdamOptimizer(5e-3).minimize(loss)
    samples = tf.nn.sigmoid(decode(tf.random_normal([20, 6], seed=3), reuse=True))

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(500):
            rows = np.arange(i * 64, i * 64 + 64) % 512
            sess.run(train, {x: data[rows]})
        bound, kl_now = sess.run([loss, tf.reduce_mean(kl)], {x: data})
        made = sess.run(samples)

    mean = data.mean(0).clip(1e-3, 1 - 1e-3)
    entropy = -np.sum(mean * np.log(mean) + (1 - mean) * np.log(1 - mean))
    assert bound < 0.75 * entropy  # the code tells which pattern it is ...
    assert kl_now > 1.0  # ... so it is used
    assert made.shape == (20, 36)
    assert 0.0 <= made.min() < 0.1 < 0.9 < made.max() <= 1.0
    assert len(tf.trainable_variables()) == 10  # decoding twice has shared the decoder


def test_generative_adversarial_network_finds_mean_and_spread():
    rng = np.random.RandomState(0)
    z = tf.placeholder(tf.float32, [None, 4], name="z")
    x = tf.placeholder(tf.float32, [None, 1], name="x")
    with tf.variable_scope("G"):
        fake = _dense(_dense(z, 16, "g0", tf.nn.softplus), 1, "g1")

    def discriminate(sample):
        return _dense(_dense(sample, 16, "d0", tf.nn.leaky_relu), 1, "d1")

    with tf.variable_scope("D") as scope:
        real = discriminate(x)
        scope.reuse_variables()
        judged = discriminate(fake)
    xent = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(xent(logits=real, labels=tf.ones_like(real)))
    d_loss += tf.reduce_mean(xent(logits=judged, labels=tf.zeros_like(judged)))
    g_loss = tf.reduce_mean(xent(logits=judged, labels=tf.ones_like(judged)))
    d_vars = [v for v in tf.trainable_variables() if v.name.startswith("D/")]
    g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="G/")
    assert [len(d_vars), len(g_vars)] == [4, 4]
    d_step = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(d_loss, var_list=d_vars)
    g_step = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(g_loss, var_list=g_vars)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(d_vars)
        sess.run(g_step, {z: rng.randn(8, 4)})
        for old, new in zip(before, sess.run(d_vars), strict=True):
            np.testing.assert_array_equal(old, new)  # the generator's step leaves D alone
        for _ in range(500):
            noise = rng.randn(64, 4)
            sess.run(d_step, {x: rng.randn(64, 1) * 0.5 + 3, z: noise})
            sess.run(g_step, {z: noise})
        made = sess.run(fake, {z: rng.randn(1000, 4)})
    assert abs(made.mean() - 3) < 0.75
    assert 0.05 < made.std() < 1.5


def test_autoencoder_decodes_a_code_that_is_fed():
    data = _digits(256)
    x = tf.placeholder("float", [None, 36])
    code = _dense(x, 8, "encoder", tf.nn.sigmoid)
    y = _dense(code, 36, "decoder", tf.nn.sigmoid)
    loss = tf.reduce_mean(tf.pow(x - y, 2))
    train = tf.train.RMSPropOptimizer(0.02, centered=True, momentum=0.5).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(loss, {x: data})
        for _ in range(200):
            sess.run(train, {x: data})
        codes, last, made = sess.run([code, loss, y], {x: data})
        again = sess.run(y, {code: codes})
    assert last < 0.4 * first
    np.testing.assert_allclose(again, made, rtol=1e-5, atol=1e-6)
