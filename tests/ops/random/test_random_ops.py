"""Stateful random ops: streams that go on from run to run, alike compiled and interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import headrace as tf
import headrace.ops.array.shaping
import headrace.ops.math.binary
import headrace.random as random_namespace
from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.ops.core.build import constant, placeholder, raw
from headrace.ops.random import api, fixed, host, philox, truncated
from headrace.session.session import Session
from headrace.settings import flags
from headrace.step.request import PlanRequest

LOGITS = np.log(np.float32([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]))
SEEDS = {"seed": 11, "seed2": 5}


def _by_hand(blocks: int, draw: Callable[[Any], Any]) -> Any:
    """What two runs that move by so many blocks draw from a stream with the seeds above."""
    state = philox.initial_state(11, 5)
    after = philox.advance(state, blocks)
    return draw(state), draw(after)


OPS: dict[str, tuple[Callable[[], Any], Any]] = {
    "uniform": (
        lambda: raw.RandomUniform([3, 5], dtype=dtypes.float32, **SEEDS),
        _by_hand(philox.blocks_per_output(15), lambda s: fixed.uniform_np(s, (3, 5), np.float32)),
    ),
    "normal": (
        lambda: raw.RandomStandardNormal([3, 5], dtype=dtypes.float64, **SEEDS),
        _by_hand(philox.blocks_per_output(15), lambda s: fixed.normal_np(s, (3, 5), np.float64)),
    ),
    "truncated": (
        lambda: raw.TruncatedNormal([9], dtype=dtypes.float32, **SEEDS),
        _by_hand(
            philox.blocks_per_output(9), lambda s: truncated.truncated_normal_np(s, (9,), "f4")
        ),
    ),
    "integers": (
        lambda: raw.RandomUniformInt([7], np.int64(-3), np.int64(10**12), **SEEDS),
        _by_hand(
            philox.blocks_per_output(7), lambda s: fixed.uniform_int_np(s, (7,), -3, 10**12, "i8")
        ),
    ),
    "shuffle": (
        lambda: raw.RandomShuffle(np.arange(24).reshape(12, 2), **SEEDS),
        _by_hand(
            philox.blocks_of_shuffle(12),
            lambda s: np.arange(24).reshape(12, 2)[host.shuffle_permutation_np(s, 12)],
        ),
    ),
    "shuffle_one_row": (lambda: raw.RandomShuffle([[1.0, 2.0]], **SEEDS), ([[1, 2]], [[1, 2]])),
    "multinomial": (
        lambda: raw.Multinomial(LOGITS, 9, output_dtype=dtypes.int32, **SEEDS),
        _by_hand(
            philox.blocks_of_multinomial(2, 9),
            lambda s: host.multinomial_np(s, LOGITS, 9, np.int32),
        ),
    ),
    "gamma": (
        lambda: raw.RandomGamma([3], np.float32([0.5, 2.5]), **SEEDS),
        _by_hand(
            philox.blocks_per_output(6), lambda s: host.gamma_np(s, (3,), np.float32([0.5, 2.5]))
        ),
    ),
    "poisson": (
        lambda: raw.RandomPoissonV2([3], np.float32([0.5, 40]), dtype=dtypes.int64, **SEEDS),
        _by_hand(
            philox.blocks_per_output(6),
            lambda s: host.poisson_np(s, (3,), np.float32([0.5, 40]), np.int64),
        ),
    ),
    "old_poisson": (
        lambda: raw.RandomPoisson([4], np.float64(3.5), **SEEDS),
        _by_hand(
            philox.blocks_per_output(4), lambda s: host.poisson_np(s, (4,), np.float64(3.5), "f8")
        ),
    ),
    "bounded": (
        lambda: raw.ParameterizedTruncatedNormal(
            [2, 4], np.float32([0, 5]), np.float32(1), np.float32([-1, 4]), np.float32(7), **SEEDS
        ),
        _by_hand(
            philox.blocks_of_truncated(8, 2),
            lambda s: host.parameterized_truncated_normal_np(
                s, (2, 4), np.float32([0, 5]), 1, np.float32([-1, 4]), 7, np.float32
            ),
        ),
    ),
}


@pytest.mark.parametrize("mode", ["always", "never"])
@pytest.mark.parametrize("name", OPS)
def test_two_runs(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_INTERPRET", mode)
    build, expected = OPS[name]
    with Graph().as_default() as graph, Session(graph=graph) as session:
        tensor = build()
        for want in expected:
            got = session.run(tensor)
            assert got.dtype == tensor.dtype.np_dtype
            assert tensor.shape.is_compatible_with(got.shape)
            np.testing.assert_allclose(got, want, rtol=1e-14 if got.dtype == np.float64 else 0)


@pytest.mark.parametrize("groups", [0, 1, 2**32 - 1, 2**40 + 3])
@pytest.mark.parametrize("counter", [0, 2**32 - 1, 2**64 - 2, 2**128 - 1])
def test_advance_carries(groups: int, counter: int) -> None:
    state = np.frombuffer(bytes(range(8)) + counter.to_bytes(16, "little"), "<u4")
    got = jax.jit(lambda s: philox.advance_jax(s, groups))(state)
    np.testing.assert_array_equal(got, philox.advance(state, groups))


def test_sessions_repeat_with_seeds_and_differ_without() -> None:
    with Graph().as_default() as graph:
        seeded = api.random_uniform([4], seed=3)
        free = api.random_uniform([4])
        graph.seed = 8
        by_graph = [api.random_uniform([4]), api.random_uniform([4])]
        fetches = [seeded, free, *by_graph]
        first, second = (Session(graph=graph).run(fetches) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[2:], second[2:])
    assert not np.array_equal(first[2], first[3])


def test_empty_range_of_integers() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        low = placeholder(dtypes.int32, [])
        tensor = raw.RandomUniformInt([2], low, 5)
        assert session.run(tensor, {low: 4}).tolist() == [4, 4]
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="Need minval < maxval, got 9 >= 5"):
                session.run(tensor, {low: 9})
        assert session.run(raw.RandomUniformInt([0], 5, 5)).shape == (0,)


def test_bad_arguments() -> None:
    with Graph().as_default():
        with pytest.raises(ValueError, match="Must specify maxval for integer dtype int32"):
            api.random_uniform([2], dtype=dtypes.int32)
        with pytest.raises(ValueError, match="Invalid dtype int32"):
            api.random_normal([2], dtype=dtypes.int32)
        with pytest.raises(ValueError, match=r"seed must have shape \[2\]"):
            random_namespace.stateless_normal([2], [1, 2, 3])
        with pytest.raises(ValueError, match="logits must be rank 2"):
            api.multinomial([0.5, 0.5], 3)


def test_shapes_known_only_when_the_graph_runs() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        size = placeholder(dtypes.int32, [None])
        tensor = api.random_normal(size, seed=1)
        gamma = raw.RandomGamma(size, constant([0.5, 2.0]))
        assert session.run(tensor, {size: [2, 3]}).shape == (2, 3)
        assert session.run(tensor, {size: [4]}).shape == (4,)
        assert session.run(gamma, {size: [3]}).shape == (3, 2)


def test_names_and_static_shapes() -> None:
    with Graph().as_default():
        normal = api.random_normal([2, 3])
        assert normal.name == "random_normal:0"
        assert normal.shape.as_list() == [2, 3]
        assert api.truncated_normal([2], name="t").name == "t:0"
        integers = api.random_uniform([2], maxval=5, dtype=dtypes.int64)
        assert integers.name == "random_uniform:0"
        assert api.random_uniform([2], name="unit").name == "unit:0"
        assert api.random_poisson([1.0, 2.0], [3]).shape.as_list() == [3, 2]
        assert api.multinomial(LOGITS, 4).name == "multinomial/Multinomial:0"


def test_stateless_numbers_depend_on_the_seed_alone() -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        seed = placeholder(dtypes.int64, [2])
        fetches = [
            random_namespace.stateless_uniform([3], seed, -1.0, 1.0),
            random_namespace.stateless_uniform([3], seed, 0, 100, dtypes.int32),
            random_namespace.stateless_truncated_normal([3], seed),
            random_namespace.stateless_categorical(LOGITS, 5, seed),
        ]
        runs = [session.run(fetches, {seed: s}) for s in ([1, 2], [1, 2], [2, 2])]
    for same, again, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(same, again)
        assert not np.array_equal(same, other)


@pytest.mark.parametrize("draw", ["random_normal", "truncated_normal"])
def test_many_numbers_are_drawn_outside_of_programs(draw, monkeypatch):
    """By all cores, where a program has one: the same numbers, in each run."""
    numbers = getattr(tf, draw)([1 << 17], seed=5)
    total = tf.reduce_sum(numbers * 2.0)
    with tf.Session() as session:
        plan = session._engine.plan(PlanRequest([total]))
        assert [unit.node.type for unit in plan._schedule.units if unit.node is not None] == [
            {"random_normal": "RandomStandardNormal"}.get(draw, "TruncatedNormal")
        ]
        drawn = [session.run([numbers, total]) for _ in range(3)]
    monkeypatch.setattr(flags, "interpret", "never")
    with tf.Session() as session:
        for once in drawn:
            again = session.run([numbers, total])
            np.testing.assert_array_equal(again[0], once[0])
            np.testing.assert_allclose(again[1], once[1], rtol=1e-3)
