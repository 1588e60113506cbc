"""Graphs that compute rather than learn: the tutorials' pictures, and mathematics by loops."""

from __future__ import annotations

import numpy as np

import headrace as tf


def test_mandelbrot_set():
    sess = tf.InteractiveSession()
    y, x = np.mgrid[-1.3:1.3:0.1, -2:1:0.1]
    plane = x + 1j * y
    xs = tf.constant(plane.astype(np.complex64))
    zs = tf.Variable(xs)
    ns = tf.Variable(tf.zeros_like(xs, tf.float32))
    tf.global_variables_initializer().run()
    zs_ = zs * zs + xs
    not_diverged = tf.abs(zs_) < 4
    step = tf.group(zs.assign(zs_), ns.assign_add(tf.cast(not_diverged, tf.float32)))
    for _ in range(60):
        step.run()
    counts = ns.eval()
    sess.close()

    inside = (np.abs(plane + 1) < 0.24) | (np.abs(plane) < 0.24)  # the disc, part of the cardioid
    assert (counts[inside] == 60).all()
    assert (counts[np.abs(plane) > 2.2] < 5).all()


def test_raindrops_on_a_pond_follow_the_same_equation_in_numpy():
    sess = tf.InteractiveSession()
    rng = np.random.RandomState(0)
    size = 24
    kernel = np.array([[0.5, 1.0, 0.5], [1.0, -6.0, 1.0], [0.5, 1.0, 0.5]])

    def laplace(field):
        field = tf.expand_dims(tf.expand_dims(field, 0), -1)
        k = tf.constant(kernel.reshape(3, 3, 1, 1), dtype=1)
        return tf.nn.depthwise_conv2d(field, k, [1, 1, 1, 1], padding="SAME")[0, :, :, 0]

    drops = np.zeros([size, size], np.float32)
    drops[rng.randint(0, size, 8), rng.randint(0, size, 8)] = rng.uniform(size=8)
    eps = tf.placeholder(tf.float32, shape=())
    damping = tf.placeholder(tf.float32, shape=())
    u = tf.Variable(drops)
    ut = tf.Variable(np.zeros_like(drops))
    u_ = u + eps * ut
    ut_ = ut + eps * (laplace(u) - damping * ut)
    step = tf.group(u.assign(u_), ut.assign(ut_))
    tf.global_variables_initializer().run()
    for _ in range(40):
        step.run({eps: 0.03, damping: 0.04})

    height, speed = drops.astype(np.float64), np.zeros([size, size])
    for _ in range(40):  # both variables move together: each new value is made of old ones
        padded = np.pad(height, 1)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
        bend = np.einsum("ijkl,kl->ij", windows, kernel)
        height, speed = height + 0.03 * speed, speed + 0.03 * (bend - 0.04 * speed)
    np.testing.assert_allclose(u.eval(), height, rtol=1e-3, atol=1e-5)
    sess.close()


def test_game_of_life_glider_comes_back_one_cell_further():
    board = tf.placeholder(tf.int32, [None, None])
    k = tf.reshape(tf.constant([1, 1, 1, 1, 0, 1, 1, 1, 1], tf.float32), [3, 3, 1, 1])
    image = tf.cast(board, tf.float32)[tf.newaxis, ..., tf.newaxis]
    neighbours = tf.squeeze(tf.nn.conv2d(image, k, [1, 1, 1, 1], "SAME"), [0, 3])
    lives = tf.equal(neighbours, 3) | (tf.equal(neighbours, 2) & tf.equal(board, 1))
    after = tf.cast(lives, tf.int32)
    glider = np.zeros((8, 8), int)
    glider[[1, 2, 3, 3, 3], [2, 3, 1, 2, 3]] = 1
    state = glider
    with tf.Session() as sess:
        for _ in range(4):
            state = sess.run(after, {board: state})
    np.testing.assert_array_equal(state, np.roll(glider, (1, 1), (0, 1)))


def test_k_means_by_steps_and_by_a_loop_in_the_graph():
    rng = np.random.RandomState(0)
    middles = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    data = np.concatenate([rng.randn(50, 2) * 0.5 + c for c in middles]).astype(np.float32)
    points = tf.constant(data)
    start = tf.gather(points, [0, 50, 51])  # the second and third in one cluster
    centroids = tf.Variable(start)
    assignments = tf.Variable(tf.zeros([150], dtype=tf.int64))

    def nearest(c):
        return tf.argmin(tf.reduce_sum(tf.squared_difference(points[:, None], c[None]), 2), 1)

    def means(ids):
        total = tf.unsorted_segment_sum(points, ids, 3)
        return total / tf.unsorted_segment_sum(tf.ones_like(points), ids, 3)

    best = nearest(centroids)
    changed = tf.reduce_any(tf.not_equal(best, assignments))
    with tf.control_dependencies([changed]):
        update = tf.group(centroids.assign(means(best)), assignments.assign(best))

    def body(i, c, _):
        new = means(nearest(c))
        return i + 1, new, tf.reduce_max(tf.abs(new - c))

    _, looped, moved = tf.while_loop(
        lambda i, c, moved: tf.logical_and(i < 50, moved > 0),
        body,
        [0, start, tf.constant(np.inf)],
        back_prop=False,
    )
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        steps, more = 0, True
        while more:
            more, _ = sess.run([changed, update])
            steps += 1
            assert steps < 50
        found, in_graph, last_move = sess.run([centroids, looped, moved])
        ids = sess.run(assignments)
    np.testing.assert_allclose(in_graph, found, rtol=1e-5)
    assert last_move == 0.0
    for k in range(3):
        np.testing.assert_allclose(found[k], data[ids == k].mean(0), rtol=1e-4, atol=1e-5)


def test_kalman_filter_in_double_precision_and_its_sensitivity():
    rng = np.random.RandomState(0)
    seen = np.cumsum(rng.randn(25, 1) * 0.1 + 0.5, 0) + rng.randn(25, 1) * 0.5
    f = tf.constant([[1.0, 1.0], [0.0, 1.0]], tf.float64)
    h = tf.constant([[1.0, 0.0]], dtype=tf.float64)
    q = 1e-3 * tf.eye(2, dtype=tf.float64)
    r = tf.placeholder_with_default(np.array([[0.25]]), [1, 1])
    z = tf.placeholder(tf.float64, [None, 1])

    def step(state, seen_now):
        x, p = state
        x = tf.matmul(f, x)
        p = tf.matmul(tf.matmul(f, p), f, transpose_b=True) + q
        s = tf.matmul(tf.matmul(h, p), tf.matrix_transpose(h)) + r
        gain = tf.transpose(tf.matrix_solve(s, tf.matmul(h, p)))
        x = x + tf.matmul(gain, seen_now[:, None] - tf.matmul(h, x))
        return x, tf.matmul(tf.eye(2, dtype=tf.float64) - tf.matmul(gain, h), p)

    start = tf.zeros([2, 1], tf.float64), tf.eye(2, dtype=tf.float64) * 10
    xs, ps = tf.scan(step, z, initializer=start)
    misfit = tf.reduce_sum(tf.square(xs[:, 0] - z))
    slope = tf.gradients(misfit, r)[0]
    root = tf.cholesky(ps[-1])
    with tf.Session() as sess:
        x, p, low, g = sess.run([xs, ps, root, slope], {z: seen})
        step_size = 1e-5
        up = sess.run(misfit, {z: seen, r: [[0.25 + step_size]]})
        down = sess.run(misfit, {z: seen, r: [[0.25 - step_size]]})

    mean, cov = np.zeros((2, 1)), np.eye(2) * 10
    trans = np.array([[1.0, 1.0], [0.0, 1.0]])
    for value in seen:
        mean, cov = trans @ mean, trans @ cov @ trans.T + 1e-3 * np.eye(2)
        gain = cov[:, :1] / (cov[0, 0] + 0.25)
        mean, cov = mean + gain * (value - mean[0]), cov - gain @ cov[:1]
    assert x.dtype == np.float64
    np.testing.assert_allclose(x[-1], mean, rtol=1e-10)
    np.testing.assert_allclose(p[-1], cov, rtol=1e-9)
    np.testing.assert_allclose(low @ low.T, p[-1], rtol=1e-12)
    np.testing.assert_allclose(g, [[(up - down) / (2 * step_size)]], rtol=1e-6)
