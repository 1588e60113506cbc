"""How long a peer may be silent, by how regularly it was heard: with times that the test makes."""

from __future__ import annotations

import math
import random

import pytest

from headrace.distributed.transport.suspicion import THRESHOLD, Suspicion

LEAST, MOST = 2.5, 10.0


def peer() -> Suspicion:
    return Suspicion(0.5, LEAST, MOST)


def heard(suspicion: Suspicion, gaps: list[float]) -> int:
    """Tell of gaps; how many of them were longer than it had patience for."""
    mistakes = 0
    for gap in gaps:
        mistakes += gap > suspicion.patience
        suspicion.heard(gap)
    return mistakes


@pytest.mark.parametrize("seed", range(5))
def test_a_regular_peer_is_missed_soon(seed):
    rng = random.Random(seed)
    suspicion = peer()
    assert heard(suspicion, [rng.uniform(0.4, 0.85) for _ in range(1000)]) == 0
    assert suspicion.patience == LEAST


@pytest.mark.parametrize("seed", range(5))
def test_a_peer_on_a_busy_machine_is_not_taken_for_dead(seed):
    """Its gaps have a mean of 1.2 s and a longer tail than normal ones: few break its limits, many
    would break a fixed one. Those who do are asked before they count as dead."""
    rng = random.Random(seed)
    gaps = [0.5 + rng.gammavariate(1.5, 0.5) for _ in range(5000)]
    late = sum(gap > LEAST for gap in gaps[20:])
    suspicion = peer()
    heard(suspicion, gaps[:20])
    assert heard(suspicion, gaps[20:]) * 20 < late
    assert LEAST < suspicion.patience <= MOST


def test_patience_comes_and_goes():
    suspicion = peer()
    heard(suspicion, [0.5] * 50)
    suspicion.heard(2.4)
    once = suspicion.patience
    heard(suspicion, [2.4, 1.0] * 5)
    assert LEAST <= once < suspicion.patience
    heard(suspicion, [0.5] * 100)  # of which it remembers nothing
    assert suspicion.patience == LEAST
    heard(suspicion, [60.0] * 3)  # it was suspended, say, and answered when it was asked
    assert suspicion.patience == MOST


def test_who_has_much_to_say_is_not_missed_when_it_pauses():
    suspicion = peer()
    heard(suspicion, [0.001] * 1000)
    assert suspicion.patience == LEAST
    assert suspicion.level(0.5) < 1.0


def test_level_is_the_threshold_where_patience_ends():
    suspicion = peer()
    rng = random.Random(0)
    heard(suspicion, [rng.uniform(0.5, 2.0) for _ in range(300)])
    assert LEAST < suspicion.patience < MOST
    assert math.isclose(suspicion.level(suspicion.patience), THRESHOLD, rel_tol=1e-6)
    levels = [suspicion.level(tenths / 10) for tenths in range(100)]
    assert levels == sorted(levels)
    assert levels[0] < 0.1
    assert suspicion.level(1e6) == math.inf


def test_rounding_does_not_add_up():
    suspicion = peer()
    rng = random.Random(1)
    for _ in range(200_000):
        suspicion.heard(rng.choice([0.5, 30.0]))
    heard(suspicion, [0.5] * 100)
    assert suspicion.patience == LEAST
