"""Groups that grow and shrink over random schedules: all go on together, from the one ahead."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from random_schedules import run_schedules
from simulated_growth import SimulatedGrowth

#: Two that came waited for each other in a generation that the others had left.
LEFT_BEHIND = 8676


def _run(seeds: Iterable[int]) -> list[SimulatedGrowth]:
    return run_schedules(SimulatedGrowth, seeds, steps=1500)


def test_tasks_come_and_go_over_random_schedules() -> None:
    found = _run(range(60))
    assert sum(g.joined for g in found) > 50
    assert sum(g.returned for g in found) > 30
    assert sum(g.kills for g in found) > 50


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tasks_come_and_go_over_thousands_of_schedules() -> None:
    for begin in range(1000, 11_000, 1000):
        _run(range(begin, begin + 1000))


def test_newcomers_that_wait_in_a_generation_that_the_others_have_left() -> None:
    _run([LEFT_BEHIND])
