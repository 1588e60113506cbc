"""Sums over the devices of a process, where the values of several replicas lie on one device."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.core.build import raw

_TYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "complex64"]


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_every_replica_gets_the_sum(dtype, replicas):
    np_dtype = tf.as_dtype(dtype).as_numpy_dtype
    values = [np.full([2, 3], r + 1, np_dtype) for r in range(replicas)]
    right = sum(range(1, replicas + 1))
    with tf.Session() as sess:
        sums = sess.run(raw.AllReduceOverDevices(values, replicas=replicas))
    assert len(sums) == replicas
    for got in sums:
        assert got.dtype == np_dtype
        np.testing.assert_array_equal(got, np.full([2, 3], right, np_dtype))


def test_lists_of_several_types_and_sizes():
    first = [np.float32(1.5), np.zeros([0, 2]), np.array([1, 2], np.int32)]
    second = [np.float32(np.nan), np.zeros([0, 2]), np.array([3, 2**31 - 1], np.int32)]
    with tf.Session() as sess:
        sums = sess.run(raw.AllReduceOverDevices(first + second, replicas=2))
    for own in (sums[:3], sums[3:]):
        assert np.isnan(own[0])
        assert own[1].shape == (0, 2)
        assert own[2].tolist() == [4, -(2**31) + 1]  # wraps, as integers do


def test_shapes_that_differ():
    feeds = [tf.placeholder(tf.float32, [None]) for _ in range(2)]
    sums = raw.AllReduceOverDevices(feeds, replicas=2)
    with (
        tf.Session() as sess,
        pytest.raises(errors.InvalidArgumentError, match=r"replica 0: \[\(1,\)\]; replica 1: "),
    ):
        sess.run(sums, {feeds[0]: [1.0], feeds[1]: [1.0, 2.0]})


@pytest.mark.parametrize("replicas", [0, -1, 2])
def test_inputs_that_are_not_those_of_replicas(replicas):
    sums = raw.AllReduceOverDevices([np.ones(2)] * 3, replicas=replicas)
    with (
        tf.Session() as sess,
        pytest.raises(errors.InvalidArgumentError, match="3 inputs cannot be those of"),
    ):
        sess.run(sums)
