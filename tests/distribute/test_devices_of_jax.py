"""Strategies over several devices that JAX knows as such: CPUs that XLA is told to divide."""

import os
import subprocess
import sys

import pytest

_SETUP = """
import json
import jax
import numpy as np
import headrace as tf
from headrace.ops.collective import over_devices

summed = []
made = over_devices._Sums.of
over_devices._Sums.of = lambda self, v: summed.append(len(v[0])) or made(self, v)
devices = ["/cpu:0", "/cpu:1", "/cpu:2"]

def learned(ops, optimizer, steps=5):
    "Training by three replicas: what each has learned, and where that lies."
    with tf.Graph().as_default():
        strategy = tf.distribute.MirroredStrategy(devices, ops)
        def model():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            state = np.random.RandomState(replica)
            x, y = (tf.constant(state.randn(8, n), tf.float32) for n in (5, 2))
            w = tf.get_variable("w", initializer=tf.ones([5, 2]))
            b = tf.get_variable("b", initializer=0.0)
            table = tf.get_variable("table", initializer=tf.zeros([4, 2]))
            out = tf.nn.tanh(tf.matmul(x, w)) + b + tf.gather(table, [replica] * 8)
            return optimizer().minimize(tf.reduce_mean((out - y) ** 2))
        with strategy.scope():
            train = strategy.group(strategy.experimental_run_v2(model))
        with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(train)
            copies = [sess.run([c.value() for c in v.values]) for v in tf.trainable_variables()]
    for each in copies:
        assert all(np.array_equal(each[0], other) for other in each)
    return [each[0] for each in copies]
"""

_SAME = """
for optimizer in (
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.AdamOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
):
    one = learned(tf.distribute.ReductionToOneDevice(), optimizer)
    assert not summed
    for ours, other in zip(learned(tf.distribute.NcclAllReduce(), optimizer), one, strict=True):
        np.testing.assert_allclose(ours, other, rtol=2e-5, atol=1e-6)
    assert summed and set(summed) == {2}, summed  # w and b; rows are gathered
    summed.clear()
"""

_EVERYWHERE = """
# Sums and means within replicas, of several types; a fetch that mixes devices.
with tf.Graph().as_default():
    strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.NcclAllReduce())
    def sums():
        context = tf.distribute.get_replica_context()
        own = tf.cast(context.replica_id_in_sync_group, tf.float64)
        x = tf.fill([3], own) + tf.random.normal([3], 0.0, 0.0, tf.float64)
        total = context.all_reduce("SUM", [x, tf.cast(x, tf.int32)])
        return total + [context.all_reduce("MEAN", x)]
    with strategy.scope():
        found = strategy.experimental_run_v2(sums)
    every = [strategy.experimental_local_results(f) for f in found]
    across = [tf.add_n(list(e)) for e in every]
    with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
        values, joined = sess.run([every, across])
        for each, total, dtype, right in zip(
            values, joined, ("f8", "i4", "f8"), (3, 3, 1), strict=True
        ):
            assert len(each) == 3
            for value in each:
                assert value.dtype == dtype and value.tolist() == [right] * 3, value
            assert total.tolist() == [3 * right] * 3
"""

_PLACES = """
# Programs of a device run there, and state lies there; device_count has fewer, or more in turns.
with tf.Graph().as_default(), tf.Session() as sess:
    names = [d.name.rpartition("/")[2] for d in sess.list_devices()]
    assert names == ["device:CPU:0", "device:CPU:1", "device:CPU:2"], names
from headrace.placement.devices import local_devices
for count in (1, 2, 5):
    found = local_devices(tf.ConfigProto(device_count={"CPU": count}))
    assert [d.jax_device.id for d in found] == [i % 3 for i in range(count)]
"""

_SHAPES = """
from headrace.ops.core.build import raw
values = []
for device, rows in zip(devices, (2, 2, 3)):
    with tf.device(device):
        values.append(tf.placeholder(tf.float32, [None, 2]) * 2.0)
sums = raw.AllReduceOverDevices(values, replicas=3)
feeds = [v.op.inputs[0] for v in values]
with tf.Session() as sess:
    assert [s.tolist() for s in sess.run(sums, {f: [[1, 2]] for f in feeds})] == [[[6, 12]]] * 3
    assert [s.shape for s in sess.run(sums, {f: np.ones([0, 2]) for f in feeds})] == [(0, 2)] * 3
    nan = sess.run(sums, {f: [[np.nan, i]] for i, f in enumerate(feeds)})
    assert all(np.isnan(s[0, 0]) and s[0, 1] == 6 for s in nan)
    try:
        sess.run(sums, {f: np.ones([i, 2]) for i, f in enumerate(feeds)})
    except tf.errors.InvalidArgumentError as error:
        assert "replica 0: [(0, 2)]; replica 1: [(1, 2)]" in error.message, error.message
    else:
        raise AssertionError("shapes differ")
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_SAME, id="training", marks=pytest.mark.slow),
        pytest.param(_EVERYWHERE, id="sums"),
        pytest.param(_PLACES, id="places"),
        pytest.param(_SHAPES, id="shapes"),
    ],
)
def test_three_devices(program):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", _SETUP + program],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
