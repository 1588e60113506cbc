"""The vote on the record of a cluster over random schedules, and its rules one by one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from random_schedules import run_schedules
from simulated_votes import SimulatedVotes


def _run(seeds: Iterable[int]) -> list[SimulatedVotes]:
    return run_schedules(SimulatedVotes, seeds, steps=300)


def test_no_change_is_lost_over_a_thousand_schedules() -> None:
    found = _run(range(1000))
    # The schedules do what they are for.
    assert sum(len(v.chosen) for v in found) > 4000
    assert sum(v.losses for v in found) > 500
    assert sum(v.moves for v in found) > 500
    assert sum(v.lost_messages for v in found) > 10_000


@pytest.mark.slow
def test_no_change_is_lost_over_a_hundred_thousand_schedules() -> None:
    for begin in range(1000, 101_000, 1000):
        _run(range(begin, begin + 1000))
