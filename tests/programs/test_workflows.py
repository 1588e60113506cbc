"""How programs of that time trained, stopped, came back, were inspected and were shipped."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf


def _line(x):
    with tf.variable_scope("line"):
        w = tf.get_variable("w", initializer=tf.ones([3, 1]))
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    return tf.matmul(x, w) + b


def test_averages_are_trained_saved_and_restored_for_evaluation(tmp_path):
    rng = np.random.RandomState(0)
    data = rng.randn(64, 3).astype(np.float32)
    labels = data.dot([[1.0], [2.0], [3.0]])
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
    loss = tf.reduce_mean(tf.square(_line(x) - y))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.piecewise_constant(step, [5, 10], [0.1, 0.05, 0.01])
    optimizer = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    with tf.control_dependencies([optimizer]):
        train = ema.apply(tf.trainable_variables())
    saver = tf.train.Saver(max_to_keep=2)
    average = np.ones((3, 1))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(15):
            sess.run(train, {x: data, y: labels})
            decay = min(0.9, (1 + i + 1) / (10 + i + 1))
            average += (1 - decay) * (sess.run("line/w:0") - average)
            if i % 5 == 4:
                saver.save(sess, str(tmp_path / "model.ckpt"), global_step=step)
        assert sess.run([step, rate]) == [15, np.float32(0.01)]
        plain = sess.run("line/w:0")

    tf.reset_default_graph()
    out = _line(tf.constant(data))
    saved = tf.global_variables()
    names = tf.train.ExponentialMovingAverage(0.9).variables_to_restore(saved)
    assert sorted(names) == ["line/b/ExponentialMovingAverage", "line/w/ExponentialMovingAverage"]
    extra = tf.get_variable("head/w", [2], initializer=tf.ones_initializer())
    latest = tf.train.latest_checkpoint(str(tmp_path))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.NotFoundError, match="Key head/w not found in checkpoint"):
            tf.train.Saver().restore(sess, latest)
        np.testing.assert_array_equal(sess.run(saved[0]), np.ones((3, 1)))  # nothing by halves
        tf.train.Saver(names).restore(sess, latest)
        np.testing.assert_allclose(sess.run(saved[0]), average, rtol=1e-5)
        assert np.abs(sess.run(saved[0]) - plain).max() > 1e-2
        assert sess.run(out).shape == (64, 1)
        np.testing.assert_array_equal(sess.run(extra), [1, 1])
    kept = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert [p.rsplit("-", 1)[1] for p in kept] == ["10", "15"]


def test_a_trained_graph_is_frozen_and_joined_to_another_input():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.Variable([[1.0, -1.0], [2.0, 3.0]], name="w")
    h = tf.nn.relu(tf.matmul(x, w), name="h")
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.nn.softmax(h, name="out")))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        whole = sess.graph.as_graph_def()
        frozen = tf.graph_util.convert_variables_to_constants(sess, whole, ["out"])
    assert {n.op for n in frozen.node} <= {
        "Placeholder",
        "Const",
        "Identity",
        "MatMul",
        "Relu",
        "Softmax",
    }
    again = tf.GraphDef()
    again.ParseFromString(frozen.SerializeToString())
    with tf.Graph().as_default() as graph:
        raw = tf.placeholder(tf.uint8, [None, 2], name="raw")
        scaled = tf.cast(raw, tf.float32) / 255.0
        out, h = tf.import_graph_def(
            again, input_map={"x:0": scaled}, return_elements=["out:0", "h"], name="frozen"
        )
        assert [out.name, h.name] == ["frozen/out:0", "frozen/h"]
        with tf.Session(graph=graph) as sess:
            p = sess.run(out, {raw: [[255, 0]]})
    np.testing.assert_allclose(p, [[np.e / (np.e + 1), 1 / (np.e + 1)]], rtol=1e-6)


def test_guided_backpropagation_by_an_override_of_the_relu_gradient():
    @tf.RegisterGradient("GuidedReluOfThisTest")
    def _guided(op, grad):
        gate = tf.cast(op.outputs[0] > 0, tf.float32) * tf.cast(grad > 0, tf.float32)
        return gate * grad

    rng = np.random.RandomState(0)
    w1, w2 = rng.randn(5, 6).astype(np.float32), rng.randn(6, 3).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 5])
    with tf.get_default_graph().gradient_override_map({"Relu": "GuidedReluOfThisTest"}):
        guided = tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
    plain = tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
    value = rng.randn(2, 5).astype(np.float32)
    with tf.Session() as sess:
        g, p = sess.run([tf.gradients(guided, x)[0], tf.gradients(plain, x)[0]], {x: value})
    back = np.ones((2, 3)) @ w2.T
    on = value @ w1 > 0
    np.testing.assert_allclose(p, (back * on) @ w1.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(g, (back * on * (back > 0)) @ w1.T, rtol=1e-4, atol=1e-5)


def test_batch_normalisation_by_cond_with_update_ops():
    rng = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [None, 8])
    training = tf.placeholder(tf.bool, name="phase")
    mean = tf.get_variable("mean", [8], initializer=tf.zeros_initializer(), trainable=False)
    var = tf.get_variable("var", [8], initializer=tf.ones_initializer(), trainable=False)
    gamma, beta = tf.Variable(tf.ones([8])), tf.Variable(tf.zeros([8]))
    m, v = tf.nn.moments(x, [0])
    for moving, now in ((mean, m), (var, v)):
        update = tf.cond(
            training,
            lambda moving=moving, now=now: tf.assign(moving, 0.8 * moving + 0.2 * now),
            lambda moving=moving: tf.identity(moving),
        )
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    used = tf.cond(training, lambda: (m, v), lambda: (mean, var))
    y = tf.nn.batch_normalization(x, used[0], used[1], beta, gamma, 1e-3)
    loss = tf.reduce_mean(tf.square(y - 1.0))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    data = rng.randn(200, 8) * 3 + 5
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(40):
            rows = np.arange(i * 32, i * 32 + 32) % 200
            sess.run(train, {x: data[rows], training: True})
        moved = sess.run([mean, var])
        np.testing.assert_allclose(moved[0], data.mean(0), atol=1.0)
        np.testing.assert_allclose(moved[1], data.var(0), rtol=0.35)
        # neither evaluation nor a fetch without the updates moves the averages
        sess.run(loss, {x: data, training: True})
        evaluated = sess.run(
            [loss, *tf.get_collection(tf.GraphKeys.UPDATE_OPS)], {x: data, training: False}
        )
        np.testing.assert_array_equal(sess.run([mean, var]), moved)
    assert evaluated[0] < 0.3


def test_hogwild_threads_share_one_session():
    rng = np.random.RandomState(0)
    data = rng.randn(256, 10).astype(np.float32)
    true = rng.randn(10, 1)
    x, y = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.float32, [None, 1])
    w = tf.Variable(tf.zeros([10, 1]))
    step = tf.Variable(0, trainable=False)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    errors = []

    def work(seed):
        mine = np.random.RandomState(seed)
        try:
            for _ in range(100):
                rows = mine.randint(0, 256, 32)
                sess.run(train, {x: data[rows], y: data[rows] @ true})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert sess.run(step) == 400
    assert sess.run(loss, {x: data, y: data @ true}) < 1e-4


def test_python_augmentation_inside_a_training_step():
    rng = np.random.RandomState(0)
    seen = []

    def flip(images):
        seen.append(images.shape)
        return images[:, :, ::-1], np.int64(len(images))

    x = tf.placeholder(tf.float32, [None, 8, 8])
    flipped, count = tf.py_func(flip, [x], [tf.float32, tf.int64])
    flipped.set_shape(x.get_shape())
    w = tf.Variable(tf.zeros([64, 1]))
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.reshape(flipped, [-1, 64]), w) - 1))
    grad = tf.gradients(loss, w)[0]
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    images = rng.rand(16, 8, 8).astype(np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        g, n = sess.run([grad, count], {x: images})
        mirrored = images[:, :, ::-1].reshape(16, 64)
        np.testing.assert_allclose(g[:, 0], -2 * mirrored.mean(0), rtol=1e-4)
        assert n == 16
        first, last = [sess.run([loss, train], {x: images})[0] for _ in range(20)][::19]
    assert last < 0.2 * first
    assert seen == [(16, 8, 8)] * 21
