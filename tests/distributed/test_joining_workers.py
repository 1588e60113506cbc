"""Processes that join a training by an address, are killed, come again and are asked to leave."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from server_clusters import Cluster, eventually
from sync_training import Replica

import headrace as tf
from headrace.distributed.services import admin
from headrace.distributed.services.server import Server

PROGRAM = Path(__file__).with_name("joining_worker.py")


class Newcomer:
    """A process that joins; ``lines`` are what it has printed."""

    def __init__(self, address):
        self.lines = []
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), address], stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.strip())

    def has_counted(self, steps):
        return eventually(lambda: len(self.lines) > steps, 60.0)


@pytest.fixture
def newcomer():
    made = []

    def start(address):
        made.append(Newcomer(address))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def servers():
    # Plans of a master that was killed are kept for a while: it may only have been cut off.
    made = Cluster(ps=1, worker=1).start_all()
    yield made
    made.stop()


def test_one_joins_and_is_killed_and_one_takes_its_place_and_is_asked_to_leave(servers, newcomer):
    address = servers["ps", 0].address
    with tf.device(tf.train.replica_device_setter(cluster=servers.spec)):
        step = tf.train.get_or_create_global_step()
        train = step.assign_add(1)
    acknowledged = 0
    with tf.train.MonitoredTrainingSession(servers.target("worker"), is_chief=True) as chief:
        one = newcomer(address)
        while not one.has_counted(20):
            chief.run(train)
            acknowledged += 1
        one.process.kill()
        one.process.wait()
        other = newcomer(address)
        assert other.has_counted(20)
        assert (one.lines[0], other.lines[0]) == ("1", "1")
        acknowledged += len(one.lines) - 1
        answer = admin.resize(address, {"worker": 1})
        assert list(answer.leaving) == ["/job:worker/replica:0/task:1"]
        assert other.process.wait(60) == 0
        assert eventually(lambda: other.lines[-1] == "left")
        acknowledged += len(other.lines) - 2
        # The step that was under way at the kill may have counted without a word.
        assert acknowledged <= chief.run(step) <= acknowledged + 1
        assert eventually(lambda: len(admin.status(address)) == 2)
        chief.run(train)


class _Joined:
    """A server that has joined, as `Replica` wants a cluster."""

    def __init__(self, server):
        self.spec = server.cluster
        self.target = lambda job, index: server.target


def _line():
    w = tf.get_variable("w", initializer=[0.0])
    x = tf.placeholder(tf.float32, [1])
    loss = tf.reduce_sum((w - x) ** 2)
    step = tf.train.get_or_create_global_step()
    return loss, step, lambda i: {x: [float(i)]}


def test_a_replica_that_joins_is_averaged_with_the_others(cluster):
    servers = cluster(ps=1, worker=2)

    def optimizer():
        inner = tf.train.GradientDescentOptimizer(0.5)
        return tf.train.SyncReplicasOptimizer(inner, 2, total_num_replicas=2)

    first, second = (Replica(servers, i, _line, optimizer).open() for i in (0, 1))
    first.go([3])
    second.go([9])
    for replica in (first, second):
        replica.ends()
    assert first.session.run(first.variables)[0] == 6.0  # the mean of the two
    joined = Server(servers["ps", 0].address, job_name="worker")
    try:
        third = Replica(_Joined(joined), 2, _line, optimizer).open()
        values = []
        for batch in ((1, 1, 1), (0, 3, 9)):
            for replica, i in zip((first, second, third), batch, strict=True):
                replica.go([i])
            for replica in (first, second, third):
                replica.ends()
            values.append(first.session.run(first.variables)[0][0])
        # From the second update on each has one gradient of all three.
        assert values[-1] == pytest.approx(4.0)
        for replica in (third, second, first):
            replica.close()
    finally:
        joined.stop()
