"""What the processes of a run said, put together: attempts, checkpoints, restorations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.chaos.accounts import Attempt, Restoration

__all__ = ["LifeRecord", "Saved", "attempts_of", "restorations_of", "saves_of"]


@dataclass
class LifeRecord:
    """One process as a task.

    Attributes:
        task: as ``worker/0``.
        began, ended: times; ``ended`` is infinite while it lives.
        events: what it said, in that order: dictionaries with an ``event``, and mostly ``at``.
        memory: pairs of a time and bytes.
        status: exit status, if it ended by itself.
    """

    task: str
    began: float
    ended: float = float("inf")
    events: list[dict[str, Any]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    status: int | None = None


@dataclass(frozen=True)
class Saved:
    """A checkpoint.

    Attributes:
        began: when its values were taken, or a little earlier.
        at: when it was reported as saved.
        path: its name.
    """

    began: float
    at: float
    path: str


def attempts_of(lives: Sequence[LifeRecord], worker: int) -> list[Attempt]:
    """The attempts of a worker, in all its lives."""
    found: list[Attempt] = []
    for life in lives:
        if life.task != f"worker/{worker}":
            continue
        began: float | None = None
        for event in life.events:
            if event["event"] == "begin":
                if began is not None:
                    found.append(Attempt(began))
                began = event["at"]
            elif event["event"] == "done" and began is not None:
                found.append(
                    Attempt(began, event["at"], tuple(event["own"]), tuple(event["total"]))
                )
                began = None
        if began is not None:
            found.append(Attempt(began))
    return found


def saves_of(lives: Sequence[LifeRecord]) -> list[Saved]:
    """All checkpoints, the one with the oldest values first: who was stopped in a save ends it
    after saves that others have begun later."""
    found = [
        Saved(event["began"], event["at"], event["path"])
        for life in lives
        for event in life.events
        if event["event"] == "saved"
    ]
    return sorted(found, key=lambda s: s.began)


def restorations_of(lives: Sequence[LifeRecord], servers: int) -> list[tuple[Restoration, str]]:
    """All restorations with the checkpoints that they took, the oldest first."""
    found = []
    for life in lives:
        events = iter(life.events)
        for event in events:
            if event["event"] != "restoring" or not event["counters"]:
                continue  # counters that are not saved are not restored, either
            after = next(events, None)
            done = after is not None and after["event"] == "restored"
            made = Restoration(
                frozenset(event["servers"] or range(servers)),
                event["at"],
                life.ended if after is None else after["at"],
                _counters(event["counters"]),
                done,
            )
            found.append((made, event["path"]))
    return sorted(found, key=lambda pair: pair[0].began)


def _counters(saved: Mapping[str, int]) -> dict[tuple[int, int], int]:
    return {
        (int(server), int(worker)): value
        for (server, _, worker), value in ((k.partition("/"), v) for k, v in saved.items())
    }
