"""The rule of synchronous replicas: on random schedules nobody waits for ever."""

from __future__ import annotations

import random

import pytest
from simulated_replicas import World

from headrace.ops.io.replica_rules import BarrierRules, LiveReplica


def shape_of(seed: int) -> tuple[int, int, int]:
    """Needed and total replicas, and the tokens of the beginning."""
    rng = random.Random(seed)
    total, needed = rng.randrange(1, 6), rng.randrange(1, 8)
    least = max(0, needed - total)
    return needed, total, rng.choice((least, needed, least + 1))


@pytest.mark.parametrize("block", range(20))
def test_no_schedule_of_replicas_that_live_stops(block: int) -> None:
    """Nobody dies: each ends after another number of batches."""
    for seed in range(block * 100, block * 100 + 100):
        needed, total, tokens = shape_of(seed)
        rng = random.Random(seed)
        world = World(seed, needed, total, [rng.randrange(1, 7) for _ in range(total)], tokens)
        world.run()
        assert world.updates or tokens


@pytest.mark.parametrize("block", range(20))
def test_no_schedule_with_deaths_and_late_ones_stops(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        needed, total, tokens = shape_of(seed)
        rng = random.Random(seed)
        world = World(seed, needed, total, [rng.randrange(1, 9) for _ in range(total)], tokens)
        world.run(kill=0.01, join=0.01)


@pytest.mark.parametrize("block", range(20))
def test_no_schedule_with_lost_servers_stops(block: int) -> None:
    """What an accumulator has lost is computed again, also by who waits for a token elsewhere."""
    for seed in range(block * 100, block * 100 + 100):
        needed, total, tokens = shape_of(seed)
        rng = random.Random(seed)
        world = World(seed, needed, total, [rng.randrange(1, 9) for _ in range(total)], tokens)
        world.run(kill=0.005, join=0.02, lose=0.02)


def test_memory_is_bounded() -> None:
    """However many steps: tokens do not pile up, and neither do arrivals."""
    world = World(3, 4, 6, [300] * 6, 4)
    world.run(kill=0.0005, join=0.0005)
    assert world.most_tokens <= 4 * 6
    assert world.rules.arrived <= 6


@pytest.mark.parametrize(("needed", "total"), [(1000, 1000), (950, 1000), (1500, 1000)])
def test_a_thousand_replicas(needed: int, total: int) -> None:
    world = World(5, needed, total, [2] * total, max(0, needed - total), accumulators=1)
    world.run(kill=0.0002)
    assert world.most_tokens <= 2 * max(needed, total)


def barrier(needed: int, total: int, there: int) -> BarrierRules:
    """A barrier with replicas 0 (the chief), 1, 2 ..."""
    rules = BarrierRules(needed, total)
    for i in range(there):
        rules.join(i, LiveReplica(f"worker {i}", i == 0))
    return rules


@pytest.mark.parametrize(
    ("needed", "total", "tokens"), [(2, 2, 2), (2, 3, 3), (4, 2, 4), (1, 1, 1), (3, 5, 5)]
)
def test_with_all_there_the_numbers_are_the_published_ones(needed, total, tokens):
    rules = barrier(needed, total, total)
    assert rules.tokens_to_begin() == -1
    for step in range(3):
        rules.begin_to_wait(0)
        for _ in range(needed - 1):
            rules.arrive(0, step)
            assert not rules.is_ready(0)
        rules.arrive(0, step)
        assert rules.is_ready(0)
        assert not rules.is_ready(1) or total == 1
        assert rules.begin_round(0) == needed
        assert rules.end_round() == tokens
        assert rules.step == step + 1


def test_without_any_hook_the_numbers_are_the_published_ones() -> None:
    rules = BarrierRules(2, 3)
    rules.arrive(0, 0)
    assert not rules.is_ready("nobody")
    rules.arrive(0, 0)
    assert rules.is_ready("nobody")
    assert (rules.begin_round("nobody"), rules.end_round()) == (2, 3)


def test_who_has_never_come_is_waited_for_and_who_has_left_is_not() -> None:
    rules = barrier(3, 3, 2)
    rules.arrive(0, 0)
    rules.arrive(0, 0)
    assert (rules.live, rules.awaited, rules.is_ready(0)) == (3, 1, False)
    rules.leave(1)
    assert (rules.live, rules.needs, rules.is_ready(0)) == (2, 2, True)


def test_stale_gradients_do_not_count() -> None:
    rules = barrier(2, 2, 2)
    rules.set_step(7)
    assert not rules.arrive(0, 6)
    assert rules.arrive(0, 7)
    assert rules.arrive(0, 8)  # after a step back, as published: only earlier ones are stale
    assert rules.is_ready(0)


def test_backups_get_tokens_and_are_not_waited_for() -> None:
    rules = barrier(4, 6, 6)
    for _ in range(4):
        rules.arrive(0, 0)
    assert rules.is_ready(0)
    assert (rules.begin_round(0), rules.end_round()) == (4, 6)
    assert not rules.arrive(0, 0)
    rules.leave(5)
    assert rules.needs == 4
    rules.leave(4)
    rules.leave(3)
    assert rules.needs == 3


def test_the_chief_leads_while_it_is_there() -> None:
    rules = BarrierRules(1, 3)
    rules.join("a", LiveReplica("a", False))
    assert rules.leader is None  # nobody begins before the first chief
    rules.join("chief", LiveReplica("chief", True))
    assert rules.leads("chief")
    rules.leave("chief")
    assert rules.leads("a")
    assert rules.tokens_to_begin() == -1
    rules.begin_to_wait("a")
    rules.arrive(0, 0)
    rules.begin_round("a")
    rules.join("again", LiveReplica("again", True))
    assert not rules.leads("again")  # not in the middle of an update
    rules.end_round()
    rules.begin_to_wait("a")
    assert rules.leads("again")
    assert rules.tokens_to_begin() == 0


def test_the_next_leader_gives_out_the_tokens_that_the_last_one_owed() -> None:
    rules = barrier(3, 3, 3)
    rules.tokens_to_begin()
    rules.begin_to_wait(0)
    for _ in range(3):
        rules.arrive(0, 0)
    rules.begin_round(0)
    rules.leave(0)
    assert rules.leads(1)
    assert rules.tokens_to_begin() == 2
    rules.set_step(0)  # the update did not happen
    assert [rules.arrive(key, 0) for key in (1, 2, 1, 2)] == [False, False, True, True]
    assert rules.is_ready(1)


def test_a_leader_that_dies_before_the_first_tokens_leaves_them_to_the_next() -> None:
    rules = barrier(3, 1, 2)
    assert rules.tokens_to_begin() == -1
    rules.leave(0)
    assert rules.tokens_to_begin() == -1


def test_a_step_of_which_an_accumulator_has_lost_gradients_is_made_again() -> None:
    rules = barrier(2, 2, 2)
    rules.lose(3)  # at the beginning all are new
    rules.set_step(0)
    assert rules.tokens_to_begin() == -1
    rules.begin_to_wait(0)
    assert rules.arrive(1, 0)
    rules.lose(0)
    assert (rules.arrived, rules.tokens_to_begin()) == (1, 0)
    rules.lose(1)
    assert (rules.arrived, rules.tokens_to_begin()) == (0, 4)
    assert [rules.arrive(key, 0) for key in (0, 1, 0, 1)] == [False, False, True, True]
    assert rules.is_ready(0)


def test_a_leader_that_resigns_keeps_nobody_waiting() -> None:
    rules = barrier(2, 2, 2)
    rules.begin_to_lead(0)
    rules.resign(1)
    assert rules.busy == 0
    rules.resign(0)
    assert (rules.busy, rules.tokens_to_begin()) == (None, 4 - 2)
