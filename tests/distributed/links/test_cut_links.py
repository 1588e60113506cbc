"""Links that are dead at one end already, while steps begin over new ones."""

import queue
import threading
import time

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.links.timing import Timing
from headrace.distributed.master.session import MasterSession
from headrace.distributed.services.task import Task
from headrace.distributed.transport.inproc import inproc_pair
from headrace.errors import UnavailableError
from headrace.harness.cluster import LocalCluster, with_cluster

FAST = Timing(tick=0.005, heartbeat=0.01, drain=0.5, reconnect=5.0, send=5.0, hold=0.2)
PATIENCE = 10.0
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def waits_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.001)


class Cable:
    """A pair of pipes with a cable between them that can be cut: neither end is told."""

    def __init__(self):
        self.here, near = inproc_pair("near")
        self.there, far = inproc_pair("far")
        self._cut = False
        for one, other in ((near, far), (far, near)):
            one.start(self._carry(other), self._ended(other))
        self._ends = near, far

    def _carry(self, other):
        def carry(head, buffers):
            if not self._cut:
                other.send(head, buffers, False)

        return carry

    def _ended(self, other):
        def ended(reason):
            if not self._cut:
                other.fail(reason)

        return ended

    def cut(self):
        self._cut = True

    def close(self):
        for end in self._ends:
            end.close()


class Slow:
    """What a listener does with a pipe, at its slowest: the reader is ahead of all the rest."""

    def __init__(self, pipe):
        self._pipe = pipe
        self.read = threading.Event()

    def __getattr__(self, name):
        return getattr(self._pipe, name)

    def start(self, on_frame, on_lost):
        def read(head, buffers):
            on_frame(head, buffers)
            if head[0] == 0:
                self.read.set()

        self._pipe.start(read, on_lost)
        assert self.read.wait(PATIENCE)


@pytest.fixture
def cables(monkeypatch):
    """The cables of a cluster whose listeners take pipes in threads of their own."""
    made = []
    threads = []
    adopt = Task.adopt

    def pipes(self, one, other):
        cable = Cable()
        made.append(cable)
        return cable.here, cable.there if len(made) == 1 else Slow(cable.there)

    def adopt_later(self, pipe, peer):
        threads.append(threading.Thread(target=adopt, args=(self, pipe, peer)))
        threads[-1].start()

    monkeypatch.setattr(LocalCluster, "_pipes", pipes)
    monkeypatch.setattr(Task, "adopt", adopt_later)
    yield made
    for thread in threads:
        thread.join(PATIENCE)
    for cable in made:
        cable.close()


class Background:
    """A call in another thread."""

    def __init__(self, call, *args):
        self._outcome = queue.Queue()

        def work():
            try:
                self._outcome.put(call(*args))
            except Exception as error:
                self._outcome.put(error)

        threading.Thread(target=work, daemon=True).start()

    def outcome(self):
        return self._outcome.get(timeout=PATIENCE)


class Doubling:
    """A step that takes a tensor from the server, whose part has ended then."""

    def __init__(self, cluster):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.fed = tf.placeholder(tf.float32, [])
            with tf.device("/job:ps/task:0"):
                there = self.fed + 1.0
                self.taken = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="q").dequeue()
            with tf.device("/job:worker/task:0"):
                self.doubled = there * 2.0
                self.waits = self.taken * 2.0
        self.session = tf.Session(cluster.target("worker"), graph=self.graph)
        assert self.run(1) == 4.0

    def run(self, value):
        return self.session.run(self.doubled, {self.fed: np.float32(value)})


@pytest.fixture
def cluster(cables):
    """A server and a worker, in whose session some steps have run."""
    with with_cluster(timing=FAST, ps=1, worker=1) as made:
        made.worker, made.server = made.tasks[WORKER], made.tasks[PS]
        made.doubling = Doubling(made)
        yield made
        made.doubling.session.close()


def second_link(cluster):
    """One more link, as when both have dialled at once; both use it from now on."""
    worker, server = cluster.worker, cluster.server
    here, there = cluster._pipes(WORKER, PS)
    Task.adopt(server, there, worker.me)
    made = worker.peers.adopt(here, server.me, dialled=True)
    waits_for(lambda: made.introduced)
    assert worker.peers.known(PS) is made
    return made


def test_a_tensor_does_not_go_over_a_link_that_its_receiver_has_lost(cluster, cables):
    server = cluster.server
    (stale,) = server.peers.all()
    cables[0].cut()
    cluster.worker.peers.known(PS).fail("nothing came")
    assert not stale.lost
    ran = server.worker.steps_run
    step = Background(cluster.doubling.run, 2)
    waits_for(lambda: server.worker.steps_run > ran)
    stale.fail("nothing came")  # as its silence would do a little later
    assert step.outcome() == 6.0


def test_who_loses_one_of_two_links_says_so_on_the_other(cluster, cables):
    server = cluster.server
    second = second_link(cluster)
    stale = server.peers.known(WORKER)
    cables[1].cut()
    second.fail("nothing came")
    ran = server.worker.steps_run
    step = Background(cluster.doubling.run, 2)
    waits_for(lambda: server.worker.steps_run > ran)
    stale.fail("nothing came")
    assert step.outcome() == 6.0


def test_steps_over_one_of_two_links_end_with_either(cluster):
    first = cluster.worker.peers.known(PS)
    second_link(cluster)
    step = Background(cluster.doubling.session.run, cluster.doubling.waits)
    waits_for(cluster.server.worker.running)
    first.fail("cut")
    assert isinstance(step.outcome(), UnavailableError)
    waits_for(lambda: not cluster.leftovers())
    assert cluster.doubling.run(3) == 8.0


def test_a_task_that_is_asked_for_its_part_of_a_failed_step_is_told_to_stop(cluster, monkeypatch):
    find = MasterSession._find_again

    def fails_meanwhile(self, task):
        cluster.worker.steps.peer_lost(PS, "cut")
        return find(self, task)

    monkeypatch.setattr(MasterSession, "_find_again", fails_meanwhile)
    step = Background(cluster.doubling.session.run, cluster.doubling.waits)
    assert isinstance(step.outcome(), UnavailableError)
    waits_for(lambda: not cluster.leftovers())
