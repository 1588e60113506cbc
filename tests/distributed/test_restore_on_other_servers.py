"""A checkpoint that some servers have written is restored on others, more or fewer, or on none."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster
from headrace.train.asynchronous_saver import AsynchronousSaver

KEYS = np.arange(20) * 7919


class Model:
    """A table in as many parts as servers, a bias, Adam's slots, and embeddings by keys.

    Args:
        servers: how many there are; 0: all is in one process.
    """

    def __init__(self, servers: int) -> None:
        place = tf.train.replica_device_setter(ps_tasks=servers) if servers else None
        parts = max(1, servers)
        with tf.device(place):
            self.step = tf.train.get_or_create_global_step()
            table = tf.get_variable(
                "table",
                [11, 3],
                initializer=tf.random_uniform_initializer(seed=1),
                partitioner=tf.fixed_size_partitioner(parts),
            )
            bias = tf.get_variable("bias", initializer=tf.ones([3]))
            keyed = tf.PartitionedEmbeddingTable(3, parts, tf.zeros_initializer(), name="keyed")
            rows = tf.nn.embedding_lookup(table, tf.range(11), partition_strategy="div")
            keyed_rows = tf.nn.embedding_lookup(keyed, KEYS)
            loss = tf.reduce_sum(tf.square(rows + bias)) + tf.reduce_sum(tf.square(keyed_rows - 1))
            self.train = tf.train.AdamOptimizer(0.1).minimize(loss, self.step)
            self.values = {"step": self.step, "rows": rows, "bias": bias, "keyed": keyed_rows}
            self.saver = tf.train.Saver(sharded=True)
            self.init = tf.global_variables_initializer()


@contextlib.contextmanager
def running(servers: int):
    """A model and a session in which it runs."""
    with contextlib.ExitStack() as stack:
        target = ""
        if servers:
            cluster = stack.enter_context(with_cluster(ps=servers, worker=1))
            target = cluster.target("worker", 0)
        stack.enter_context(tf.Graph().as_default())
        model = Model(servers)
        yield model, stack.enter_context(tf.Session(target))


def same(first: dict[str, Any], second: dict[str, Any]) -> None:
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (2, 0), (0, 2)])
def test_training_goes_on_elsewhere(
    tmp_path: Path, before: int, after: int, asynchronous: bool
) -> None:
    """As it would have gone on there, slots of optimisers included."""
    with running(before) as (model, session):
        session.run(model.init)
        for _ in range(3):
            session.run(model.train)
        saved = session.run(model.values)
        if asynchronous:
            background = AsynchronousSaver(model.saver, tf.get_default_graph())
            background.begin(session, str(tmp_path / "m"), global_step=model.step)
            session.run(model.train)
            path = background.result()
        else:
            path = model.saver.save(session, str(tmp_path / "m"), global_step=model.step)
            session.run(model.train)
        trained = session.run(model.values)
    with running(after) as (model, session):
        model.saver.restore(session, path)
        same(saved, session.run(model.values))
        session.run(model.train)
        same(trained, session.run(model.values))
