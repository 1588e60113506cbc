"""What programs use of TPUs outside of TPUEstimator."""

from __future__ import annotations

import pytest

import headrace as tf


def test_a_graph_is_one_shard(caplog):
    v = tf.Variable(3.0)
    inner = tf.train.MomentumOptimizer(0.5, 0.9)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(inner)
    train = optimizer.minimize(v * v, tf.train.get_or_create_global_step())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([train, v])[1] == 0.0
        assert sess.run(tf.train.get_global_step()) == 1
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.get_slot(v, "momentum") is inner.get_slot(v, "momentum")
    assert optimizer.variables() == inner.variables()


def test_its_arguments():
    inner = tf.train.GradientDescentOptimizer(0.5)
    with pytest.raises(ValueError, match="Unsupported reduction: none"):
        tf.contrib.tpu.CrossShardOptimizer(inner, reduction=tf.losses.Reduction.NONE)
    with pytest.raises(ValueError, match="There is one shard, number 0"):
        tf.contrib.tpu.CrossShardOptimizer(inner, group_assignment=[[0, 1]])


@pytest.mark.parametrize("given", ["grpc://10.0.0.1:8470", b"grpc://10.0.0.1:8470"])
def test_an_address_is_a_cluster(given):
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(
        given, job_name="tpu_worker", coordinator_address="10.0.0.2:1"
    )
    assert resolver.master() == resolver.get_master() == "grpc://10.0.0.1:8470"
    assert resolver.get_job_name() == "tpu_worker"
    assert resolver.cluster_spec().as_dict() == {
        "tpu_worker": ["10.0.0.1:8470"],
        "coordinator": ["10.0.0.2:1"],
    }


@pytest.mark.parametrize("given", ["local", "", ["local"]])
def test_this_process(given):
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(given)
    assert resolver.master() in ("local", "")
    assert resolver.cluster_spec() is None


def test_names_and_lists_are_refused():
    with pytest.raises(tf.errors.UnimplementedError, match="got the name 'my-tpu'"):
        tf.contrib.cluster_resolver.TPUClusterResolver("my-tpu", zone="a", project="b")
    with pytest.raises(NotImplementedError, match="got 2: grpc://a:1, grpc://b:1"):
        tf.contrib.cluster_resolver.TPUClusterResolver(["grpc://a:1", "grpc://b:1"])
    with pytest.raises(AttributeError, match="a graph is one shard"):
        _ = tf.contrib.tpu.outside_compilation
