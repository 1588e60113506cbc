"""Links between two processes that die at their two ends at different times: no step may hang."""

from __future__ import annotations

import random
from collections import deque
from types import SimpleNamespace

import pytest

from headrace.distributed.links import links
from headrace.distributed.links.links import LinkTable, Roll
from headrace.distributed.transport.base import PeerInfo


class End(SimpleNamespace):
    """One end of a link."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def end(task="b", incarnation=1):
    return End(peer=PeerInfo(task, incarnation), lost=False)


def lose(table, link):
    link.lost = True
    return table.lost(link)


def roll(number, *live, upto=None):
    return Roll(number, number if upto is None else upto, frozenset({number, *live}))


def used(table, number, *live, task="b"):
    """A link that we dialled, on which the peer has said that it is its ``number``-th."""
    link = end(task)
    assert table.add(link)
    assert table.introduce(link) is not None
    assert table.told(link, roll(number, *live)) == (None, [])
    table.use(link)
    return link


# -- one table ------------------------------------------------------------------------------------


def test_who_has_dialled_speaks_first_and_the_other_answers():
    one, other = LinkTable(), LinkTable()
    here, there = end("other"), end("one")
    assert one.add(here)
    assert other.add(there)
    said = one.introduce(here)
    assert said == Roll(1, 1, frozenset({1}))
    answer, gone = other.told(there, said)
    assert (answer, gone) == (Roll(1, 1, frozenset({1})), [])
    assert other.known("one") is None  # the answer has not left yet
    other.use(there)
    assert other.known("one") is there
    assert one.known("other") is None
    assert one.told(here, answer) == (None, [])
    one.use(here)
    assert one.known("other") is here


def test_a_link_that_never_said_anything_goes_without_a_word():
    table = LinkTable()
    first = used(table, 1)
    dialled_by_peer = end()
    table.add(dialled_by_peer)
    assert lose(table, dialled_by_peer) == (False, [])
    assert table.known("b") is first
    assert lose(table, end()) == (False, [])


def test_a_link_that_is_lost_or_comes_after_the_end_is_none():
    table = LinkTable()
    link = end()
    link.lost = True
    assert not table.add(link)
    assert table.introduce(link) is None
    assert table.told(link, roll(1)) == (None, [])
    table.use(link)
    assert table.all() == []
    kept = used(table, 2)
    assert table.close() == [kept]
    assert not table.add(end())
    assert table.known("b") is None


def test_a_loss_is_told_on_all_other_links_to_that_peer():
    table = LinkTable()
    first, second = used(table, 1), used(table, 2, 1)
    used(table, 1, task="c")
    assert table.known("b") is second
    assert lose(table, second) == (True, [(first, Roll(1, 3, frozenset({1})))])
    assert table.known("b") is first
    assert lose(table, first) == (True, [])
    assert table.known("b") is None


def test_a_new_link_says_which_others_the_peer_has_lost():
    table = LinkTable()
    stale = used(table, 1)
    fresh = end()
    table.add(fresh)
    answer, gone = table.told(fresh, Roll(2, 2, frozenset({2})))
    assert gone == [stale]
    assert answer.live == {1, 2}


def test_what_is_told_late_does_not_bring_a_link_back():
    table = LinkTable()
    first = used(table, 1)
    assert table.told(first, Roll(1, 3, frozenset({1}))) == (None, [])  # 2 and 3 were lost
    late = end()
    table.add(late)
    assert table.told(late, roll(2, 1)) == (None, [late])
    assert table.told(first, Roll(1, 2, frozenset({1, 2}))) == (None, [late])  # said before
    lose(table, late)
    third = used(table, 4, 1)
    assert table.known("b") is third


def test_links_to_other_starts_of_a_peer_are_others():
    table = LinkTable()
    old = used(table, 1)
    new = end(incarnation=2)
    table.add(new)
    answer, gone = table.told(new, roll(1))
    assert (answer.live, gone) == ({2}, [])
    assert lose(table, old) == (True, [])


def test_a_link_keeps_its_number():
    table = LinkTable()
    link = used(table, 7)
    for number in (0, 8):
        with pytest.raises(ValueError, match="its number was 7"):
            table.told(link, roll(number))


def test_what_peers_have_said_has_a_limit(monkeypatch):
    monkeypatch.setattr(links, "MAX_PEERS", 3)
    table = LinkTable()
    for i in range(10):
        lose(table, used(table, 1, task=f"client:{i}"))
    assert len(table._rolls) == 3
    assert not table._ends


# -- two processes --------------------------------------------------------------------------------


class Side:
    """A process that begins steps, has a part in those of the other, or both."""

    def __init__(self, name):
        self.name = name
        self.table = LinkTable()
        #: Steps that wait for the other: the link that took each, and what is still to come.
        self.asked = {}
        #: Parts that run for the other, and wait for a tensor: the link that brought each.
        self.parts = {}

    def fail_all(self, world):
        """A link is lost that steps may have used."""
        for step in list(self.asked):
            self.fail(world, step)
        for step, link in list(self.parts.items()):
            del self.parts[step]
            world.send(link, ("failed", step))

    def fail(self, world, step):
        link, _ = self.asked.pop(step, (None, None))
        if link is not None:
            world.send(link, ("cancel", step))

    def got(self, step, what):
        """Whether a step has ended by this."""
        _, left = self.asked.get(step, (None, {what}))
        left.discard(what)
        return not left and self.asked.pop(step, None) is not None


class World:
    """Two processes, links between them, and chance.

    A step: one side asks; the other sends a tensor over whichever link it uses then, and is done at
    once, or when one has come that the first sends over whichever link it uses then.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.sides = {name: Side(name) for name in "ab"}
        self.ends = []
        self.steps = 0
        self.finished = 0

    def dial(self, name):
        other = "b" if name == "a" else "a"
        here, there = end(other), end(name)
        here.owner, there.owner = self.sides[name], self.sides[other]
        here.other, there.other = there, here
        for one in (here, there):
            one.inbox = deque()
            self.ends.append(one)
            one.owner.table.add(one)
        self.say(here, here.owner.table.introduce(here))

    def send(self, link, message):
        if not link.lost:  # else it cannot be sent, and the sender knows
            link.other.inbox.append(message)

    def say(self, link, told):
        if told is not None:
            self.send(link, ("links", told))

    def lose(self, link):
        if link.lost:
            return
        link.lost = True
        concerns, others = link.owner.table.lost(link)
        for other, told in others:
            self.say(other, told)
        if concerns:
            link.owner.fail_all(self)

    def ask(self, side):
        link = side.table.known("b" if side.name == "a" else "a")
        if link is not None:
            self.steps += 1
            side.asked[self.steps] = (link, {"tensor", "done"})
            self.send(link, ("run", self.steps))

    def deliver(self, link):
        if link.lost or not link.inbox:
            return
        kind, what = link.inbox.popleft()
        side, peer = link.owner, link.peer.task
        if kind == "links":
            answer, gone = side.table.told(link, what)
            if link not in gone:
                self.say(link, answer)
                side.table.use(link)
            for other in gone:
                self.lose(other)
        elif kind == "run":
            self.send(side.table.known(peer), ("tensor", what))
            if what % 2:
                side.parts[what] = link
            else:
                self.send(link, ("done", what))
        elif kind == "tensor" and what in side.asked:
            if what % 2:
                self.send(side.table.known(peer), ("more", what))
            self.finished += side.got(what, kind)
        elif kind == "more" and what in side.parts:
            self.send(side.parts.pop(what), ("done", what))
        elif kind == "done":
            self.finished += side.got(what, kind)
        elif kind == "failed":
            side.fail(self, what)
        elif kind == "cancel":
            side.parts.pop(what, None)

    def act(self):
        chance = self.rng.random()
        if chance < 0.03:
            self.dial(self.rng.choice("ab"))
        elif chance < 0.05:
            self.lose(self.rng.choice(self.ends))
        elif chance < 0.15:
            self.ask(self.sides[self.rng.choice("ab")])
        else:
            self.deliver(self.rng.choice(self.ends[-6:]))

    def settle(self):
        """All that is under way arrives, and every end whose other end is lost is lost, too."""
        while True:
            ready = [e for e in self.ends if not e.lost and (e.inbox or e.other.lost)]
            if not ready:
                return
            link = self.rng.choice(ready)
            if link.other.lost and (not link.inbox or self.rng.random() < 0.1):
                self.lose(link)
            else:
                self.deliver(link)


@pytest.mark.parametrize("part", range(4))
def test_no_step_hangs_however_links_come_and_go(part):
    finished = steps = 0
    for seed in range(100 * part, 100 * (part + 1)):
        world = World(seed)
        world.dial("a")
        for _ in range(400):
            world.act()
        world.settle()
        for side in world.sides.values():
            assert not side.asked, seed
            assert not side.parts, seed
        finished, steps = finished + world.finished, steps + world.steps
    assert 0.2 * steps < finished < steps
