"""Branches in branches, deeper than Python's stack is by itself."""

from __future__ import annotations

import sys
import threading

import pytest

import headrace as tf
from headrace.graph.recursion import MOST_LEVELS, levels_of, room_for
from headrace.settings import flags


def _nest(levels: int, deeper: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    if levels == 0:
        return x * 3.0
    return tf.cond(deeper, lambda: _nest(levels - 1, deeper, x) + 1.0, lambda: x * 1.0)


@pytest.mark.parametrize("levels", [150, pytest.param(MOST_LEVELS, marks=pytest.mark.slow)])
def test_so_many_levels_of_branches_run(levels) -> None:
    limit = sys.getrecursionlimit()
    deeper, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    y = _nest(levels, deeper, x)
    assert levels_of(tf.get_default_graph()) == levels
    with tf.Session() as session:
        for _ in range(3):
            assert session.run(y, {deeper: True, x: 2.0}) == levels + 6.0
            assert session.run(y, {deeper: False, x: 2.0}) == 2.0
    assert sys.getrecursionlimit() == limit


def test_gradients_of_deep_branches() -> None:
    deeper, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    slope = tf.gradients(_nest(20, deeper, x), x)
    with tf.Session() as session:
        assert session.run(slope, {deeper: True, x: 2.0}) == [3.0]
        assert session.run(slope, {deeper: False, x: 2.0}) == [1.0]


@pytest.mark.parametrize("kind", ["branches", "loops"])
def test_tracing_takes_time_in_proportion_to_the_levels(kind, monkeypatch) -> None:
    """Each level once traced its inside twice: 2 ** levels times in all."""
    traced = []

    def leaf(x: tf.Tensor) -> tf.Tensor:
        return tf.custom_gradient(lambda v: (v + 1.0, lambda g: g))(x)

    def loops(levels: int, x: tf.Tensor) -> tf.Tensor:
        if levels == 0:
            return leaf(x)
        return tf.while_loop(
            lambda i, _: i < 2, lambda i, v: (i + 1, loops(levels - 1, v)), (0, x)
        )[1]

    def branches(levels: int, x: tf.Tensor) -> tf.Tensor:
        if levels == 0:
            return leaf(x)
        return tf.cond(x > 0, lambda: branches(levels - 1, x), lambda: x)

    from headrace.executor.evaluate import Tracing

    evaluate = Tracing.evaluate
    monkeypatch.setattr(
        Tracing,
        "evaluate",
        lambda self, node, args: (traced.append(node.type), evaluate(self, node, args))[1],
    )
    monkeypatch.setattr(flags, "interpret", "never")
    x = tf.placeholder(tf.float32, ())
    y = {"branches": branches, "loops": loops}[kind](8, x)
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == (2.0 if kind == "branches" else 257.0)
    assert len(traced) < 800


def test_the_limit_is_the_programs_again_when_the_last_user_has_left() -> None:
    limit = sys.getrecursionlimit()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with room_for(100):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(30)
    with room_for(200):
        assert sys.getrecursionlimit() >= limit + 200
    assert sys.getrecursionlimit() > limit
    leave.set()
    thread.join()
    assert sys.getrecursionlimit() == limit
    with room_for(1):
        assert sys.getrecursionlimit() == limit
