"""A variable that several operations read is updated where it lies, not copied first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executor.last_reads import LastReads
from headrace.executor.program import Program
from headrace.settings import flags

SIZE = 520
OPTIMIZERS: dict[str, Callable[[], tf.train.Optimizer]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(1e-5),
    "momentum": lambda: tf.train.MomentumOptimizer(1e-5, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(1e-4),
}


def _plain(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    hidden = tf.nn.relu(tf.matmul(x, first))
    return tf.nn.l2_loss(tf.matmul(hidden, second) - x)


def _decayed(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    return _plain(x, first, second) + 0.1 * (tf.nn.l2_loss(first) + tf.nn.l2_loss(second))


def _shared(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    return _plain(tf.tanh(tf.matmul(x, first)), first, second)


def _turned(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    return _plain(x, tf.transpose(first), tf.reshape(second, [SIZE, SIZE]))


def _repeated(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    x = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, tf.sin(s @ first)), [0, x])[1]
    return _plain(x, first, second)


def _bounded(x: tf.Tensor, first: tf.Variable, second: tf.Variable) -> tf.Tensor:
    return _plain(x, tf.clip_by_norm(first, 10.0), second)


MODELS = {
    "plain": _plain,
    "decayed": _decayed,
    "shared": _shared,
    "turned": _turned,
    "bounded": _bounded,
    "repeated": _repeated,
}


def _run(model: str, optimizer: str, interpret: str, monkeypatch: Any) -> list[np.ndarray]:
    """Both matrices after some steps."""
    monkeypatch.setattr(flags, "interpret", interpret)
    rng = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(rng.standard_normal((4, SIZE)), tf.float32)
        scale = 1 / np.sqrt(SIZE)
        first, second = (
            tf.Variable(tf.constant(scale * rng.standard_normal((SIZE, SIZE)), tf.float32))
            for _ in range(2)
        )
        train = OPTIMIZERS[optimizer]().minimize(MODELS[model](x, first, second))
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(train)
        return list(session.run([first, second]))


@pytest.fixture
def copied(monkeypatch) -> list[list[str]]:
    """For each program that is compiled, its copies of such matrices."""
    found: list[list[str]] = []
    compiled = Program._compiled

    def noted(program: Program, args: Any) -> Any:
        made = compiled(program, args)
        found.append(re.findall(rf"f32\[{SIZE},{SIZE}\]\S* copy\(", made.as_text()))
        return made

    monkeypatch.setattr(Program, "_compiled", noted)
    monkeypatch.setattr(flags, "native", "")  # it takes a matrix as it lies: a turned one is a copy
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_what_reads_a_variable_sees_it_as_it_was(model, optimizer, copied, monkeypatch) -> None:
    got = _run(model, optimizer, "never", monkeypatch)
    expected = _run(model, optimizer, "always", monkeypatch)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, 2e-4, 1e-5)
    # The last program has the updates; one with a loop has copies to keep what goes round in it.
    assert not copied[-1] or model == "repeated"


def test_without_the_barrier_xla_copies(copied, monkeypatch) -> None:
    """When this fails, XLA knows by itself, and `last_reads` may go."""
    monkeypatch.setattr(LastReads, "before_change", lambda *_: None)
    _run("plain", "sgd", "never", monkeypatch)
    assert copied[-1]
