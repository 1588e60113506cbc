"""Generations of a group: what its members run between two times at which sessions are made anew.

A step that fails in one member, since a server is gone that only this one uses, may have ended in
the others; and when its session is made anew, it runs other operations than they do. So it begins
a new generation of the group: what is open in the others fails, their sessions are made anew, and
all begin with the operations that sessions begin with. No message of one generation counts in
another: each has a number of its own, by which it is a group like any other.

In the same way a task joins a group that runs: it says that it is there, as in the beginning, and
the first member begins a generation that has it. Of two generations with one number the members
differ then, perhaps; their leader is the same, and begins another one.

>>> generations = Generations()
>>> generations.wants_more(5)
False
>>> generations.call_for(5, ())
>>> generations.follow(5)
>>> hex(generations.number_of(5))
'0x10000000005'
>>> generations.told(5, 2, ())  # another member has begun one more
True
>>> generations.wants_more(5)
True
>>> generations.follow(5)
>>> generations.wants_more(5)
False
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.distributed.collective.parts import GroupMember, order_of

__all__ = ["Generations", "parts_of"]

_SHIFT = 40


def parts_of(number: int) -> tuple[int, int]:
    """Key and generation of a group's number.

    >>> parts_of((3 << 40) + 7), parts_of(7), parts_of(-7)
    ((7, 3), (7, 0), (-7, 0))
    """
    generation = (number + (1 << (_SHIFT - 1))) >> _SHIFT
    return number - (generation << _SHIFT), generation


class Generations:
    """Those of the groups of one task. Not thread-safe."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {}
        self._newest: dict[int, int] = {}
        #: Those of the newest generations.
        self._members: dict[int, Sequence[GroupMember]] = {}

    def number_of(self, key: int) -> int:
        """The number of the group that this task takes part in: its key at first."""
        return key + (self._own.get(key, 0) << _SHIFT)

    def newest_number(self, key: int) -> int:
        """The number of the group that is the newest generation that this task has heard of."""
        return key + (self._newest.get(key, 0) << _SHIFT)

    def keys_of_later(self) -> list[int]:
        """Those of groups that have later generations than the first."""
        return list(self._own)

    def wants_more(self, key: int) -> bool:
        """Whether others have begun a generation that this task does not take part in yet."""
        return self._newest.get(key, 0) > self._own.get(key, 0)

    def told(self, key: int, generation: int, members: Sequence[GroupMember]) -> bool:
        """Another member has begun a generation; whether that is news."""
        if generation <= self._newest.get(key, 0):
            return False
        self._newest[key] = generation
        # All have the same leader, the first, whoever tells them.
        self._members[key] = sorted(members, key=lambda m: order_of(m.task))
        return True

    def joined_with(self, number: int, members: Sequence[GroupMember]) -> list[GroupMember]:
        """The members of the newest generation and of another one of this number, if that has
        others: two tasks have begun it, and those who follow one wait for those who follow the
        other. None if it has not, or is not of the newest number."""
        key, generation = parts_of(number)
        known = {m[:2]: m for m in self.newest_members(key)}
        theirs = {m[:2]: m for m in members}
        if generation != self._newest.get(key, 0) or not known or known.keys() == theirs.keys():
            return []
        return list((theirs | known).values())

    def call_for(self, key: int, members: Sequence[GroupMember]) -> None:
        """Begin the generation after all that this task has heard of, for the others: it takes part
        itself once it follows."""
        self.told(key, self._newest.get(key, 0) + 1, members)

    def follow(self, key: int) -> None:
        """This task takes part in the newest generation from now on."""
        self._own[key] = self._newest.get(key, 0)

    def differs(self, number: int, devices: int) -> bool:
        """Whether a group is of the newest generation, which has another number of devices."""
        key, generation = parts_of(number)
        known = self.newest_members(key)
        is_newest = generation and generation == self._newest.get(key, 0)
        return bool(is_newest and known and sum(len(m.devices) for m in known) != devices)

    def is_over(self, number: int) -> bool:
        """Whether a group belongs to a generation that is over."""
        key, generation = parts_of(number)
        return generation < self._newest.get(key, 0)

    def newest_members(self, key: int) -> Sequence[GroupMember]:
        """Those of the newest generation that this task has heard of; none for the first one."""
        return self._members.get(key, ())

    def members(self, number: int) -> Sequence[GroupMember]:
        """Those of a group, if it belongs to a generation that was told of and is not over."""
        key, generation = parts_of(number)
        return self.newest_members(key) if generation == self._newest.get(key, 0) else ()
