"""Deadlines, cancelled steps, and tasks that die: what sessions see, and what is left."""

import queue
import threading
import time

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.links.timing import Timing
from headrace.distributed.services.task import Task
from headrace.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
)
from headrace.graph.proto import RunOptions
from headrace.harness.cluster import with_cluster
from headrace.harness.faults import FaultRule, Faults

FAST = Timing(tick=0.005, heartbeat=0.01, drain=0.5, reconnect=0.2, send=0.2, hold=0.2, orphan=0.1)
PATIENCE = 30.0


def name(job, index=0):
    return f"/job:{job}/replica:0/task:{index}"


def waits_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.001)


def notices_the_death_of(cluster, dead, witness):
    """Kill a task; on return the witness has done all that it does about that."""
    master = cluster.tasks[witness].master
    noticed = threading.Event()
    peer_lost = master.peer_lost

    def last(peer, reason):
        peer_lost(peer, reason)
        if peer == dead:
            noticed.set()

    master.peer_lost = last
    cluster.kill(dead)
    assert noticed.wait(PATIENCE)
    master.peer_lost = peer_lost


class Background:
    """A call in another thread."""

    def __init__(self, call, *args, **kwargs):
        self._outcome = queue.Queue()

        def work():
            try:
                self._outcome.put((call(*args, **kwargs), None))
            except Exception as error:
                self._outcome.put((None, error))

        threading.Thread(target=work, daemon=True).start()

    def value(self):
        value, error = self._outcome.get(timeout=PATIENCE)
        assert error is None, error
        return value

    def error(self):
        value, error = self._outcome.get(timeout=PATIENCE)
        assert error is not None, value
        return error


class Queued:
    """A queue in one task, and a step in another that waits for it."""

    def __init__(self, cluster, where="ps", master="worker"):
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device(f"/job:{where}/task:0"):
                self.queue = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="q")
                taken = self.queue.dequeue()
                self.put = self.queue.enqueue(2.0)
                self.size = self.queue.size()
            with tf.device(f"/job:{master}/task:0"):
                self.doubled = taken * 2.0
                self.three = tf.constant(1.0) + tf.constant(2.0)
        self.cluster = cluster
        self.session = tf.Session(cluster.target(master), graph=self.graph)
        self.session.run(self.size)

    def waiting(self):
        """A step that is waiting in the queue."""
        before = self._waiting()
        step = Background(self.session.run, self.doubled)
        waits_for(lambda: self._waiting() > before)
        return step

    def _waiting(self):
        """How many steps wait in queues."""
        runs = [run for t in self.cluster.tasks.values() for run in t.worker.running()]
        return sum(bool(run.run.context._waiting) for run in runs)

    def still_works(self):
        assert self.session.run(self.size) == 0
        self.session.run(self.put)
        assert self.session.run(self.doubled) == 4.0


@pytest.fixture(params=["ps", "worker"])
def where(request):
    """The task of the queue: another one, and the master's own."""
    return request.param


def test_a_deadline_names_the_tasks_that_are_missing(where):
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        queued = Queued(cluster, where)
        with pytest.raises(DeadlineExceededError) as caught:
            queued.session.run(queued.doubled, options=RunOptions(timeout_in_ms=20))
        message = caught.value.message
        assert "did not finish within timeout_in_ms=20; it waits for " in message
        assert name(where) in message
        waits_for(lambda: not cluster.leftovers())
        queued.still_works()
        queued.session.close()


def test_the_deadline_of_all_steps_of_a_session():
    config = tf.ConfigProto(operation_timeout_in_ms=20)
    with with_cluster(config, FAST, ps=1, worker=1) as cluster:
        queued = Queued(cluster)
        with pytest.raises(
            DeadlineExceededError, match="did not finish within operation_timeout_in_ms=20"
        ):
            queued.session.run(queued.doubled)
        queued.session.close()


def test_a_step_within_its_deadline():
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        queued = Queued(cluster)
        options = RunOptions(timeout_in_ms=5000)
        queued.session.run(queued.put, options=options)
        assert queued.session.run(queued.doubled, options=options) == 4.0
        queued.session.close()


def test_closing_a_session_ends_its_steps(where, caplog):
    caplog.set_level("DEBUG", "headrace.distributed")
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        queued = Queued(cluster, where)
        step = queued.waiting()
        queued.session.close()
        error = step.error()
        assert isinstance(error, CancelledError)
        assert error.message == "The session was closed while a step ran."
        # A training that ends well ends such steps: the log of a normal run is quiet about them.
        (told,) = [r for r in caplog.records if error.message in r.getMessage()]
        assert (told.levelname, told.headrace["event"]) == ("DEBUG", "step_given_up")
        assert " was given up after " in told.getMessage()
        waits_for(lambda: not cluster.leftovers())
        assert not any(task.worker.plans for task in cluster.tasks.values())


def test_the_death_of_a_task_fails_its_steps_and_no_others():
    with with_cluster(timing=FAST, ps=2, worker=1) as cluster:
        queued = Queued(cluster)
        other_graph = tf.Graph()
        with other_graph.as_default(), tf.device("/job:ps/task:1"):
            other_queue = tf.FIFOQueue(3, [tf.float32], [[]], shared_name="other")
            taken, put = other_queue.dequeue(), other_queue.enqueue(7.0)
        other = tf.Session(cluster.target("worker"), graph=other_graph)
        survivor = Background(other.run, taken)
        waits_for(queued._waiting)
        step = queued.waiting()
        cluster.kill(name("ps"))
        error = step.error()
        assert isinstance(error, UnavailableError)
        assert error.message.startswith(f"Task {name('ps')}, which step ")
        assert " needs, cannot be reached: " in error.message
        other.run(put)
        assert survivor.value() == 7.0
        assert queued.session.run(queued.three) == 3.0
        with pytest.raises(UnavailableError, match=r"Task /job:ps/replica:0/task:0.* for 0\.\d s"):
            queued.session.run(queued.size)
        other.close()
        queued.session.close()


def test_a_task_that_was_started_again():
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        queued = Queued(cluster)
        notices_the_death_of(cluster, name("ps"), name("worker"))
        cluster.start(name("ps"))
        with pytest.raises(AbortedError, match=r"Task /job:ps/replica:0/task:0 was started again"):
            queued.session.run(queued.size)
        assert queued.session.run(queued.three) == 3.0
        again = Queued(cluster)
        again.still_works()
        again.session.close()
        queued.session.close()


def test_a_cut_fails_the_step_and_the_next_one_finds_its_state():
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=1, worker=1) as cluster:
        queued = Queued(cluster)
        queued.session.run(queued.put)
        faults.add(FaultRule("cut", kind="RUN_PART", number=1))
        with pytest.raises(UnavailableError, match="cut by a rule"):
            queued.session.run(queued.size)
        assert queued.session.run(queued.size) == 1
        queued.session.close()


def two_steps(cluster):
    """A graph whose worker 1 takes a tensor from the server, for a master that is neither."""
    graph = tf.Graph()
    with graph.as_default():
        fed = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            there = fed + 1.0
        with tf.device("/job:worker/task:0"):
            doubled = there * 2.0
    session = tf.Session(cluster.target("chief"), graph=graph)
    return session, lambda: session.run(doubled, {fed: np.float32(1)})


def test_two_tasks_lose_each_other_while_the_master_sees_both():
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=1, worker=1, chief=1) as cluster:
        session, run = two_steps(cluster)
        assert run() == 4.0
        # The tensor is lost with the link, and its receiver hears of its part only afterwards.
        faults.add(
            FaultRule("cut", sender=name("ps"), receiver=name("worker"), kind="TENSORS"),
            FaultRule("delay", receiver=name("worker"), kind="RUN_PART", seconds=0.05),
        )
        with pytest.raises(UnavailableError, match=r"Task /job:(ps|worker)/.* cannot be reached"):
            run()
        faults.clear()
        assert run() == 4.0
        session.close()


def test_tasks_that_dial_each_other_at_once():
    with with_cluster(timing=FAST, a=1, b=1) as cluster:
        one, other = (cluster.tasks[name(job)] for job in "ab")
        together = threading.Barrier(2)

        def dial(here: Task, there: Task):
            together.wait()
            return here.peers.link(there.me.task, there.me.address, 1.0)

        first = Background(dial, one, other)
        second = Background(dial, other, one)
        links = [first.value(), second.value()]
        assert not any(link.lost for link in links)
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/job:a"):
                x = tf.placeholder(tf.float32, []) + 1.0
            with tf.device("/job:b"):
                y = x * 2.0
            with tf.device("/job:a"):
                z = y + 3.0
        fed = z.graph.get_operations()[0].outputs[0]
        with tf.Session(cluster.target("a"), graph=graph) as session:
            assert session.run(z, {fed: 1.0}) == 7.0
            # One of two links goes: what runs on the other does not care.
            spare = [x for x in one.peers.all() if x is not one.peers.known(name("b"))]
            for link in spare:
                link.fail("not needed")
            waits_for(lambda: len(other.peers.all()) == 1)
            assert session.run(z, {fed: 2.0}) == 9.0


def test_workers_forget_the_plans_of_a_master_that_died():
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=1, worker=1) as cluster:
        Queued(cluster)
        server = cluster.tasks[name("ps")].worker
        assert server.plans == 1
        cluster.crash(name("worker"))
        waits_for(lambda: server.plans == 0 and not server._engines)


def test_the_steps_of_a_master_that_died_end():
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=1, worker=1) as cluster:
        queued = Queued(cluster)
        step = queued.waiting()
        cluster.crash(name("worker"))
        assert isinstance(step.error(), (CancelledError, UnavailableError))
        waits_for(lambda: not cluster.tasks[name("ps")].worker.running())


def test_a_bad_feed_ends_the_parts_of_all_tasks():
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        session_graph = tf.Graph()
        with session_graph.as_default():
            with tf.device("/job:worker"):
                fed = tf.placeholder(tf.float32, None)
                here = tf.reshape(fed, [2]) + 1.0
            with tf.device("/job:ps"):
                there = here * 2.0
        with tf.Session(cluster.target("worker"), graph=session_graph) as session:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(there, {fed: np.zeros(3, np.float32)})
            waits_for(lambda: not cluster.leftovers())
            assert np.array_equal(session.run(there, {fed: np.zeros(2, np.float32)}), [2, 2])


def test_state_of_a_restarted_task_must_be_made_anew():
    with with_cluster(timing=FAST, ps=1, worker=1) as cluster:
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/job:ps"):
                v = tf.get_variable("v", initializer=1.0, use_resource=True)
            init, value = tf.global_variables_initializer(), v.read_value()
        with tf.Session(cluster.target("worker"), graph=graph) as session:
            session.run(init)
            assert session.run(value) == 1.0
        cluster.kill(name("ps"))
        cluster.start(name("ps"))
        with tf.Session(cluster.target("worker"), graph=graph) as session:
            with pytest.raises(FailedPreconditionError):
                session.run(value)
            session.run(init)
            assert session.run(value) == 1.0
