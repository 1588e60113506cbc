"""Programs that another thread compiles while their steps are interpreted."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from jax import monitoring

import headrace as tf
from headrace.executor import beside, policy
from headrace.executor.policy import runs_before_compiling
from headrace.executor.program import Program
from headrace.settings import flags

_EVENT = "/jax/core/compile/backend_compile_duration"
_LAYERS = 24


def _network() -> tuple[Any, Any, Any]:
    """What is fed, the loss and a step of training; it takes about a second to compile."""
    x = tf.placeholder(tf.float32, [4, 16])
    y = x
    for number in range(_LAYERS):
        w = tf.get_variable(f"w{number}", [16, 16], initializer=tf.orthogonal_initializer(seed=1))
        y = tf.tanh(tf.matmul(y, w))
    loss = tf.reduce_mean(tf.square(tf.nn.dropout(y, rate=0.1, seed=3) - 0.5))
    return x, loss, tf.train.AdamOptimizer(0.01).minimize(loss)


def _region(session: Any, fetches: list[Any], feeds: list[Any]) -> Any:
    units = session._compile(fetches, feeds).plan.units
    return max((u.region for u in units if u.region is not None), key=lambda r: len(r.nodes))


class _Steps:
    """A session that trains; which steps were interpreted, and which thread compiled."""

    def __init__(self) -> None:
        self.x, self.loss, self.train = _network()
        self.session = tf.Session()
        self.session.run(tf.global_variables_initializer())
        self.fetches = [self.loss, self.train]
        self.region = _region(self.session, self.fetches, [self.x])
        runs = runs_before_compiling(self.region.nodes, self.region.outputs)
        assert runs.meanwhile > 0
        self.interpreted = 1 + runs.meanwhile

    def run(self, count: int, **options: Any) -> list[float]:
        feed = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
        return [
            float(self.session.run(self.fetches, {self.x: feed}, **options)[0])
            for _ in range(count)
        ]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Programs that take half a second to compile are large enough here."""
    monkeypatch.setattr(policy, "_PATIENCE", 0.5)


@pytest.fixture
def compiled():
    """The threads that compiled something, one entry for each program."""
    found: list[int] = []

    def heard(event: str, duration: float, **_: Any) -> None:
        if event == _EVENT:
            found.append(threading.get_ident())

    monitoring.register_event_duration_secs_listener(heard)
    yield found
    monitoring.unregister_event_duration_listener(heard)


@pytest.fixture
def calls(monkeypatch):
    """The programs that were called, one entry for each call."""
    found: list[Program] = []
    call = Program.call

    def counted(self, args, *token):
        found.append(self)
        return call(self, args, *token)

    monkeypatch.setattr(Program, "call", counted)
    return found


def test_steps_are_interpreted_until_the_program_is_taken(monkeypatch, compiled, calls):
    began, compile_ = threading.Event(), Program.compile

    def begins(self, args, beside=False):
        began.set()
        compile_(self, args, beside)

    monkeypatch.setattr(Program, "compile", begins)
    steps = _Steps()
    compiled.clear()
    calls.clear()
    steps.run(steps.interpreted)
    assert not calls
    assert began.wait(60)  # else the step would do it itself
    steps.run(3)
    assert calls
    assert {len(c.region.nodes) for c in calls} == {len(steps.region.nodes)}
    assert compiled
    assert threading.get_ident() not in compiled  # no step has waited for more than the thread


def test_runs_repeat_to_the_last_bit():
    found = []
    for _ in range(2):
        with tf.Graph().as_default():
            steps = _Steps()
            found.append(steps.run(steps.interpreted + 5))
    assert found[0] == found[1]


def test_what_is_taken_goes_on_where_interpreting_ended(monkeypatch):
    losses = {}
    for way in ("auto", "never", "always"):
        monkeypatch.setattr(flags, "interpret", "auto")
        with tf.Graph().as_default():
            steps = _Steps()
            monkeypatch.setattr(flags, "interpret", way)
            losses[way] = steps.run(steps.interpreted + 5)
    np.testing.assert_allclose(losses["auto"], losses["never"], 1e-3)
    np.testing.assert_allclose(losses["auto"], losses["always"], 1e-3)


def test_a_step_compiles_itself_where_the_thread_has_not_begun(compiled, calls):
    steps = _Steps()
    compiled.clear()
    calls.clear()
    with beside._one:  # another program is being compiled
        steps.run(steps.interpreted + 2)
        assert calls
        assert set(compiled) == {threading.get_ident()}


def test_what_the_thread_cannot_compile_the_step_does(monkeypatch, compiled, calls):
    compile_ = Program.compile

    def fails(self, args, beside=False):
        if beside:
            raise RuntimeError("out of memory")
        compile_(self, args)

    monkeypatch.setattr(Program, "compile", fails)
    steps = _Steps()
    compiled.clear()
    calls.clear()
    steps.run(steps.interpreted + 2)
    assert calls
    assert set(compiled) == {threading.get_ident()}


def test_who_waits_for_the_thread_leaves_at_the_deadline(monkeypatch):
    goes_on, compile_ = threading.Event(), Program.compile

    def waits(self, args, beside=False):
        assert goes_on.wait(60)
        compile_(self, args, beside)

    monkeypatch.setattr(Program, "compile", waits)
    steps = _Steps()
    steps.run(steps.interpreted)
    before = steps.session.run(tf.trainable_variables())
    with pytest.raises(tf.errors.DeadlineExceededError):
        steps.run(1, options=tf.RunOptions(timeout_in_ms=200))
    goes_on.set()
    for old, new in zip(before, steps.session.run(tf.trainable_variables()), strict=True):
        np.testing.assert_array_equal(old, new)
    assert len(steps.run(2)) == 2


def test_a_session_may_close_meanwhile(monkeypatch):
    goes_on, began, ended = threading.Event(), threading.Event(), threading.Event()
    compile_ = Program.compile

    def waits(self, args, beside=False):
        began.set()
        assert goes_on.wait(60)
        compile_(self, args, beside)
        ended.set()

    monkeypatch.setattr(Program, "compile", waits)
    steps = _Steps()
    steps.run(steps.interpreted)
    steps.session.close()
    assert began.wait(60)
    goes_on.set()
    assert ended.wait(60)


def test_other_sizes_meanwhile_are_interpreted(monkeypatch, calls):
    x = tf.placeholder(tf.float32, [None, 16])
    y = x
    for _ in range(2 * _LAYERS):
        y = tf.nn.softmax(tf.matmul(y, tf.constant(np.eye(16, dtype=np.float32))))
    goes_on, compile_ = threading.Event(), Program.compile

    def waits(self, args, beside=False):
        assert goes_on.wait(60)
        compile_(self, args, beside)

    monkeypatch.setattr(Program, "compile", waits)
    with tf.Session() as session:
        region = _region(session, [y], [x])
        runs = runs_before_compiling(region.nodes, region.outputs)
        assert runs.meanwhile
        session.run(y, {x: np.ones([8, 16])})
        expected = session.run(y, {x: np.ones([8, 16])})
        np.testing.assert_allclose(session.run(y, {x: np.ones([3, 16])}), expected[:3], 1e-5)
        assert not calls
        goes_on.set()
        for _ in range(runs.meanwhile + 1):
            last = session.run(y, {x: np.ones([8, 16])})
        assert calls
        np.testing.assert_allclose(last, expected, 1e-5)


_ENDS_EARLY = """
import numpy as np
import headrace as tf
x = tf.placeholder(tf.float32, [4, 16])
y = x
for number in range(200):
    y = tf.tanh(tf.matmul(y, tf.get_variable(f"w{number}", [16, 16])))
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        session.run(train, {x: np.ones([4, 16])})
print("done")
"""


@pytest.mark.process
def test_a_program_ends_while_the_thread_compiles():
    done = subprocess.run(
        [sys.executable, "-c", _ENDS_EARLY], capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert not done.stderr
