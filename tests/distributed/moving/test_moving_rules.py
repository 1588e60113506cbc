"""A move over random schedules: nothing acknowledged is lost, and no two servers take updates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest
from random_schedules import run_schedules
from simulated_move import SimulatedMove

from headrace.distributed.moving.rules import Giver, Taker

ONE, TWO = ("worker0", 1), ("worker1", 2)


def _run(seeds: Iterable[int]) -> list[SimulatedMove]:
    return run_schedules(SimulatedMove, seeds, steps=600)


def _run_with_copies(seeds: Iterable[int]) -> list[SimulatedMove]:
    return run_schedules(partial(SimulatedMove, copies=True), seeds, steps=600)


def test_with_copies_nothing_is_lost_at_all_over_a_thousand_schedules() -> None:
    found = _run_with_copies(range(1000))
    assert sum(m.moves for m in found) > 1000
    assert sum(m.promotions for m in found) > 500
    assert sum(m.settled for m in found) > 150
    assert sum(m.losses for m in found) == 0
    assert sum(len(m.acknowledged) for m in found) > 10_000


@pytest.mark.slow
def test_with_copies_nothing_is_lost_at_all_over_a_hundred_thousand_schedules() -> None:
    for begin in range(1000, 101_000, 1000):
        _run_with_copies(range(begin, begin + 1000))


def test_nothing_acknowledged_is_lost_over_a_thousand_schedules() -> None:
    found = _run(range(1000))
    # The schedules do what they are for.
    assert sum(m.moves for m in found) > 1000
    assert sum(m.given_up for m in found) > 1000
    assert sum(m.losses for m in found) > 100
    assert sum(m.refused for m in found) > 500
    assert sum(len(m.acknowledged) for m in found) > 10_000


def test_no_step_is_refused_while_nothing_fails() -> None:
    for seed in range(200):
        made = SimulatedMove(seed, calm=True)
        for _ in range(600):
            made.step()
        assert made.refused == made.losses == 0
        assert made.moves + made.given_up > 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_over_a_hundred_thousand_schedules() -> None:
    for begin in range(1000, 101_000, 1000):
        _run(range(begin, begin + 1000))


def _holding(*masters: tuple[str, int]) -> Giver:
    source = Giver()
    source.prepare(masters)
    for master in masters:
        source.prepared(master)
    source.hold(masters)
    return source


def test_without_masters_nobody_is_waited_for() -> None:
    source = _holding()
    assert (source.stage, source.is_closed) == ("closing", True)


def test_a_master_that_comes_late_is_waited_for() -> None:
    source = _holding(ONE)
    assert source.joined(TWO)
    source.held(ONE)
    assert (source.stage, source.waiting) == ("holding", {TWO})
    source.lost(TWO)
    assert source.stage == "closing"


def test_answers_of_another_stage_say_nothing() -> None:
    source = Giver()
    source.prepare([ONE])
    source.held(ONE)
    assert source.stage == "preparing"
    source.prepared(ONE)
    source.prepared(TWO)
    source.quiet()
    source.sealed()
    source.decided()
    assert source.stage == "prepared"


def test_there_is_no_way_back_but_what_the_record_says() -> None:
    source = _holding(ONE)
    source.held(ONE)
    source.quiet()
    source.sealed()
    assert not source.give_up()
    source.refused()
    assert source.give_up()
    assert (source.stage, source.is_closed) == ("given up", False)


def test_a_sealed_copy_outlives_its_source_until_the_record_decides() -> None:
    for is_moved, stage in ((True, "owns"), (False, "dropped")):
        target = Taker()
        target.seal()
        assert target.lost()
        assert target.stage == "sealed"
        target.ended(is_moved)
        assert target.stage == stage
    filling = Taker()
    assert not filling.lost()
    assert filling.stage == "dropped"
    half = Taker()
    half.ended(is_moved=True)
    assert half.stage == "dropped"
