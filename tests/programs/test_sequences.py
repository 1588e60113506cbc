"""Recurrent networks and embeddings, built by hand from loops, arrays and lookups."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def _lstm_step(x, c, h, w, b):
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w) + b, 4, axis=1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _weights(inputs: int, hidden: int):
    w = np.random.RandomState(0).randn(inputs + hidden, 4 * hidden).astype(np.float32) * 0.2
    return tf.get_variable("W", initializer=w), tf.get_variable(
        "b", initializer=tf.zeros([4 * hidden])
    )


def test_lstm_loop_with_lengths_equals_the_unrolled_one_and_learns():
    rng = np.random.RandomState(1)
    x = tf.placeholder(tf.float32, [None, None, 2])
    lengths = tf.placeholder(tf.int32, [None])
    w, b = _weights(2, 12)
    readout = tf.get_variable("readout", initializer=rng.randn(12, 1).astype(np.float32))
    batch, steps = tf.shape(x)[0], tf.shape(x)[1]
    inputs = tf.TensorArray(tf.float32, size=steps).unstack(tf.transpose(x, [1, 0, 2]))
    outputs = tf.TensorArray(dtype=tf.float32, size=steps)

    def body(t, c, h, ta):
        new_c, new_h = _lstm_step(inputs.read(t), c, h, w, b)
        alive = t < lengths
        c, h = tf.where(alive, new_c, c), tf.where(alive, new_h, h)
        return t + 1, c, h, ta.write(t, h)

    zero = tf.zeros([batch, 12])
    _, _, _, ta = tf.while_loop(lambda t, *_: t < steps, body, [0, zero, zero, outputs])
    by_time = ta.stack()
    last = tf.gather_nd(
        tf.transpose(by_time, [1, 0, 2]), tf.stack([tf.range(batch), lengths - 1], 1)
    )
    y = tf.squeeze(tf.matmul(last, readout), [1])
    target = tf.placeholder(tf.float32, [None])
    loss = tf.reduce_mean(tf.square(y - target))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)

    c = h = tf.zeros([3, 12])
    for xt in tf.unstack(tf.slice(x, [0, 0, 0], [3, 4, 2]), num=4, axis=1):
        c, h = _lstm_step(xt, c, h, w, b)
    unrolled = tf.gradients(tf.reduce_sum(h), [w, b])
    looped = tf.gradients(tf.reduce_sum(last), [w, b])

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: rng.randn(3, 4, 2), lengths: [4, 4, 4]}
        np.testing.assert_allclose(sess.run(last, feed), sess.run(h, feed), rtol=1e-5, atol=1e-6)
        for a, e in zip(sess.run(looped, feed), sess.run(unrolled, feed), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)
        losses = []
        for _ in range(120):  # what was the first number of the sequence?
            data = rng.randn(32, 6, 2)
            feed = {x: data, lengths: rng.randint(1, 7, 32), target: data[:, 0, 0]}
            losses.append(sess.run([loss, train], feed)[0])
    assert np.mean(losses[-10:]) < 0.4 * np.mean(losses[:10])


def test_character_rnn_with_scan_carries_its_state_from_batch_to_batch():
    text = "the quick brown fox jumps over the lazy dog. "
    chars = sorted(set(text))
    data = np.array([chars.index(c) for c in text * 40])
    rng = np.random.RandomState(5)
    size, hidden, steps, batch = len(chars), 48, 10, 8

    def weight(name, *shape):
        return tf.get_variable(name, initializer=rng.randn(*shape).astype(np.float32) * 0.1)

    x = tf.placeholder(tf.int32, [None, None])
    y = tf.placeholder(tf.int32, [None, None])
    state = tf.placeholder_with_default(tf.zeros([batch, hidden]), [None, hidden])
    embedded = tf.nn.embedding_lookup(weight("embedding", size, hidden), tf.transpose(x))
    with tf.variable_scope("rnn"):
        w, b = weight("w", hidden, hidden), weight("b", hidden)
    states = tf.scan(lambda h, e: tf.tanh(tf.matmul(h, w) + e + b), embedded, initializer=state)
    final = states[-1]
    logits = tf.tensordot(tf.transpose(states, [1, 0, 2]), weight("out", hidden, size), [[2], [0]])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))
    optimizer = tf.train.AdamOptimizer(0.01)
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(grads, variables, strict=True))

    starts = np.arange(batch) * 45 * 4
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        h = np.zeros((batch, hidden))
        for i in range(160):
            at = (starts + i * steps)[:, None] + np.arange(steps)
            feed = {x: data[at % 1800], y: data[(at + 1) % 1800], state: h}
            value, n, h, _ = sess.run([loss, norm, final, train], feed)
            assert np.isfinite(n)
        carried, fresh = sess.run(loss, feed), sess.run(loss, {x: feed[x], y: feed[y]})
    assert value < 0.7  # 26 characters at random cost 3.3
    assert carried < fresh


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.AdagradOptimizer(1.0),
        lambda: tf.train.AdamOptimizer(0.05),
        lambda: tf.train.FtrlOptimizer(0.5),
    ],
    ids=["adagrad", "adam", "ftrl"],
)
def test_word_vectors_of_pairs_draw_near(optimizer):
    rng = np.random.RandomState(2)
    words, size, batch = 60, 8, 64
    centre = tf.placeholder(tf.int32, [batch])
    context = tf.placeholder(tf.int32, [batch])
    negative = tf.placeholder(tf.int32, [10])
    with tf.device("/cpu:0"):
        embeddings = tf.Variable(rng.uniform(-1, 1, (words, size)).astype(np.float32))
        e = tf.nn.embedding_lookup(embeddings, centre)
    weights = tf.Variable(rng.randn(words, size).astype(np.float32) * 0.3)
    near = tf.reduce_sum(e * tf.gather(weights, context), 1)
    far = tf.matmul(e, tf.gather(weights, negative), transpose_b=True)
    xent = tf.nn.sigmoid_cross_entropy_with_logits
    loss = tf.reduce_sum(xent(labels=tf.ones_like(near), logits=near))
    loss = (loss + tf.reduce_sum(xent(labels=tf.zeros_like(far), logits=far))) / batch
    assert isinstance(tf.gradients(loss, embeddings)[0], tf.IndexedSlices)
    train = optimizer().minimize(loss)
    best = tf.nn.top_k(tf.matmul(embeddings, weights, transpose_b=True), 1)[1]

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        start = sess.run(embeddings)
        for _ in range(250):  # even words stand beside the word that follows; odd ones never come
            w = rng.randint(0, words // 2, batch) * 2
            n = rng.randint(0, words, 10)
            sess.run(train, {centre: w, context: w + 1, negative: n})
        end, answer = sess.run([embeddings, best])
    found = np.mean(answer[::2, 0] == np.arange(0, words, 2) + 1)
    assert found > 0.8
    np.testing.assert_array_equal(end[1::2], start[1::2])
