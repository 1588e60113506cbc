"""The rule of the lease on the chief's duties, on random schedules of deaths and late chiefs."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from headrace.ops.io.lease_rules import LeaseRules


class World:
    """Candidates that come, claim, begin, restore and die in a random order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rules = LeaseRules()
        self.there: dict[str, bool] = {}
        self.at_it: str | None = None
        self.number = 0

    def step(self) -> None:
        getattr(self, self.random.choice(self.MOVES))()
        self.check()

    MOVES = ("come", "come", "die", "claim", "pass_on", "begin", "restore", "restored", "stranger")

    def _any(self) -> str | None:
        return self.random.choice(sorted(self.there)) if self.there else None

    def come(self) -> None:
        if len(self.there) < 6:
            self.number += 1
            key = f"w{self.number}"
            self.there[key] = self.random.random() < 0.2
            self.rules.stand(key, self.there[key])

    def die(self) -> None:
        if (key := self._any()) is not None:
            del self.there[key]
            self.rules.leave(key)
            if key == self.at_it:
                self.at_it = None

    def claim(self) -> None:
        if (key := self._any()) is not None:
            self.rules.claim(key)

    def pass_on(self) -> None:
        if (key := self._any()) is not None:
            self.rules.pass_on(key)

    def begin(self, restores: bool = False) -> None:
        if (key := self._any()) is None:
            return
        torn = self.rules.is_torn
        if self.rules.begin(key, restores):
            assert key == self.rules.holder
            assert restores or not torn, "began on variables of two steps"
            assert self.at_it in (None, key), "two at the chief's duties"
            self.at_it = key

    def restore(self) -> None:
        self.begin(restores=True)

    def restored(self) -> None:
        if (key := self._any()) is not None and self.rules.restored(key):
            assert key == self.at_it

    def stranger(self) -> None:
        """Somebody who is not there any more, or has not come yet, asks."""
        rules = self.rules
        before = (rules.holder, rules.has_begun, rules.is_torn, dict(rules.candidates))
        rules.leave("nobody")
        rules.claim("nobody")
        rules.pass_on("nobody")
        assert not rules.begin("nobody", True)
        assert not rules.restored("nobody")
        assert before == (rules.holder, rules.has_begun, rules.is_torn, dict(rules.candidates))

    def check(self) -> None:
        rules = self.rules
        assert rules.candidates == self.there
        assert rules.holder is None or rules.holder in self.there
        assert self.at_it is None or rules.holder == self.at_it, "lost without a word"
        assert rules.has_begun == (self.at_it is not None)
        if any(self.there.values()):
            assert rules.holder is not None, "a chief waits for nothing"


@pytest.mark.parametrize("block", range(4))
def test_at_most_one_has_the_duties(block: int) -> None:
    _run(range(500 * block, 500 * (block + 1)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_at_most_one_has_the_duties_over_a_hundred_thousand_schedules() -> None:
    _run(range(2000, 102_000))


def _run(seeds: Iterable[int]) -> None:
    for seed in seeds:
        world = World(seed)
        for _ in range(80):
            world.step()
        # Whoever is left gets them in the end.
        if world.there:
            world.rules.claim(next(iter(world.there)))
            assert world.rules.holder in world.there
            assert world.rules.begin(world.rules.holder, restores=True)


def test_the_chief_is_waited_for_until_somebody_claims() -> None:
    rules = LeaseRules()
    rules.stand("one", False)
    rules.stand("two", False)
    assert rules.holder is None
    rules.claim("two")
    assert rules.holder == "one"  # the one that has been there longest


def test_a_chief_takes_over_only_before_the_duties_have_begun() -> None:
    rules = LeaseRules()
    rules.stand("one", False)
    rules.claim("one")
    rules.stand("chief", True)
    assert rules.holder == "chief"
    assert not rules.begin("one", restores=False)
    assert rules.begin("chief", restores=False)
    rules.leave("chief")
    assert rules.holder == "one"
    assert rules.begin("one", restores=False)
    rules.stand("chief again", True)
    assert rules.holder == "one"


def test_who_finds_nothing_passes_the_lease_on() -> None:
    rules = LeaseRules()
    for key in ("one", "two"):
        rules.stand(key, False)
    rules.claim("one")
    rules.pass_on("one")
    assert rules.holder == "two"
    rules.pass_on("two")
    assert rules.holder == "one"
    assert rules.begin("one", restores=True)
    rules.pass_on("one")  # it is at it
    assert rules.holder == "one"


def test_variables_half_restored_are_restored_again() -> None:
    rules = LeaseRules()
    rules.stand("chief", True)
    assert rules.begin("chief", restores=True)
    rules.stand("one", False)
    rules.leave("chief")
    assert rules.is_torn
    assert not rules.begin("one", restores=False)
    assert rules.begin("one", restores=True)
    assert rules.restored("one")
    assert not rules.is_torn
    assert rules.begin("one", restores=False)
