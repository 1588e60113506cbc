"""The state machine of a group: results, orders, losses, memory; thousands of random schedules."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from simulated_group import Simulation, call, name_of

from headrace import errors
from headrace.distributed.collective import exchange, routes
from headrace.graph import dtypes
from headrace.ops.collective.calls import Call


def _value(number: int, instance: int, sequence: int, count: int) -> np.ndarray:
    rng = np.random.default_rng([number, instance, sequence])
    return rng.integers(-8, 8, count).astype(np.float32) + np.float32(2.0**-number)


def _reducing(size: int, count: int):
    """What each task sums."""

    def make(number: int, instance: int, sequence: int) -> Call:
        return call("reduce", size, instance, _value(number, instance, sequence, count))

    return make


def _giving(kind: str, size: int, value):
    """What each task gives: ``value``, or what that is for its number and run."""

    def make(number: int, instance: int, sequence: int) -> Call:
        given = value(number, sequence) if callable(value) else value
        return call(kind, size, instance, given)

    return make


def _sending(size: int, senders: Sequence[int]):
    """What each task gives to a broadcast."""

    def make(number: int, instance: int, sequence: int) -> Call:
        given = np.int64([sequence, 7]) if number in senders else None
        return call("broadcast", size, instance, given, shape=(2,), dtype=dtypes.int64)

    return make


@pytest.fixture
def small_pieces(monkeypatch):
    """Rings of several pieces for tensors of a few elements."""
    monkeypatch.setattr(exchange, "TREE_BYTES", 32)
    monkeypatch.setattr(routes, "SEGMENT_BYTES", 16)


def _check_reduced(sim: Simulation, count: int) -> None:
    living = [n for n in sim.nodes if n.alive]
    for run in living[0].done:
        results = [n.done[run] for n in living]
        assert all(w.error is None for w in results), results[0].error
        assert len({w.result.tobytes() for w in results}) == 1
        # Each adds its own power of two: the fraction tells who took part.
        if count:
            own = sum(_value(n.number, *run, count) for n in living)
            gone = [n.number for n in sim.nodes if not n.alive]
            sums = [own]
            for number in gone:
                sums += [s + _value(number, *run, count) for s in sums]
            assert any(np.array_equal(results[0].result, s) for s in sums)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("count", [0, 1, 5, 8, 9, 37])
def test_sums_in_any_order(small_pieces, size, count):
    for seed in range(6):
        sim = Simulation(size, seed, _reducing(size, count), instances=(1, 2))
        sim.run()
        assert sim.is_over
        _check_reduced(sim, count)


def _storm(size: int, seed: int, count: int, deaths: int, cuts: int) -> Simulation:
    sim = Simulation(size, seed, _reducing(size, count), instances=(1, 2), runs=4)
    rng = random.Random(seed + 1)
    plan = {rng.randrange(30 * size): "kill" for _ in range(deaths)}
    plan |= {rng.randrange(30 * size): "cut" for _ in range(cuts)}

    def faults(number):
        # Before a group is there, its members are awaited.
        what = plan.get(number)
        if what is None:
            return
        if not all(n.group.is_formed for n in sim.nodes if n.alive):
            plan[number + 1] = what
        elif what == "kill":
            living = [n for n in sim.nodes if n.alive]
            if len(living) > 1:
                sim.kill(rng.choice(living))
        else:
            one, other = rng.sample(sim.nodes, 2)
            if one.alive and other.alive:
                sim.cut(one.name, other.name)

    sim.run(faults)
    return sim


@pytest.mark.parametrize("size", [2, 3, 4, 6])
@pytest.mark.parametrize("count", [3, 21])
def test_losses_and_deaths(small_pieces, size, count):
    for seed in range(40):
        sim = _storm(size, seed, count, deaths=seed % size, cuts=seed % 4)
        assert sim.is_over, (size, count, seed)
        _check_reduced(sim, count)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_thousands_of_schedules(small_pieces, size):
    for seed in range(1000, 2500):
        sim = _storm(size, seed, 3 + seed % 20, deaths=seed % size, cuts=seed % 5)
        assert sim.is_over, (size, seed)
        _check_reduced(sim, 3 + seed % 20)


@pytest.mark.slow
def test_a_thousand_members():
    size = 1000
    sim = Simulation(size, 0, _giving("reduce", size, lambda n, s: np.int32([1, n])), runs=2)
    sim.run(most=10_000_000)
    assert sim.is_over
    total = np.int32([size, size * (size - 1) // 2])
    for node in sim.nodes:
        np.testing.assert_array_equal(node.done[1, 2].result, total)
    # A member waits for ten others at most, of this run and the next.
    assert sim.most_early <= 20


@pytest.mark.slow
@pytest.mark.timeout(300)  # a minute and a half alone
def test_a_thousand_members_lose_some():
    size = 1000
    sim = Simulation(size, 0, _giving("reduce", size, np.int32([1])), runs=2)
    gone = iter([7, 500, 999])

    def faults(number):
        if number in (4000, 5000, 6000):
            sim.kill(sim.nodes[next(gone)])

    sim.run(faults, most=10_000_000)
    assert sim.is_over
    assert {int(n.done[1, 2].result[0]) for n in sim.nodes if n.alive} == {997}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_gather(size):
    for seed in range(5):
        sim = Simulation(size, seed, _giving("gather", size, lambda n, s: np.full((n, 2), n * s)))
        sim.run()
        expected = np.repeat(np.arange(size), np.arange(size))[:, None] * np.ones((1, 2), int)
        for node in sim.nodes:
            np.testing.assert_array_equal(node.done[1, 1].result, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_scatter(small_pieces, size):
    for seed in range(5):
        value = np.arange(size * 14.0).reshape(size * 2, 7)
        sim = Simulation(size, seed, _giving("scatter", size, value))
        sim.run()
        got = np.concatenate([n.done[1, 3].result for n in sim.nodes])
        np.testing.assert_array_equal(got, size * value)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_broadcast_from_anyone(size):
    for sender in range(size):
        sim = Simulation(size, sender, _sending(size, [sender]))
        sim.run()
        for node in sim.nodes:
            np.testing.assert_array_equal(node.done[1, 3].result, [3, 7])


@pytest.mark.parametrize(("senders", "error"), [((0, 2), "several"), ((), "Nobody sends")])
def test_a_broadcast_has_one_sender(senders, error):
    sim = Simulation(3, 0, _sending(3, senders), runs=1)
    sim.run()
    for node in sim.nodes:
        assert error in node.done[1, 1].error.message


def test_the_lost_sender_of_a_broadcast():
    sim = Simulation(3, 0, _sending(3, [1]), runs=1)
    while not all(n.group.is_formed for n in sim.nodes):
        sim.step()
    sim.kill(sim.nodes[1])
    sim.run()
    for node in (sim.nodes[0], sim.nodes[2]):
        assert isinstance(node.done[1, 1].error, errors.FailedPreconditionError)


def test_parts_of_a_sum_are_not_repeated_by_fewer():
    sim = Simulation(3, 0, _giving("scatter", 3, np.ones((6, 5))), runs=2)
    while not all(n.group.is_formed for n in sim.nodes):
        sim.step()
    sim.kill(sim.nodes[2])
    sim.run()
    assert sim.is_over
    for node in sim.nodes[:2]:
        error = node.done[1, 2].error
        assert isinstance(error, errors.FailedPreconditionError)
        assert name_of(2) in error.message
        assert "from a checkpoint" in error.message


def test_members_that_differ():
    make = _giving("reduce", 3, lambda n, s: np.ones(2 + (n == 1), np.float32))
    for seed in range(10):
        sim = Simulation(3, seed, make, runs=1)
        sim.run()
        for node in sim.nodes:
            message = node.done[1, 1].error.message
            assert "float32[2]" in message
            assert "float32[3]" in message
            assert "'op1'" in message


def test_more_members_than_there_are_to_be():
    make = _giving("reduce", 2, np.ones(2))
    sim = Simulation(2, 0, make)
    late = Simulation(3, 0, make).nodes[2].group
    sim.run()
    (refusal,) = sim.nodes[0].group.received(name_of(2), late.announce()[0].message)
    assert refusal.task == name_of(2)
    late.received(name_of(0), refusal.message)
    assert isinstance(late.refused, errors.InvalidArgumentError | errors.FailedPreconditionError)
    work, _ = late.begin(make(2, 1, 1), 0.0)
    assert work.error is late.refused


def test_results_are_kept_once():
    sim = Simulation(2, 0, _giving("reduce", 2, np.ones(100_000)), runs=10)
    sim.run()
    for node in sim.nodes:
        assert len(node.group._kept) == 1
        assert not node.group.open
        assert not node.group._early
