"""Collectives between processes that have joined JAX's multi-process runtime: gloo, on CPUs."""

import json
import signal
import subprocess
import sys

import pytest
from task_processes import PATIENCE

from headrace.test.cluster import free_ports

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="kills processes"),
    pytest.mark.timeout(240),
]

_START = """
import json, sys, threading
import jax
import numpy as np
addresses, coordinator, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
count = len(addresses["worker"])
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(coordinator, count, index)
import headrace as tf
from headrace.distributed.collective import by_xla
begun = []
made = by_xla.XlaSums._begin
by_xla.XlaSums._begin = lambda self, call, *a: begun.append(call.name) or made(self, call, *a)
server = tf.train.Server(addresses, job_name="worker", task_index=index)
here = f"/job:worker/task:{index}"
"""

_END = """
with tf.device(here):
    leave = tf.collective.all_reduce(1, count, 9, 1)
with tf.Session(server.target) as session:
    session.run(leave)  # nobody leaves while others need it
print("ended", flush=True)
"""


class Workers:
    """Processes with a program; each prints a line of JSON and then "ended"."""

    def __init__(self, count, program, end=_END):
        *ports, coordinator = free_ports(count + 1)
        addresses = json.dumps({"worker": [f"127.0.0.1:{port}" for port in ports]})
        first = f"127.0.0.1:{coordinator}"
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", _START + program + end, addresses, first, str(i)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for i in range(count)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
            process.communicate(timeout=3 * PATIENCE)

    def results(self):
        found = []
        for process in self.processes:
            words, errors = process.communicate(timeout=3 * PATIENCE)
            assert process.returncode == 0, errors[-3000:]
            *_, result, ended = words.splitlines()
            assert ended == "ended"
            found.append(json.loads(result))
        return found


_VALUES = """
with tf.device(here):
    def numbers(dtype):
        return tf.cast(tf.constant([[1, 2, -3], [4 + index, 6, 9]]), dtype) + 0
    found = []
    def add(how, t, *args, key, **more):
        found.append(how(t, count, 1, key, *args, communication_hint="nccl", **more))
    c = tf.collective
    for i, dtype in enumerate([tf.float32, tf.float64, tf.int32, tf.int64, tf.bfloat16]):
        how = [("Add", "Id"), ("Add", "Div"), ("Min", "Id"), ("Max", "Id")]
        for j, (merge, final) in enumerate(how):
            add(c.all_reduce, numbers(dtype), merge, final, key=10 * i + j)
    add(c.reduce_scatter, numbers(tf.float32), key=100)
    add(c.all_gather, numbers(tf.float32)[:1], key=101)
    add(c.all_reduce, tf.constant(float(index)), key=102)
    expected = len(found)
    # What XLA does not do goes over the links: products, complex numbers, rows of several sizes.
    add(c.all_reduce, numbers(tf.float32), "Mul", "Id", key=200)
    add(c.all_reduce, numbers(tf.complex64), key=201)
    add(c.all_gather, tf.ones([index, 2]), key=202)
    found.append(c.all_reduce(numbers(tf.float32), count, 1, 203, communication_hint="ring"))
    found.append(c.all_reduce(numbers(tf.float32), count, 1, 204))
with tf.Session(server.target) as session:
    for _ in range(3):
        got = session.run(found)
assert len(begun) == 3 * expected, (len(begun), expected)
def text(g):
    return str(g.dtype) + str(np.asarray(g, "c16" if g.dtype.kind == "c" else "f8").tolist())
print(json.dumps([text(g) for g in got]))
"""


def test_values_are_those_of_our_links():
    with Workers(2, _VALUES) as workers:
        first, second = workers.results()
    values = [[[1, 2, -3], [4 + i, 6, 9]] for i in range(2)]
    total = [[2, 4, -6], [9, 12, 18]]
    for i, dtype in enumerate(["float32", "float64", "int32", "int64", "bfloat16"]):
        half = [[1, 2, -3], [4 if "int" in dtype else 4.5, 6, 9]]
        for j, right in enumerate([total, half, values[0], values[1]]):
            right = [[float(x) for x in row] for row in right]
            assert first[4 * i + j] == second[4 * i + j] == f"{dtype}{right}"
    scattered, gathered, scalar, product, _, rows, *ours = map(
        list, zip(first[20:], second[20:], strict=True)
    )
    assert scattered == ["float32[[2.0, 4.0, -6.0]]", "float32[[9.0, 12.0, 18.0]]"]
    assert gathered == ["float32[[1.0, 2.0, -3.0], [1.0, 2.0, -3.0]]"] * 2
    assert scalar == ["float321.0"] * 2
    assert product == ["float32[[1.0, 4.0, 9.0], [20.0, 36.0, 81.0]]"] * 2
    assert rows == ["float32[[1.0, 1.0]]"] * 2
    assert ours == [["float32[[2.0, 4.0, -6.0], [9.0, 12.0, 18.0]]"] * 2] * 2


_TRAINING = """
def learned(hint, sharded):
    with tf.Graph().as_default(), tf.device(here):
        state = np.random.RandomState(index)
        x, y = (tf.constant(state.randn(8, n), tf.float32) for n in (5, 2))
        w = tf.get_variable("w", initializer=tf.fill([5, 2], float(index)))
        b = tf.get_variable("b", initializer=float(index))
        loss = tf.reduce_mean((tf.nn.tanh(tf.matmul(x, w)) + b - y) ** 2)
        optimizer = tf.train.AllReduceOptimizer(
            tf.train.AdamOptimizer(0.1), count, group_key=2 + sharded, bucket_bytes=20,
            sharded=sharded, communication_hint=hint)
        train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        hook = optimizer.make_session_run_hook(is_chief=index == 0)
        with tf.train.MonitoredTrainingSession(server.target, hooks=[hook]) as session:
            for _ in range(10):
                session.run(train)
            return [v.tolist() for v in session.run([w, b])]
mine = []
for sharded in (False, True):
    ours = learned("ring", sharded)
    assert not begun
    xla = learned("nccl", sharded)
    assert len(begun) >= 20, begun
    begun.clear()
    for a, b in zip(ours, xla, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    mine.append(xla)
print(json.dumps(mine))
"""


def test_training_learns_the_same():
    with Workers(3, _TRAINING) as workers:
        first, *others = workers.results()
    assert all(other == first for other in others)


_ORDER = """
# Two sums, which the two processes begin in opposite orders: each runs the second of its own only
# when the first one of the other has begun.
with tf.device(here):
    x = tf.placeholder(tf.float32, [1000])
    sums = [tf.collective.all_reduce(x, count, 1, k, communication_hint="nccl") for k in (1, 2)]
    begins = [tf.collective.all_reduce(1, count, 3, k, communication_hint="ring") for k in (1, 2)]
with tf.Session(server.target) as session:
    # The calls are made (and programs compiled) before.
    runs = [session.make_callable(s, feed_list=[x]) for s in sums]
    for k in (0, 1):
        runs[k](np.ones(1000, np.float32))
    got = {}
    for turn in range(20):
        def work(k):
            got[k] = float(runs[k](np.full(1000, 2 * turn + k, np.float32))[0])
        order = (0, 1) if index == 0 else (1, 0)
        threads = [threading.Thread(target=work, args=(k,)) for k in order]
        threads[0].start()
        session.run(begins[0])  # both have started their first one
        threads[1].start()
        for thread in threads:
            thread.join()
        assert got == {0: 4.0 * turn, 1: 4.0 * turn + 2.0}, got
print(json.dumps(len(begun)))
"""


def test_sums_begin_in_one_order():
    with Workers(2, _ORDER) as workers:
        assert workers.results() == [42, 42]


_DEATH = """
with tf.device(here):
    sums = tf.collective.all_reduce(
        tf.placeholder_with_default(np.ones(100_000, np.float32), [100_000]), count, 1, 1,
        communication_hint="nccl")
with tf.Session(server.target) as session:
    session.run(sums)
    print("begun", flush=True)
    import time
    try:
        while True:
            last = time.monotonic()
            session.run(sums)
    except tf.errors.FailedPreconditionError as error:
        took = time.monotonic() - last
        assert "/job:worker/replica:0/task:2" in error.message, error.message
        assert "from a checkpoint" in error.message
    try:
        session.run(sums)
    except tf.errors.FailedPreconditionError:
        pass
    print(json.dumps(took), flush=True)
import os
os._exit(0)  # the runtime would wait for the dead
"""


@pytest.mark.slow
def test_a_lost_member_is_an_error_within_seconds():
    with Workers(3, _DEATH, end="") as workers:
        for process in workers.processes:
            assert "begun\n" in iter(process.stdout.readline, "")  # gloo has words of its own
        workers.processes[2].send_signal(signal.SIGKILL)
        for process in workers.processes[:2]:
            words, errors = process.communicate(timeout=3 * PATIENCE)
            assert process.returncode == 0, errors[-3000:]
            assert json.loads(words) < 5.0
