"""Lookup tables and metrics on several tasks."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib import lookup
from headrace.harness.cluster import with_cluster


def test_tables_stay_on_their_task_and_workers_look_up() -> None:
    with tf.Graph().as_default(), with_cluster(ps=1, worker=2) as cluster:
        with tf.device("/job:ps/task:0"):
            vocabulary = lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=2)
            seen = lookup.MutableHashTable(tf.string, tf.int64, -1)
        with tf.device("/job:worker/task:1"):
            words = tf.placeholder(tf.string, [None])
            ids = vocabulary.lookup(words)
            doubled = tf.string_to_number(tf.as_string(ids)) * 2
            insert = seen.insert(words, ids)
            mean, update = tf.metrics.mean(doubled)
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run([tf.tables_initializer(), tf.local_variables_initializer()])
            found, twice, _ = session.run([ids, doubled, update], {words: ["b", "a"]})
            assert found.tolist() == [1, 0]
            assert twice.tolist() == [2.0, 0.0]
            session.run(insert, {words: ["b", "a"]})
        with tf.Session(cluster.target("worker", 1)) as session:
            # What changes has the name of its op and is shared; a vocabulary is not.
            assert session.run(seen.lookup(["b", "x"])).tolist() == [1, -1]
            assert session.run(mean) == 1.0
            with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
                session.run(vocabulary.size())


def test_a_shared_vocabulary_is_initialized_once_for_all() -> None:
    with tf.Graph().as_default(), with_cluster(ps=1, worker=2) as cluster:
        with tf.device("/job:ps/task:0"):
            table = lookup.HashTable(
                lookup.KeyValueTensorInitializer(["a"], np.array([7], np.int64)), -1, "words"
            )
        found = table.lookup(tf.constant(["a", "b"]))
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run(table.init)
        with tf.Session(cluster.target("worker", 1)) as session:
            assert session.run(found).tolist() == [7, -1]
            session.run(table.init)
