"""The rule of the dispenser, on random schedules of workers that come and die, and restores."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from headrace.ops.io.dispenser_rules import DispenserRules


class World:
    """Workers that take, finish, come and die in a random order; the state is saved and restored.

    Args:
        is_calm: whether nobody dies, or leaves before its work is done, and nothing is restored.
    """

    MOVES = ("come", "take", "take", "finish", "finish", "die", "save", "restore", "stranger")

    def __init__(self, seed: int, is_calm: bool) -> None:
        self.random = random.Random(seed)
        self.is_calm = is_calm
        self.total = self.random.choice([0, 1, 3, 10, 30])
        self.rules = DispenserRules(self.total)
        self.there: dict[str, list[int]] = {}
        self.dealt: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        #: What counted as done when the state was saved, and the state.
        self.saved: tuple[Counter[int], int, list[int]] = Counter(), 0, []
        self.number = 0

    def step(self) -> None:
        getattr(self, self.random.choice(self.MOVES))()
        self.check()

    def _any(self) -> str | None:
        return self.random.choice(sorted(self.there)) if self.there else None

    def come(self) -> None:
        if len(self.there) < 5:
            self.number += 1
            self.there[f"w{self.number}"] = []
            self.rules.join(f"w{self.number}")

    def take(self) -> None:
        if (key := self._any()) is None:
            return
        is_any = self.rules.is_any_left
        deal = self.rules.take(key)
        assert (deal is not None) == is_any
        if deal is not None:
            self.dealt[deal] += 1
            self.there[key].append(deal)

    def finish(self) -> None:
        if (key := self._any()) is not None and self.there[key]:
            deal = self.there[key].pop(self.random.randrange(len(self.there[key])))
            assert self.rules.done(key, deal)
            assert not self.rules.done(key, deal), "it counts twice"
            self.done[deal] += 1

    def die(self) -> None:
        if (key := self._any()) is not None and not (self.is_calm and self.there[key]):
            held = self.there.pop(key)
            self.rules.leave(key)
            for deal in held:
                assert not self.rules.done(key, deal), "another gets it"

    def save(self) -> None:
        self.saved = self.done.copy(), self.rules.following, self.rules.unfinished()

    def restore(self) -> None:
        if self.is_calm or self.random.random() < 0.8:
            return
        self.done, following, unfinished = self.saved[0].copy(), *self.saved[1:]
        self.rules = DispenserRules(self.total, following, unfinished)
        for key, held in self.there.items():
            held.clear()
            assert self.rules.take(key) is None, "it has not joined"
            self.rules.join(key)

    def stranger(self) -> None:
        before = self.rules.unfinished(), self.rules.following
        assert self.rules.take("nobody") is None
        self.rules.leave("nobody")
        assert not self.rules.done("nobody", 0)
        assert before == (self.rules.unfinished(), self.rules.following)

    def check(self) -> None:
        rules = self.rules
        held = sorted(deal for deals in self.there.values() for deal in deals)
        assert sorted(rules.held) == held
        assert all(rules.holds(key) == bool(deals) for key, deals in self.there.items())
        # Each is done, or will come, and never both.
        to_come = [*rules.unfinished(), *range(rules.following, self.total)]
        assert sorted([*to_come, *self.done]) == list(range(self.total))
        assert set(self.done.values()) <= {1}
        assert rules.is_over == (len(self.done) == self.total)
        # Who waits does so for somebody that is there.
        assert rules.is_any_left or rules.is_over or held

    def end(self) -> None:
        """Those that are left do what is left, and nobody waits for ever."""
        self.come()
        for _ in range(2 * self.total + 1):
            for key in list(self.there):
                deal = self.rules.take(key)
                if deal is not None:
                    self.dealt[deal] += 1
                    self.there[key].append(deal)
            self.finish()
        for key, held in self.there.items():
            while held:
                assert self.rules.done(key, held[0])
                self.done[held.pop(0)] += 1
        assert self.rules.is_over
        assert self.done == Counter(range(self.total))
        assert set(self.dealt) == set(range(self.total))


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("is_calm", [True, False])
def test_each_range_once_or_more_often(block: int, is_calm: bool) -> None:
    for seed in range(300 * block, 300 * (block + 1)):
        world = World(seed, is_calm)
        for _ in range(50):
            world.step()
        world.end()
        if is_calm:
            assert set(world.dealt.values()) <= {1}, "twice without a failure"


def test_what_comes_back_goes_first() -> None:
    rules = DispenserRules(5)
    for key in ("one", "two"):
        rules.join(key)
    assert [rules.take("one") for _ in range(3)] == [0, 1, 2]
    assert rules.done("one", 1)
    rules.leave("one")
    assert [rules.take("two") for _ in range(5)] == [0, 2, 3, 4, None]
    assert not rules.is_over


def test_without_end() -> None:
    rules = DispenserRules(None, 7, [2])
    rules.join("one")
    assert [rules.take("one") for _ in range(3)] == [2, 7, 8]
    assert rules.is_any_left
    assert not rules.is_over


def test_a_shorter_run_forgets_what_is_beyond() -> None:
    rules = DispenserRules(4, 9, [3, 8])
    rules.join("one")
    assert [rules.take("one"), rules.take("one")] == [3, None]
    assert rules.done("one", 3)
    assert rules.is_over
