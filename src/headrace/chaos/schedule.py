"""What happens to whom, and when: it follows from a seed alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["KINDS", "Cluster", "Fault", "make_schedule"]

#: Kind of fault -> the least and the most seconds that it lasts.
KINDS: dict[str, tuple[float, float]] = {
    "kill": (0.0, 2.0),
    "stop": (0.3, 5.0),
    "cut": (0.0, 0.0),
    "delay": (1.0, 3.0),
    "slow disk": (1.0, 4.0),
    "full disk": (1.0, 4.0),
    "restart": (0.0, 0.5),
    "clock": (2.0, 6.0),
}
#: Of the tasks that are hit so many are servers, whatever their number.
_SERVERS = 0.4


@dataclass(frozen=True)
class Cluster:
    """How many tasks there are.

    Attributes:
        servers: tasks of job ``ps``.
        workers: tasks of job ``worker``.
    """

    servers: int
    workers: int

    @property
    def tasks(self) -> list[str]:
        """Their names, as ``ps/0``, servers first."""
        return [
            *(f"ps/{i}" for i in range(self.servers)),
            *(f"worker/{i}" for i in range(self.workers)),
        ]


@dataclass(frozen=True)
class Fault:
    """Something that happens to a task, or to the disk of all.

    Attributes:
        at: seconds after the beginning.
        kind: one of `KINDS`. "kill" is SIGKILL, and the start of another process after
            ``seconds``; "restart" the same by SIGTERM; "stop" SIGSTOP and, after ``seconds``,
            SIGCONT; "cut" breaks all connections of the task; "delay" holds what it sends back;
            "clock" sets its wall clock forward or back, and right again after ``seconds``.
        task: as ``ps/0``; "" for the disk.
        seconds: how long it lasts.
    """

    at: float
    kind: str
    task: str
    seconds: float

    @property
    def end(self) -> float:
        """Seconds after the beginning."""
        return self.at + self.seconds

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:5.1f} s: {self.kind} {self.task}".rstrip() + lasting


def make_schedule(
    seed: int,
    seconds: float,
    cluster: Cluster,
    kinds: Sequence[str] = tuple(KINDS),
    every: float = 4.0,
) -> list[Fault]:
    """Faults in the order of their times.

    Each kind comes once before any comes again. A task that is hit is left alone until it has had
    time to come back; different tasks may be hit at once.

    Args:
        seed: equal seeds give equal schedules.
        seconds: the last fault is over before.
        kinds: those that may happen.
        every: seconds between two faults, on average.

    Raises:
        ValueError: for an unknown kind, none, or a time that is not positive.
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown or not kinds:
        raise ValueError(
            f"No faults of the kinds {', '.join(unknown) or 'of an empty list'}: there are "
            f"{', '.join(KINDS)}."
        )
    if every <= 0:
        raise ValueError(f"Faults come every {every} s; it must be more than 0.")
    rng = random.Random(seed)
    free_at = dict.fromkeys([*cluster.tasks, ""], 0.0)
    left: list[str] = []
    made: list[Fault] = []
    at = 0.0
    while True:
        at += rng.uniform(0.5, 1.5) * every
        if not left:
            left = list(kinds)
            rng.shuffle(left)
        kind = left.pop()
        lasting = rng.uniform(*KINDS[kind])
        task = "" if kind.endswith("disk") else _target(rng, cluster, free_at, at)
        if task is None or free_at[task] > at:
            continue
        if at + lasting > seconds:
            return made
        made.append(Fault(round(at, 3), kind, task, round(lasting, 3)))
        free_at[task] = at + lasting + every


def _target(
    rng: random.Random, cluster: Cluster, free_at: dict[str, float], at: float
) -> str | None:
    """A task that may be hit, or None."""
    job = "ps" if rng.random() < _SERVERS else "worker"
    free = [t for t in cluster.tasks if t.startswith(job) and free_at[t] <= at]
    return rng.choice(free) if free else None
