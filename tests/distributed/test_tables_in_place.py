"""Large tables on parameter servers change in place; a bad index changes nothing on any of them."""

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

ROWS, WIDTH = 2100, 128
GOOD = np.array([[3, 1, 4], [1, 5, 9]], np.int32)


def _tables(servers):
    return {
        (server.server_def.task_index, key.name): value
        for server in servers
        for key, value in server.task.store.items()
        if getattr(key, "kind", "") == "variable" and value.nbytes >= 4 * ROWS * WIDTH
    }


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("made", ["fed", "computed"])
@pytest.mark.slow
def test_parts_on_two_servers(cluster, either, strategy, made, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    c = cluster(ps=2, worker=1)
    with tf.device(tf.train.replica_device_setter(cluster=c.spec)):
        fed = tf.placeholder(tf.int32, [None, None])
        ids = fed if made == "fed" else tf.cast(tf.to_float(fed) + 0.25, tf.int32)
        v = tf.get_variable(
            "v",
            [2 * ROWS, WIDTH],
            initializer=tf.constant_initializer(4.0),
            partitioner=tf.fixed_size_partitioner(2),
        )
        rows = tf.nn.embedding_lookup(v, ids, partition_strategy=strategy)
        loss = tf.reduce_sum(tf.square(rows - 2.0))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    servers = [c["ps", 0], c["ps", 1]]
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([train, loss], {fed: GOOD})[1]]
        session.run(train, {fed: GOOD + 1})
        places = {k: v.unsafe_buffer_pointer() for k, v in _tables(servers).items()}
        assert len(places) == 4
        for _ in range(2):
            losses.append(session.run([train, loss], {fed: GOOD})[1])
        assert losses == sorted(losses, reverse=True)
        assert {k: v.unsafe_buffer_pointer() for k, v in _tables(servers).items()} == places
        before = {k: np.array(v) for k, v in _tables(servers).items()}
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            session.run(train, {fed: GOOD + 2 * ROWS})
        for key, value in _tables(servers).items():
            np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize("made", ["fed", "computed", "drawn"])
@pytest.mark.slow
def test_a_table_on_one_server(cluster, made, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    c = cluster(ps=1, worker=1)
    with tf.device(tf.train.replica_device_setter(cluster=c.spec)):
        fed = tf.placeholder(tf.int32, [None])
        ids = {
            "fed": lambda: fed,
            "computed": lambda: tf.cast(tf.to_float(fed) + 0.25, tf.int32),
            "drawn": lambda: tf.random_uniform([5], tf.reduce_min(fed), 9, tf.int32),
        }[made]()
        v = tf.get_variable("v", initializer=np.full([ROWS, WIDTH], 4.0, np.float32))
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, ids) - 2.0))
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    servers = [c["ps", 0]]
    with tf.Session(c.target()) as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {fed: [1, 2]})
        places = {k: v.unsafe_buffer_pointer() for k, v in _tables(servers).items()}
        assert len(places) == 2
        for _ in range(3):
            session.run(train, {fed: [1, 2]})
        assert {k: v.unsafe_buffer_pointer() for k, v in _tables(servers).items()} == places
