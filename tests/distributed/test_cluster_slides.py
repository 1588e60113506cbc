"""Distributed programs of the talks, as they stand on the slides: all servers in this process.

What is not on the slides: ports that are free, where the program is one task of several a function
takes what differs between them, and the data.
"""

# ruff: noqa: E501, E702, UP031  (the slides put several statements on a long line)

import pathlib
import threading

import numpy as np
import pytest

import headrace as tf

MNIST = str(pathlib.Path(__file__).parents[1] / "data" / "mnist5k")


@pytest.fixture(scope="module")
def mnist():
    from headrace.examples.tutorials.mnist import input_data

    return input_data.read_data_sets(MNIST, one_hot=True, validation_size=0)


def test_devices_of_a_local_server():
    server = tf.train.Server.create_local_server()
    # fmt: off
    c = tf.constant("Hello, distributed TensorFlow!")
    sess = tf.Session(server.target)  # Create a session on the server.
    assert sess.run(c) == b"Hello, distributed TensorFlow!"
    # fmt: on
    with tf.device("/job:localhost/device:cpu:0"):
        a = tf.constant([1.0, 2.0])
    assert sess.run(a * 2.0)[1] == 4.0
    sess.close()
    server.stop()


def test_weights_on_parameter_servers_by_hand(cluster):
    c = cluster(ps=2, worker=3)
    ps, worker = c.spec.job_tasks("ps"), c.spec.job_tasks("worker")
    # fmt: off
    cluster = tf.train.ClusterSpec({"worker": worker, "ps": ps})
    assert cluster == c.spec

    with tf.device("/job:ps/task:0"):
        weights_1 = tf.Variable(tf.truncated_normal([784, 50], stddev=0.1))
        biases_1 = tf.Variable(tf.zeros([50]))
    with tf.device("/job:ps/task:1"):
        weights_2 = tf.Variable(tf.truncated_normal([50, 10], stddev=0.1))
        biases_2 = tf.Variable(tf.zeros([10]))

    with tf.device("/job:worker/task:2"):
        input = tf.placeholder(tf.float32, [None, 784]); labels = tf.placeholder(tf.float32, [None, 10])
        layer_1 = tf.nn.relu(tf.matmul(input, weights_1) + biases_1)
        logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    with tf.Session(c.target("worker", 2)) as sess:
        sess.run(tf.global_variables_initializer())
        rng = np.random.RandomState(0)
        feed = {input: rng.rand(20, 784), labels: np.eye(10)[rng.randint(0, 10, 20)]}
        first = sess.run(loss, feed)
        for _ in range(10):
            sess.run(train_op, feed)
        assert sess.run(loss, feed) < first
    # fmt: on
    names = [{k.name for k, v in c["ps", i].task.store.items() if v is not None} for i in (0, 1)]
    assert names == [{"Variable", "Variable_1"}, {"Variable_2", "Variable_3"}]
    assert not c["worker", 2].task.store.items()


def test_in_graph_replication_by_hand(cluster):
    c = cluster(ps=1, worker=3)
    batch = np.arange(12, dtype=np.float32).reshape(6, 2)
    # fmt: off
    with tf.device("/job:ps/task:0/cpu:0"):
        W = tf.Variable([[1.0], [2.0]]); b = tf.Variable([0.5])
    inputs = tf.split(tf.constant(batch), 3)
    outputs = []
    for i in range(3):
        with tf.device("/job:worker/task:%d/cpu:0" % i):
            outputs.append(tf.matmul(inputs[i], W) + b)
    output = tf.concat(outputs, axis=0)
    # fmt: on
    with tf.Session(c.target("worker", 0)) as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(output), batch @ [[1], [2]] + 0.5)


def test_between_graph_replication_with_replica_device_setter(cluster, mnist):
    """Three workers train softmax regression, each with a graph of its own, asynchronously.

    The rate is the 0.1 at which a late gradient does no harm: at 0.5, two that are computed at the
    tenth step and come as the last ones take the accuracy from 0.88 to 0.67.
    """
    c = cluster(ps=2, worker=3)
    failed, seen, ready = [], [], threading.Event()

    def program(task_index):
        # fmt: off
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % task_index, cluster=c.spec)):
            x = tf.placeholder(tf.float32, [None, 784]); y_ = tf.placeholder(tf.float32, [None, 10])
            W = tf.Variable(tf.zeros([784, 10]), name="W"); b = tf.Variable(tf.zeros([10]), name="b")
            y = tf.matmul(x, W) + b
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
            global_step = tf.Variable(0, name="global_step", trainable=False)
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
            init_op = tf.global_variables_initializer()
            correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
            accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
            places = [v.device for v in (W, b, global_step)] + [y.device]
        # fmt: on
        with tf.Session(c.target("worker", task_index), graph=W.graph) as sess:
            if task_index == 0:
                sess.run(init_op)
                ready.set()
            ready.wait()
            rng = np.random.RandomState(task_index)
            images, labels = mnist.train.images, mnist.train.labels
            step = 0
            while step < 150:
                chosen = rng.randint(0, len(images), 100)
                feed = {x: images[chosen], y_: labels[chosen]}
                _, step = sess.run([train_op, global_step], feed)
            test = {x: mnist.test.images, y_: mnist.test.labels}
            seen.append((task_index, places, sess.run(accuracy, test)))

    def guarded(task_index):
        try:
            program(task_index)
        except BaseException as error:
            failed.append(error)
            ready.set()

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    for task_index, places, accuracy in seen:
        worker = f"/job:worker/task:{task_index}"
        assert places == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", worker]
        assert accuracy > 0.8
    names = [{k.name for k, _ in c["ps", i].task.store.items()} for i in (0, 1)]
    assert names == [{"W", "global_step"}, {"b"}]


def test_the_device_names_of_the_talks(cluster):
    """/job:worker/task:17/device:gpu:3 is there only where somebody has such a device."""
    c = cluster(parameters=5, worker=1)
    with tf.device("/job:parameters/task:4/device:cpu:0"):
        v = tf.Variable(2.0)
    with tf.device("/job:worker/task:17/device:gpu:3"):
        y = v * 2.0
    with tf.Session(c.target()) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(y)
    assert "/job:worker/task:17/device:GPU:3" in caught.value.message
    assert "/job:worker/replica:0/task:0/device:CPU:0" in caught.value.message
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(c.target(), config=config) as sess:
        assert sess.run(v + 0.0) == 2.0
