"""Tables move between servers while steps use them: nothing of them is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from server_clusters import eventually
from test_moves import Record, Trainers, move, stored

import headrace as tf
from headrace.contrib import lookup
from headrace.distributed.standby.kinds import OBJECTS
from headrace.harness.cluster import LocalCluster, with_cluster
from headrace.step.moved import MOVING

ROWS = "table of embeddings rows"
KEYS = np.array([2**62, -1, 0, *range(1, 60)])


class Model:
    """A table of embeddings whose rows count how often they were trained, and a table of words."""

    def __init__(self) -> None:
        with tf.device("/job:ps/task:0"):
            self.table = tf.EmbeddingTable(4, tf.zeros_initializer(), name="rows")
            self.words = lookup.MutableHashTable(tf.string, tf.int64, -1, name="words")
        self.keys = tf.placeholder(tf.int64, [None])
        with tf.device("/job:worker/task:0"):
            found = tf.nn.embedding_lookup(self.table, self.keys)
        self.train = tf.train.MomentumOptimizer(1.0, 0.0).minimize(-tf.reduce_sum(found))
        self.exported = self.table.export()
        self.insert = self.words.insert(["a", "b"], np.array([1, 2], np.int64))


@contextmanager
def model() -> Iterator[tuple[LocalCluster, Any, Model]]:
    with tf.Graph().as_default(), with_cluster(ps=3, worker=2) as cluster:
        made = Model()
        Record(cluster)
        with tf.Session(cluster.target("worker")) as session:
            session.run(made.insert)
            yield cluster, session, made


def test_all_that_moves_can_be_copied() -> None:
    assert MOVING - {"variable"} <= OBJECTS.keys()


def test_a_growing_table_moves_while_it_is_trained() -> None:
    with model() as (cluster, session, made):
        steps = session.make_callable(made.train, [made.keys])
        new = iter(range(100, 10**9))

        def step() -> None:
            steps(np.append(KEYS, next(new)))  # it grows while it moves

        with Trainers().training([step]) as trainers:
            trainers.await_steps(5)
            report = move(cluster, [ROWS], 0, 2)
            assert report.keys == (ROWS,)
            assert report.bytes > len(KEYS) * 16
            trainers.await_steps(5)
            assert "rows" in stored(cluster, 2)
            assert "rows" not in stored(cluster, 0)
            move(cluster, [ROWS], 2, 0)
            trainers.await_steps(5)
            move(cluster, [ROWS], 0, 1)
            trainers.await_steps(5)
        assert not trainers.errors
        keys, rows = session.run(made.exported)
        counts = dict(zip(keys.tolist(), rows[:, 0].tolist(), strict=True))
        assert {counts[key] for key in KEYS.tolist()} == {float(trainers.steps)}
        assert len(counts) == len(KEYS) + trainers.steps


def test_a_table_of_words_moves_and_another_session_finds_it() -> None:
    with model() as (cluster, session, made):
        found = made.words.lookup(["b", "x"])
        assert session.run(found).tolist() == [2, -1]
        move(cluster, ["table words"], 0, 1)
        assert session.run(found).tolist() == [2, -1]
        session.run(made.words.insert(["x"], np.array([9], np.int64)))
        with tf.Session(cluster.target("worker", 1)) as other:
            assert other.run(found).tolist() == [2, 9]
        assert cluster.tasks["/job:ps/replica:0/task:0"].moves.what_is_left() == []


def test_a_move_of_a_table_that_is_given_up_leaves_nothing_that_counts() -> None:
    with model() as (cluster, session, made):
        session.run(made.train, {made.keys: KEYS})
        source = cluster.tasks["/job:ps/replica:0/task:0"].moves

        def refuse(keys: Any, task: str, epoch: int) -> None:
            raise tf.errors.FailedPreconditionError(None, None, "no")

        record = source.record
        record.commit, commit = refuse, record.commit
        for _ in range(2):
            try:
                move(cluster, [ROWS], 0, 2)
            except tf.errors.FailedPreconditionError:
                continue
            raise AssertionError("the record was not changed")
        target = cluster.tasks["/job:ps/replica:0/task:2"].moves
        assert eventually(lambda: not target.what_is_left()), target.what_is_left()
        session.run(made.train, {made.keys: KEYS})
        record.commit = commit
        move(cluster, [ROWS], 0, 2)
        session.run(made.train, {made.keys: KEYS})
        _, rows = session.run(made.exported)
        assert set(rows.reshape(-1).tolist()) == {3.0}
