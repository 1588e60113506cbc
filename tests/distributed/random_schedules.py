"""Simulated worlds, one for each seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar


class World(Protocol):
    """Something that happens by chance, and holds its invariants by assertions."""

    def step(self) -> None: ...

    def settle(self) -> None:
        """Without more faults."""


WorldT = TypeVar("WorldT", bound=World)


def run_schedules(make: Callable[[int], WorldT], seeds: Iterable[int], steps: int) -> list[WorldT]:
    """The worlds of some seeds, after so many steps each and the end of all faults.

    Raises:
        AssertionError: with the seed, if an invariant does not hold.
    """
    found = []
    for seed in seeds:
        world = make(seed)
        try:
            for _ in range(steps):
                world.step()
            world.settle()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        found.append(world)
    return found
