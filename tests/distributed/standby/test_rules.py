"""Primary, standby and witness over random schedules: nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from random_schedules import run_schedules
from simulated_pair import SimulatedPair

from headrace.distributed.standby.rules import Primary, Standby, View, Witness

A, B, C = ("ps0", 1), ("ps1", 2), ("worker", 3)


def _run(seeds: Iterable[int]) -> list[SimulatedPair]:
    return run_schedules(SimulatedPair, seeds, steps=400)


def test_nothing_acknowledged_is_lost_over_a_thousand_schedules() -> None:
    found = _run(range(1000))
    # The schedules do what they are for.
    assert sum(p.promotions for p in found) > 300
    assert sum(p.drops for p in found) > 500
    assert sum(p.depositions for p in found) > 50
    assert sum(p.departures for p in found) > 200
    assert sum(len(p.acknowledged) for p in found) > 10_000


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_over_a_hundred_thousand_schedules() -> None:
    for begin in range(1000, 101_000, 1000):
        _run(range(begin, begin + 1000))


def test_a_witness_that_was_started_again_agrees_to_nothing() -> None:
    assert Witness().propose("ps0", View(3, B)) is None


def test_a_witness_agrees_to_one_of_two() -> None:
    witness = Witness()
    witness.appoint("ps0", View(2, A, B, C))
    assert witness.propose("ps0", View(3, B)) == View(3, B)
    assert witness.propose("ps0", View(3, A)) == View(3, B)
    assert witness.propose("ps0", View(4, A)) == View(3, B)  # it is no member any more


def test_a_primary_without_a_witness_waits_for_no_copy() -> None:
    primary = Primary(A)
    primary.followed(B)
    primary.filled()
    primary.appoint(C)
    assert primary.is_gated
    primary.appointed(None)
    assert not primary.is_gated
    assert primary.stage == "filled"


def test_a_follower_that_was_never_named_claims_nothing() -> None:
    assert Standby(B).lost() is None


def _claiming() -> Standby:
    standby = Standby(B)
    standby.named(View(2, A, B, C))
    assert standby.lost() == View(3, B)
    return standby


def test_a_standby_takes_over_when_primary_and_witness_have_ended() -> None:
    standby = _claiming()
    assert standby.answered(None) == "claiming"  # the witness was started again
    standby.take_over()
    assert (standby.stage, standby.view) == ("promoted", View(3, B))


def test_a_standby_gives_up_its_claim_when_only_the_witness_has_ended() -> None:
    standby = _claiming()
    standby.give_up()
    assert (standby.stage, standby.lost()) == ("following", None)
    standby.take_over()
    assert standby.stage == "following"


def test_a_standby_that_is_about_to_stop_releases_itself() -> None:
    primary, standby = Primary(A), Standby(B)
    primary.followed(B)
    primary.filled()
    primary.appoint(C)
    primary.appointed(primary.wanted)
    standby.named(primary.wanted)
    primary.named(2)
    assert primary.stage == "protected"
    primary.released(1)  # of a view that holds no more
    assert primary.stage == "protected"
    assert standby.leave() == View(2, A, B, C)
    assert standby.lost() is None
    primary.released(2)
    assert (primary.stage, primary.follower, primary.is_gated) == ("alone", None, False)


def test_a_follower_that_stops_and_one_that_claims_release_nothing() -> None:
    assert Standby(B).leave() is None
    standby = _claiming()
    assert standby.leave() is None
    assert standby.stage == "claiming"
