"""Every frame of a step meets every fault: no wrong result, no hang, nothing left."""

import itertools
import threading
import time

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.links.timing import Timing
from headrace.errors import AbortedError, FailedPreconditionError, OpError, UnavailableError
from headrace.harness.cluster import with_cluster
from headrace.harness.faults import ACTIONS, FaultRule, Faults

FAST = Timing(tick=0.005, heartbeat=0.01, drain=0.5, reconnect=0.5, send=0.5, hold=0.2)
#: A step that meets a fault ends within so many seconds, however busy the machine is.
PATIENCE = 30.0
PS0, PS1, CHIEF, OTHER = (
    f"/job:{job}/replica:0/task:{i}"
    for job, i in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
)


class Training:
    """A step that doubles a scalar on one server and a matrix on another, on two workers."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.fed = tf.placeholder(tf.float32, [2, 2])
            with tf.device("/job:ps/task:0"):
                scalar = tf.get_variable("scalar", initializer=1.0, use_resource=True)
                read = tf.identity(scalar.read_value())
            with tf.device("/job:ps/task:1"):
                matrix = tf.get_variable(
                    "matrix", initializer=np.eye(2, dtype=np.float32), use_resource=True
                )
                rows = tf.identity(matrix.read_value())
            with tf.device("/job:worker/task:0"):
                more = read * tf.reduce_sum(self.fed) / 2.0
            with tf.device("/job:worker/task:1"):
                product = tf.matmul(self.fed, rows)
            with tf.device("/job:ps/task:0"):
                first = scalar.assign_add(more, read_value=False)
            with tf.device("/job:ps/task:1"):
                second = matrix.assign_add(product, read_value=False)
            self.step = tf.group(first, second)
            self.values = (scalar.read_value(), matrix.read_value())
            self.init = tf.global_variables_initializer()
        self.session = None

    def open(self):
        """A new session, after the first run of everything."""
        self.session = tf.Session(self.cluster.target("worker"), graph=self.graph)
        self.session.run(self.init)
        self.run()
        self.counts()
        return self

    def close(self):
        self.session.close()

    def run(self):
        self.session.run(self.step, {self.fed: np.eye(2, dtype=np.float32)})

    def counts(self):
        """How many updates each variable has seen: each doubles it."""
        scalar, matrix = self.session.run(self.values)
        found = np.log2(scalar), np.log2(matrix[0, 0])
        assert np.array_equal(matrix, np.eye(2) * 2 ** found[1])
        assert all(n == int(n) for n in found)
        return [int(n) for n in found]


def in_time(call):
    """What a call returns or raises; it must not hang."""
    outcome = []

    def work():
        try:
            outcome.append((call(), None))
        except OpError as error:
            outcome.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the step hangs"
    return outcome[0]


def until_it_runs(call, allowed=(UnavailableError,)):
    """Run again while errors say that a task is away; no other error may come."""
    end = time.monotonic() + PATIENCE
    while True:
        value, error = in_time(call)
        if error is None:
            return value
        assert isinstance(error, allowed), error
        assert time.monotonic() < end


def frames_of(cluster, faults, call):
    """The frames of a call that meets no fault."""
    faults.watch()
    call()
    cluster_is_quiet(cluster)
    return list(faults.seen)


def empties(left):
    """Wait for a list to become empty."""
    end = time.monotonic() + PATIENCE
    while left():
        assert time.monotonic() < end, left()
        threading.Event().wait(0.001)


def cluster_is_quiet(cluster):
    empties(cluster.leftovers)


def no_plans_are_left(cluster):
    """Workers hold nothing for sessions that were closed, however their links fared."""
    empties(lambda: [t for t, task in cluster.tasks.items() if task.worker.machine.plans])
    assert all(not task.worker._engines for task in cluster.tasks.values())


def test_every_frame_of_a_training_step_meets_every_fault():
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=2, worker=2) as cluster:
        training = Training(cluster).open()
        frames = frames_of(cluster, faults, training.run)
        kinds = {f.kind for f in frames}
        assert kinds == {"RUN_PART", "TENSORS", "PART_DONE"}
        assert len(frames) >= 9
        for frame, action in itertools.product(frames, ("drop", "delay", "duplicate", "cut")):
            before = training.counts()
            rule = FaultRule(action, *frame)
            faults.add(rule)
            _, error = in_time(training.run)
            faults.clear()
            assert rule.hits == 1, (frame, action)
            acknowledged = error is None
            if action in ("delay", "duplicate"):
                assert acknowledged, error
            elif not acknowledged:
                assert isinstance(error, UnavailableError), (frame, action, error)
                assert " cannot be reached: " in error.message
            cluster_is_quiet(cluster)
            # The next step connects again, and all that was there is there.
            after = until_it_runs(training.counts)
            for old, new in zip(before, after, strict=True):
                assert new - old in ((1,) if acknowledged else (0, 1)), (frame, action)
            until_it_runs(training.run)
            training.close()
            training.open()  # sizes stay small
        training.close()
        no_plans_are_left(cluster)


@pytest.mark.parametrize("task", [PS0, PS1, OTHER])
def test_a_task_is_started_again_at_every_frame_that_it_gets(task):
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=2, worker=2) as cluster:
        training = Training(cluster).open()
        frames = frames_of(cluster, faults, training.run)
        for frame in [f for f in frames if f.receiver == task]:
            faults.add(FaultRule("restart", *frame))
            _, error = in_time(training.run)
            faults.clear()
            faults.join()
            assert isinstance(error, (UnavailableError, AbortedError)), (frame, error)
            assert task in error.message
            # The old session says so for ever.
            gone = (UnavailableError, FailedPreconditionError)
            error = None
            end = time.monotonic() + PATIENCE
            while not isinstance(error, AbortedError):
                assert time.monotonic() < end
                _, error = in_time(training.run)
                assert isinstance(error, (AbortedError, *gone)), error
            assert f"Task {task} was started again" in error.message
            training.close()
            training.open()
            assert training.counts() == [1, 1]
        training.close()


@pytest.mark.parametrize("rides", [True, False])
def test_every_frame_of_the_first_run_meets_every_fault(rides):
    """Where the answer of the server goes with its tensors, and where it has a frame for itself."""
    faults = Faults()
    with with_cluster(timing=FAST, faults=faults, ps=1, worker=1) as cluster:
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.get_variable("v", initializer=2.0, use_resource=True)
                there = v.read_value() * 1.0
            with tf.device("/job:worker/task:0"):
                doubled = there * 2.0
            init = tf.global_variables_initializer()

        def first_run():
            with tf.Session(cluster.target("worker"), graph=graph) as session:
                return session.run([doubled] if rides else [doubled, v])[0]

        with tf.Session(cluster.target("worker"), graph=graph) as session:
            session.run(init)
        frames = frames_of(cluster, faults, first_run)
        kinds = {f.kind for f in frames}
        assert kinds == {
            "REGISTER_PART", "REGISTERED", "RUN_PART", "TENSORS", "DROP_PLANS",
            *([] if rides else ["PART_DONE"]),
        }  # fmt: skip
        for frame, action in itertools.product(frames, ("drop", "delay", "duplicate", "cut")):
            rule = FaultRule(action, *frame)
            faults.add(rule)
            value, error = in_time(first_run)
            faults.clear()
            if error is None:
                assert value == 4.0
            else:
                assert isinstance(error, UnavailableError), (frame, action, error)
                assert action in ("drop", "cut")
            assert until_it_runs(first_run) == 4.0
            cluster_is_quiet(cluster)
            no_plans_are_left(cluster)


@pytest.mark.parametrize("seed", range(3))
def test_random_faults_while_many_steps_run(seed):
    """Updates that were acknowledged are there; the others may be."""
    faults = Faults(seed)
    with with_cluster(timing=FAST, faults=faults, ps=2, worker=2) as cluster:
        training = Training(cluster).open()
        low = high = training.counts()
        faults.add(
            *(FaultRule(a, chance=0.01) for a in ("drop", "cut")),
            *(FaultRule(a, chance=0.05, seconds=0.002) for a in ("delay", "duplicate")),
        )
        for _ in range(60):
            _, error = in_time(training.run)
            high = [n + 1 for n in high]
            if error is None:
                low = [n + 1 for n in low]
            else:
                assert isinstance(error, UnavailableError), error
        faults.clear()
        cluster_is_quiet(cluster)
        after = until_it_runs(training.counts)
        assert all(a <= n <= b for a, n, b in zip(low, after, high, strict=True))
        training.close()


def test_unknown_faults():
    with pytest.raises(ValueError, match=r"Unknown fault 'burn': there are drop, delay"):
        FaultRule("burn")
    assert len(set(ACTIONS)) == 5
