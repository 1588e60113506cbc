"""NULL devices: everything but the computing."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from own_time import only_own_time

import headrace as tf
from headrace.executor.null import null_value
from headrace.executor.resources import handle_for
from headrace.graph import dtypes
from headrace.placement.devices import default_device, local_devices

CONFIG = tf.ConfigProto(device_count={"NULL": 2})
NULL0 = "/job:localhost/replica:0/task:0/device:NULL:0"


def test_device_lists():
    found = local_devices(CONFIG, task="/job:ps/replica:0/task:3", incarnation=77)
    nulls = [d for d in found if d.device_type == "NULL"]
    assert [d.name for d in nulls] == [f"/job:ps/replica:0/task:3/device:NULL:{i}" for i in (0, 1)]
    assert {d.task for d in found} == {"/job:ps/replica:0/task:3"}
    assert {d.incarnation for d in found} == {77}
    assert default_device(found).device_type != "NULL"
    assert not [d for d in local_devices() if d.device_type == "NULL"]
    with pytest.raises(ValueError, match="no devices"):
        default_device([])


def test_values_are_zeros_in_the_memory_of_one():
    value = null_value(dtypes.float32, (1000, None, 1000))
    assert value.shape == (1000, 1, 1000)
    assert value.strides == (0, 0, 0)
    assert null_value(dtypes.int32, None).shape == ()


def test_a_step_on_two_null_devices_and_the_cpu():
    with tf.device("/device:NULL:0"):
        x = tf.random_uniform([2, 3]) + 1.0
    with tf.device("/device:NULL:1"):
        y = tf.matmul(x, x, transpose_b=True)
    with tf.device("/cpu:0"):
        z = y + 5.0
    with tf.Session(config=CONFIG) as sess:
        np.testing.assert_array_equal(sess.run(x), np.zeros((2, 3)))
        np.testing.assert_array_equal(sess.run(z), np.full((2, 2), 5.0))
        plan = sess._prepare(z, {}, None)[0].plan
        assert NULL0 in {u.region.nodes[0].device for u in plan.units}


def test_variables_hold_zeros_and_must_be_initialised():
    with tf.device("/device:NULL:0"):
        v = tf.Variable(tf.ones([4, 2]))
        update = v.assign_add(tf.ones([4, 2]))
    with tf.Session(config=CONFIG) as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value Variable"):
            sess.run(v)
        sess.run(v.initializer)
        sess.run(update)
        value = sess.run(v)
    np.testing.assert_array_equal(value, np.zeros((4, 2)))


def test_conditionals_loops_and_random_ops_do_not_run():
    with tf.device("/device:NULL:0"):
        x = tf.random_uniform([3])
        v = tf.Variable(2.0)
        looped = tf.while_loop(lambda i, a: i >= 0, lambda i, a: (i + 1, a * v), (0, x))
        chosen = tf.cond(looped[0] > 1, lambda: x, lambda: v * x)
    with tf.Session(config=CONFIG) as sess:
        sess.run(v.initializer)
        count, value = sess.run([looped[0], chosen])  # the loop would never end
    assert count == 0
    np.testing.assert_array_equal(value, np.zeros(3))


def _variable(*shape):
    return tf.Variable(tf.zeros(shape))


def _alexnet(batch):
    """A convolutional network of 60 million parameters, and a step of its training."""
    h = tf.zeros([batch, 224, 224, 3])
    for size, stride, channels in ((11, 4, 64), (5, 2, 192), (3, 2, 384), (3, 1, 256), (3, 2, 256)):
        kernel = _variable(size, size, int(h.shape[-1]), channels)
        h = tf.nn.relu(tf.nn.conv2d(h, kernel, [1, stride, stride, 1], "SAME"))
    h = tf.reshape(h, [batch, -1])
    for width in (4096, 4096, 1000):
        h = tf.nn.relu(tf.matmul(h, _variable(int(h.shape[-1]), width)) + _variable(width))
    loss = tf.reduce_mean(tf.square(h))
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_a_large_network_runs_in_no_time_and_no_memory():
    with tf.device("/device:NULL:0"):
        loss, train = _alexnet(512)
    parameters = sum(np.prod(v.shape.as_list()) for v in tf.global_variables())
    assert parameters > 50e6
    with tf.Session(config=CONFIG) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([loss, train])
        tracemalloc.start()
        with only_own_time() as took:
            for _ in range(10):
                sess.run([loss, train])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        kept = sess._engine.store.get(handle_for(tf.global_variables()[0].op))
    assert took() / 10 < 0.005
    assert peak < 1 << 20
    assert kept.strides == (0, 0, 0, 0)
