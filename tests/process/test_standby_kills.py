"""Servers are killed and cut off, and their standbys serve: no acknowledged update is lost."""

import json
import signal
import sys
import threading
import time

import pytest
from task_processes import PATIENCE, Tasks, eventually

from headrace.distributed.services.admin import status

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(240),
]

_WORKER = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]), replicas=1)
index = int(sys.argv[2])
server = tf.train.Server(cluster, job_name="worker", task_index=index)
worker = f"/job:worker/task:{index}"
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    counters = [tf.get_variable(f"counter{i}", initializer=0) for i in (0, 1)]
    table = tf.get_variable("table", initializer=tf.zeros([1000, 4]))
    rows = tf.random_uniform([8], 0, 1000, tf.int32)
    train = [step.assign_add(1), counters[index].assign_add(1)]
    train.append(tf.scatter_add(table, rows, tf.ones([8, 4])))
    look = [counters[index], tf.reduce_sum(table), step]
options = {"is_chief": index == 0, "log_step_count_steps": None}
with tf.train.MonitoredTrainingSession(server.target, **options) as sess:
    while True:
        sess.run(train)
        print(*map(int, sess.run(look)), flush=True)
"""


class Servers(Tasks):
    """Two parameter servers; the workers of the cluster are `Worker`s."""

    def start(self, *tasks):
        super().start(*(t for t in tasks if t[0] == "ps"))


class Worker:
    """A process that trains.

    Attributes:
        seen: after each step that it was told of: its counter, the sum of the table, the step.
    """

    def __init__(self, servers, index, program=_WORKER):
        self.seen, self.logged = [], []
        self._process = servers.run((), program, json.dumps(servers.addresses), str(index))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            words = line.split()
            if len(words) >= 3 and all(map(str.isdigit, words)):
                self.seen.append(tuple(map(int, words)))
            else:
                self.logged.append(line)

    def goes_on(self, steps=20):
        """Wait for so many more steps."""
        wanted = len(self.seen) + steps
        try:
            return eventually(lambda: len(self.seen) >= wanted)
        except AssertionError:
            raise AssertionError("".join(self.logged[-30:])) from None

    def kill(self):
        """kill -9."""
        self._process.kill()

    def end(self):
        self.kill()
        self._process.wait(PATIENCE)
        self._reader.join()
        self._process.stdout.close()


@pytest.fixture
def cluster():
    servers = Servers({"ps": 2, "worker": 2}, replicas=1)
    workers = [Worker(servers, 0), Worker(servers, 1)]
    yield servers, workers
    for worker in workers:
        worker.end()
    servers.kill_all()


def _check(workers, failures):
    """Every update that a worker was told of is there, and no other ones but those it repeated."""
    for worker in workers:
        steps = [seen[0] for seen in worker.seen]
        assert steps == sorted(set(steps))  # growing; a failure shows where they do not
        assert 0 <= steps[-1] - len(steps) <= failures
        sums = [seen[1] for seen in worker.seen]
        assert sums == sorted(set(sums))
        # Each step of a worker adds 32; the other worker's add to the table, too.
        assert sums[-1] >= 32 * len(steps)


def _whole_again(servers, index):
    """Wait until a server that was started again serves, and both copies are there."""

    def is_whole():
        tasks = status(servers.addresses["ps"][1 - index])
        found = {t.task: t for t in tasks if "job:ps" in t.task}
        served = found.get(f"/job:ps/replica:0/task:{index}")
        homes = {t.address for t in found.values()} == set(servers.addresses["ps"])
        return homes and served is not None and all(t.copy == "protected" for t in found.values())

    eventually(is_whole)


def test_a_killed_server_is_served_by_its_standby(cluster):
    servers, workers = cluster
    for worker in workers:
        worker.goes_on()
    for index in (0, 1):
        _whole_again(servers, index)
        servers.kill("ps", index)
        for worker in workers:
            worker.goes_on()
        servers.start(("ps", index))
    _whole_again(servers, 1)
    for worker in workers:
        worker.goes_on()
    # A step may fail when its server dies, and when it comes back.
    _check(workers, failures=8)


_OBJECTS = """
import json, sys
sys.stderr = sys.stdout
import headrace as tf
cluster = tf.train.ClusterSpec(json.loads(sys.argv[1]), replicas=1)
server = tf.train.Server(cluster, job_name="worker", task_index=int(sys.argv[2]))
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
    rows = tf.EmbeddingTable(4, tf.zeros_initializer(), name="rows")
    words = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, shared_name="words")
    pairs = tf.contrib.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    names = tf.contrib.lookup.HashTable(pairs, -1, shared_name="names")
    dispenser = tf.data.InputDispenser.for_records(4000, 2)
with tf.device("/job:worker/task:0"):
    batch = dispenser.get_next(lambda begin, end: tf.data.Dataset.range(begin, end).batch(2))
    found = tf.nn.embedding_lookup(rows, batch % 7)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(-tf.reduce_sum(found), step)
    train = tf.group(train, words.insert(batch, batch * 2), names.lookup(tf.constant(["b"])))
with tf.device("/job:ps/task:1"):
    # The worker is witness for both servers when it is connected to both.
    train = tf.group(train, tf.get_variable("other", initializer=0).assign_add(1))
with tf.device("/job:ps/task:0"):
    look = [step, words.size(), tf.reduce_sum(rows.export()[1]), names.size()]
hooks = [dispenser.make_session_run_hook()]
with tf.train.MonitoredTrainingSession(server.target, log_step_count_steps=None, hooks=hooks) as s:
    while not s.should_stop():
        dealt, _ = s.run([batch, train])
        told = s.run_step_fn(lambda step_context: step_context.session.run(look))
        print(*map(int, [*told, *dealt]), flush=True)
"""


@pytest.mark.slow
def test_tables_and_dispensers_are_served_by_the_standby_too():
    servers = Servers({"ps": 2, "worker": 1}, replicas=1)
    worker = Worker(servers, 0, _OBJECTS)
    try:
        worker.goes_on()
        _whole_again(servers, 0)
        servers.kill("ps", 0)
        worker.goes_on()
        servers.start(("ps", 0))
        _whole_again(servers, 0)
        worker.goes_on()
    finally:
        worker.end()
        servers.kill_all()
    dealt = [seen[4:] for seen in worker.seen]
    distinct = len(set(dealt))
    # What a step had that failed comes again; what was done does not.
    assert len(dealt) - distinct <= 8, "".join(worker.logged[-30:])
    for done, (step, words, total, names, *_) in enumerate(worker.seen, 1):
        assert step >= done
        assert words >= 2 * len(set(dealt[:done]))
        assert total >= 8 * done  # two rows of four numbers each step
        assert names == 2
    assert sorted(set(dealt))[0] == (0, 1)


@pytest.mark.slow
def test_a_server_that_was_frozen_acknowledges_nothing_any_more(cluster):
    servers, workers = cluster
    for worker in workers:
        worker.goes_on()
    _whole_again(servers, 0)
    servers.signal("ps", 0, signal.SIGSTOP)
    for worker in workers:
        worker.goes_on()
    frozen = servers.processes[("ps", 0)]
    servers.signal("ps", 0, signal.SIGCONT)
    assert frozen.wait(PATIENCE) == 1  # it stops itself, to be started again: another one serves
    servers.processes.pop(("ps", 0)).stdout.close()
    for worker in workers:
        worker.goes_on()
    servers.start(("ps", 0))
    _whole_again(servers, 0)
    _check(workers, failures=6)


@pytest.mark.slow
def test_servers_are_killed_for_two_minutes(cluster):
    servers, workers = cluster
    end = time.monotonic() + 120
    kills = 0
    for worker in workers:
        worker.goes_on()
    while time.monotonic() < end:
        index = kills % 2
        _whole_again(servers, index)
        servers.kill("ps", index)
        kills += 1
        for worker in workers:
            worker.goes_on()
        servers.start(("ps", index))
    _check(workers, failures=4 * kills)
