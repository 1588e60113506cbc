"""Freed memory stays with the process, and the user can have it otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import headrace as tf
from headrace.executor import memory
from headrace.settings import flags


@pytest.fixture
def undecided(monkeypatch):
    """As if no session had been made, in a process that sets nothing; counts calls of mallopt."""
    calls = []

    class Library:
        @staticmethod
        def mallopt(parameter, value):
            calls.append((parameter, value))
            return 1

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Library)
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(flags, "keep_memory", True)
    for name in ("GLIBC_TUNABLES", *memory._OVERRIDES):
        monkeypatch.delenv(name, raising=False)
    return calls


decide = memory.keep_freed_memory.__wrapped__


def test_malloc_is_told_three_things(undecided):
    assert decide()
    kept = memory.KEPT_BYTES
    assert undecided == [(-3, kept), (-1, kept), (-2, memory.RESERVED_BYTES)]


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, "1") for n in memory._OVERRIDES] + [("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")],
)
def test_settings_of_the_user_stand(undecided, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert not decide()
    assert undecided == []


def test_the_flag_turns_it_off(undecided, monkeypatch):
    monkeypatch.setattr(flags, "keep_memory", False)
    assert not decide()
    assert undecided == []


def test_other_systems_and_libraries_are_left_alone(undecided, monkeypatch):
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert not decide()
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert not decide()


def _graph(rows: int | None) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        tf.abs(tf.placeholder(tf.float32, [rows, 1024]))
        tf.constant("no number")
    return graph


@pytest.mark.parametrize(
    ("rows", "is_large"), [(100, False), (4095, False), (4096, True), (None, False), (0, False)]
)
def test_graphs_of_large_tensors_have_one_heap(undecided, monkeypatch, rows, is_large):
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert memory.share_one_heap(_graph(rows)) is is_large
    assert undecided == [(-8, 1)] * is_large


def test_the_users_number_of_heaps_stands(undecided, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not memory.share_one_heap(_graph(8192))
    monkeypatch.delenv("MALLOC_ARENA_MAX")
    monkeypatch.setattr(flags, "keep_memory", False)
    assert not memory.share_one_heap(_graph(8192))
    assert undecided == []


_LARGE_STEPS = """
import resource, statistics
import numpy as np
import headrace as tf

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def steps(rows, columns):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones([rows, columns], "f"))
        y = tf.abs(v)
        session.run(v.initializer)
        counts = []
        for _ in range(100):
            before = faults()
            assert session.run(y)[0, 0] == 1.0
            counts.append(faults() - before)
    return statistics.median(counts[-50:])

print(max(steps(64, 256), steps(2048, 2048), steps(2048, 2048)))
"""

_SESSION_FIRST = """
import resource, statistics
import numpy as np
import headrace as tf

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

session = tf.InteractiveSession()
v = tf.Variable(np.ones([4500, 4096], "f"))
x = tf.constant(np.ones([16, 4500], "f"))
train = tf.train.GradientDescentOptimizer(1e-9).minimize(tf.nn.l2_loss(tf.matmul(x, v)))
session.run(tf.global_variables_initializer())
counts = []
for _ in range(40):
    before = faults()
    session.run(train)
    assert 0.9 < session.run(v[0, 0]) <= 1.0
    counts.append(faults() - before)
print(statistics.median(counts[-20:]))
"""


@pytest.mark.skipif(not memory.keep_freed_memory(), reason="malloc is another one, or set already")
@pytest.mark.parametrize(
    "program",
    [
        # Without a reserve it was 4,096 for ever in every other run: the threads of the small
        # graph's session have heaps of their own.
        pytest.param(_LARGE_STEPS, id="large results"),
        # A gradient of 74 MB is more than a heap of a thread holds: 18,000 pages in each step
        # where XLA's threads start with the session, before it has a graph.
        pytest.param(_SESSION_FIRST, id="scratch memory"),
    ],
)
def test_steps_on_large_arrays_take_no_page_faults(program):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", program], env=clean, capture_output=True, text=True, check=True
    )
    # Heaps grow at first.
    assert float(run.stdout.split()[-1]) < 100
