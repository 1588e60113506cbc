"""Tables of embeddings on servers that are killed, come back, and become more."""

import itertools
import sys
import threading

import numpy as np
import pytest
from task_processes import Tasks, eventually

import headrace as tf
from headrace.errors import AbortedError, UnavailableError

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(180),
]

WIDTH, KEYS = 4, np.array([2**62, -(2**63), -1, 0, *range(1, 60)])


class Client:
    """A client whose steps add 1 to the row of each key that they are fed.

    Args:
        parts: of the table, on as many servers.
    """

    def __init__(self, tasks, parts, worker=0):
        self.graph = tf.Graph()
        with self.graph.as_default():
            on = tf.train.replica_device_setter(
                ps_tasks=parts, worker_device=f"/job:worker/task:{worker}"
            )
            with tf.device(on):
                self.keys = tf.placeholder(tf.int64, [None])
                self.prefix = tf.placeholder(tf.string, [])
                table = tf.PartitionedEmbeddingTable(
                    WIDTH, parts, tf.zeros_initializer(), name="table"
                )
                rows = tf.nn.embedding_lookup(table, self.keys)
                optimizer = tf.train.GradientDescentOptimizer(1.0)
                self.train = optimizer.minimize(-tf.reduce_sum(rows))
                self.save, self.changes = (f(self.prefix) for f in (table.save, table.save_changes))
                self.restore = table.restore(self.prefix)
                self.evict = table.evict(unseen_for=20)
                self.exported = table.export()
        self.target = tasks.target("worker", worker)
        self.session = tf.Session(self.target, graph=self.graph)

    def step(self, keys=KEYS):
        self.session.run(self.train, {self.keys: keys})

    def run(self, op, path):
        return int(self.session.run(op, {self.prefix: path}))

    def rows(self):
        """What each key's row has counted."""
        keys, rows = self.session.run(self.exported)
        assert (rows == rows[:, :1]).all()
        return dict(zip(keys.tolist(), rows[:, 0].tolist(), strict=True))


@pytest.fixture
def tasks():
    made = Tasks({"ps": 3, "worker": 2})
    yield made
    made.kill_all()


def test_a_server_is_killed_in_training_and_the_table_comes_back(tasks, tmp_path):
    """From a save and two of changes after it; then into parts on three servers."""
    path = str(tmp_path / "model")
    client = Client(tasks, 2)
    client.step()
    assert client.run(client.save, path) == len(KEYS)
    for _ in range(2):
        client.step(KEYS[:7])
        assert client.run(client.changes, path) == 7
    saved = client.rows()
    assert saved == {key: 3.0 if i < 7 else 1.0 for i, key in enumerate(KEYS.tolist())}

    steps, errors = itertools.count(), []

    def train():
        while not errors:
            try:
                client.step()
                made[0] = next(steps)
            except (UnavailableError, AbortedError) as error:
                errors.append(error)

    made = [0]
    training = threading.Thread(target=train)
    training.start()
    eventually(lambda: made[0] > 3)
    tasks.kill("ps", 1)
    training.join(60)
    assert "/job:ps/replica:0/task:1" in str(errors[0])

    tasks.start(("ps", 1))
    client.session = tf.Session(client.target, graph=client.graph)
    assert client.run(client.restore, path) == len(KEYS)
    assert client.rows() == saved
    client.step(KEYS[:2])
    client.run(client.changes, path)
    wider = Client(tasks, 3, worker=1)
    assert wider.run(wider.restore, path) == len(KEYS)
    assert wider.rows() == saved | dict.fromkeys(KEYS[:2].tolist(), 4.0)
    wider.step()


@pytest.mark.slow
def test_two_clients_and_evictions_lose_no_update(tasks):
    """What a client adds to rows that nobody evicts is there in the end."""
    clients = [Client(tasks, 2, worker) for worker in range(2)]
    steps = 25

    def train(client):
        for i in range(steps):
            client.step(np.concatenate([KEYS, np.arange(100, 150) + 50 * i]))

    threads = [threading.Thread(target=train, args=(c,)) for c in clients]
    for one in threads:
        one.start()
    evicted = 0
    third = Client(tasks, 2)
    while any(t.is_alive() for t in threads):
        evicted += int(third.session.run(third.evict))
    for one in threads:
        one.join()
    rows = third.rows()
    assert {key: rows.get(key) for key in KEYS.tolist()} == dict.fromkeys(
        KEYS.tolist(), 2.0 * steps
    )
    assert evicted + len(rows) >= len(KEYS) + 50 * steps
