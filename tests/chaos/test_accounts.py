"""Accounts of acknowledged steps: simulated servers that keep their word, and some that do not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.chaos.accounts import Attempt, Restoration, account


class Simulated:
    """A server with the counter of one worker, which it may lose or count wrongly."""

    def __init__(self, rng):
        self.rng, self.now = rng, 0.0
        self.counter = self.saved = 0
        self.attempts, self.restorations, self.alive = [], [], []
        self.lost = 0

    def time(self):
        self.now += self.rng.uniform(0.1, 1)
        return self.now

    def step(self, adds=1):
        began = self.time()
        self.counter += adds
        self.alive.append(self.counter)
        self.attempts.append(Attempt(began, self.time(), (self.counter,)))

    def fail(self):
        began = self.time()
        self.counter += self.rng.choice([0, 1])
        self.attempts.append(Attempt(began))

    def save(self):
        self.saved = self.counter

    def restore(self, to=None):
        value = self.saved if to is None else to
        began = self.time()
        self.counter = value
        self.lost += sum(v > value for v in self.alive)
        self.alive = [v for v in self.alive if v <= value]
        self.restorations.append(
            Restoration(frozenset([0]), began, self.time(), {(0, 0): self.saved})
        )

    def account(self):
        last = Attempt(self.time(), self.time(), (self.counter,))
        return account(0, 0, self.attempts, self.restorations, last)


DOINGS = st.lists(st.sampled_from(["step", "step", "step", "fail", "save", "restore"]), max_size=60)


@given(seed=st.integers(0, 10**6), doings=DOINGS)
def test_who_keeps_its_word_is_not_blamed(seed, doings):
    server = Simulated(random.Random(seed))
    for doing in doings:
        getattr(server, doing)()
    found = server.account()
    assert found.violations == []
    assert found.acknowledged == doings.count("step")
    assert found.acknowledged - found.lost + found.unacknowledged == found.counter == server.counter
    # An attempt that failed may have been the step before the restoration, too.
    assert found.lost <= server.lost
    if "fail" not in doings:
        assert found.lost == server.lost
        assert found.unacknowledged == 0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("adds", [0, 2, -1])
def test_a_step_that_is_not_counted_once_is_found(seed, adds):
    rng = random.Random(seed)
    server = Simulated(rng)
    for _ in range(rng.randrange(1, 5)):
        server.step()
    server.step(adds)
    for _ in range(rng.randrange(5)):
        server.step()
    (text,) = server.account().violations
    assert text.startswith("worker 0 on server 0: the counter was ")
    assert text.endswith("and nothing was restored")


def test_what_was_lost_without_a_restoration_is_found():
    server = Simulated(random.Random(0))
    for _ in range(5):
        server.step()
    server.counter -= 1
    assert len(server.account().violations) == 1


def test_another_value_than_the_saved_one_is_found():
    server = Simulated(random.Random(0))
    for _ in range(5):
        server.step()
    server.save()
    server.step()
    server.restore(to=4)
    (text,) = server.account().violations
    assert "what was restored is 5 at " in text


def test_a_restoration_that_nobody_finished_may_have_been_or_not():
    read = [Attempt(0, 1, (1,)), Attempt(1, 2, (2,))]
    for value, lost in ((3, 0), (2, 1)):
        half = Restoration(frozenset([0]), 3, 4, {(0, 0): 1}, is_done=False)
        found = account(0, 0, [*read, Attempt(5, 6, (value,))], [half], Attempt(7, 8, (value,)))
        assert (found.lost, found.violations) == (lost, [])
    done = Restoration(frozenset([0]), 3, 4, {(0, 0): 1})
    assert account(0, 0, [*read, Attempt(5, 6, (3,))], [done], Attempt(7, 8, (3,))).violations
