"""The programs of the talks, as they stand on the slides: only the import line is another."""

# ruff: noqa: E501, E702  (the slides put several statements on a long line)

from __future__ import annotations

import pathlib

import numpy as np
import pytest

MNIST = str(pathlib.Path(__file__).parent / "data" / "mnist5k")


def test_softmax_regression_on_mnist():
    import headrace as tf
    from headrace.examples.tutorials.mnist import input_data

    mnist = input_data.read_data_sets(MNIST, one_hot=True, validation_size=0)

    # fmt: off
    x = tf.placeholder(tf.float32, [None, 784]); W = tf.Variable(tf.zeros([784, 10])); b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, W) + b); y_ = tf.placeholder(tf.float32, [None, 10])
    xent = -tf.reduce_sum(y_*tf.log(y)); step = tf.train.GradientDescentOptimizer(0.01).minimize(xent)
    init = tf.initialize_all_variables(); sess = tf.Session(); sess.run(init)
    for _ in range(300):
        batch_xs, batch_ys = mnist.train.next_batch(100); sess.run(step, feed_dict={x: batch_xs, y_: batch_ys})
    # fmt: on

    correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    images = {x: mnist.test.images, y_: mnist.test.labels}
    assert sess.run(accuracy, feed_dict=images) > 0.85


def test_matrices_under_a_default_session():
    import headrace as tf

    # fmt: off
    with tf.Session():
        x = tf.constant([[5, 6], [7, 8]]); z = tf.matmul(x, x) + tf.matmul(x, [[1, 0], [0, 1]]); result = z.eval()
    # fmt: on

    np.testing.assert_array_equal(result, [[72, 84], [98, 114]])


def _gpu_program(tf):
    # fmt: off
    with tf.device('/gpu:0'):
        a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3]); b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2]); c = tf.matmul(a, b)
    # fmt: on
    return c


def _has_gpu(tf):
    return any(d.device_type == "GPU" for d in tf.Session().list_devices())


def test_a_program_for_a_gpu_without_one_is_a_clear_error():
    import headrace as tf

    c = _gpu_program(tf)
    if _has_gpu(tf):
        pytest.skip("this machine has a GPU")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operat"):
        tf.Session().run(c)


def test_a_program_for_a_gpu_runs_on_the_cpu_under_soft_placement():
    import headrace as tf

    c = _gpu_program(tf)
    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=True))
    np.testing.assert_array_equal(sess.run(c), [[22.0, 28.0], [49.0, 64.0]])
