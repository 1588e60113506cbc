"""Devices: names, constraints, soft placement."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import headrace as tf

CPU0 = "/job:localhost/replica:0/task:0/device:CPU:0"


def _product():
    a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3], name="a")
    b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2], name="b")
    return tf.matmul(a, b)


def test_a_missing_gpu_is_a_clear_error():
    with tf.device("/gpu:99"):
        c = _product()
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.Session().run(c)
    assert "Cannot assign a device for operation" in caught.value.message
    assert f"available devices are [ {CPU0}" in caught.value.message
    assert "allow_soft_placement=True" in caught.value.message


def test_soft_placement_falls_back_to_the_cpu():
    with tf.device("/gpu:99"):
        c = _product()
    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    np.testing.assert_array_equal(sess.run(c), [[22.0, 28.0], [49.0, 64.0]])


def test_several_cpu_devices():
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.device("/cpu:1"):
        x = tf.placeholder(tf.float32, [2])
        doubled = x * 2.0
    with tf.device("/cpu:0"):
        y = doubled + 1.0
    sess = tf.Session(config=config)
    names = [d.name for d in sess.list_devices() if d.device_type == "CPU"]
    assert names == [CPU0, CPU0[:-1] + "1"]
    for _ in range(3):
        np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [3.0, 5.0])
    plan = sess._prepare(y, {x: [1, 2]}, None)[0].plan
    assert len(plan.units) == 2


def test_log_device_placement(caplog):
    c = _product()
    sess = tf.Session(config=tf.ConfigProto(log_device_placement=True))
    with caplog.at_level(logging.WARNING, logger="headrace.placement"):
        sess.run(c)
    assert any("(MatMul)" in r.getMessage() for r in caplog.records)


def test_conflicting_colocation_is_an_error():
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0)
    read = v + 1.0
    with tf.device("/cpu:1"):
        moved = tf.identity(read)
    sess = tf.Session(config=config)
    sess.run(v.initializer)
    assert sess.run(moved) == 2.0
