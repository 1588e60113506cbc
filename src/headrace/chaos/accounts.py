"""Whether every step that was acknowledged is in the counters of the servers.

Each worker has a counter of its own on each server, to which each of its steps adds one, and which
the step reads afterwards. So from one acknowledged step to the next a counter goes up by one, and
by at most one more for each attempt before that failed: whether that took effect, and when, nobody
was told. It goes down only when its server goes back to a checkpoint, and then to what that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["ALL", "Account", "Attempt", "Restoration", "account"]

#: In place of a worker: all of them.
ALL = -1


@dataclass(frozen=True)
class Attempt:
    """A step of a worker, perhaps repeated by its session later.

    Attributes:
        began: time, seconds of one clock of the machine.
        ended: when it was acknowledged; None if it was not.
        values: the worker's counter on each server, as the step read it; empty if it did not end.
        totals: the counter of all workers on each server, as it was at some time of the step.
    """

    began: float
    ended: float | None = None
    values: tuple[int, ...] = ()
    totals: tuple[int, ...] = ()


@dataclass(frozen=True)
class Restoration:
    """Servers that go back to what was saved.

    Attributes:
        servers: which.
        began, ended: times.
        counters: (server, worker) -> what was saved; the worker is `ALL` for the counter of all.
        is_done: whether it was reported as done; else it may have been, or in part.
    """

    servers: frozenset[int]
    began: float
    ended: float
    counters: Mapping[tuple[int, int], int]
    is_done: bool = True


@dataclass
class Account:
    """What became of the steps of one worker on one server.

    ``acknowledged - lost + unacknowledged`` is what the counter shows, if all is well.

    Attributes:
        server, worker: which.
        acknowledged: steps that the worker was told are done.
        lost: of these, those that went with a server that restored an older checkpoint.
        unacknowledged: other attempts that are in the counter.
        counter: what it shows at the end.
        violations: what cannot be; empty if all is well.
    """

    server: int
    worker: int
    acknowledged: int = 0
    lost: int = 0
    unacknowledged: int = 0
    counter: int = 0
    violations: list[str] = field(default_factory=list)


def account(
    server: int,
    worker: int,
    attempts: Sequence[Attempt],
    restorations: Iterable[Restoration],
    final: Attempt,
) -> Account:
    """The account of one worker on one server.

    Args:
        attempts: those of the worker, in their order; none begins before the one before has ended.
        restorations: all there were, of whichever servers.
        final: a read of the counters after all.

    >>> attempts = [Attempt(1, 2, (1,)), Attempt(3), Attempt(5, 6, (2,))]
    >>> one = account(0, 0, attempts, [], Attempt(8, 9, (2,)))
    >>> one.acknowledged, one.lost, one.unacknowledged, one.violations
    (2, 0, 0, [])
    >>> account(0, 0, attempts, [], Attempt(8, 9, (1,))).violations
    ['worker 0 on server 0: the counter was 2 at 6.000 and 1 at 9.000, and nothing was restored']
    """
    found = Account(server, worker)
    ours = sorted((r for r in restorations if server in r.servers), key=lambda r: r.began)
    #: Acknowledged values that are still there.
    alive: list[int] = []
    last, open_attempts = Attempt(float("-inf"), float("-inf"), (0,) * (server + 1)), 0
    for attempt in [*attempts, final]:
        if attempt.ended is None:
            open_attempts += 1
            continue
        value, own = attempt.values[server], attempt is not final
        base = _base(server, worker, last, attempt, ours, own, open_attempts)
        if base is None:
            found.violations.append(_complaint(found, last, attempt, ours))
        else:
            open_attempts -= value - base - own
            while alive and alive[-1] > base:
                alive.pop()
                found.lost += 1
        if own:
            found.acknowledged += 1
            alive.append(value)
        last = attempt
    found.counter = final.values[server]
    found.unacknowledged = found.counter - len(alive)
    return found


def _base(
    server: int,
    worker: int,
    last: Attempt,
    attempt: Attempt,
    restorations: Sequence[Restoration],
    own: bool,
    open_attempts: int,
) -> int | None:
    """What the counter went on from, with the least loss that explains the value; None: nothing.

    Args:
        own: whether the attempt itself adds one.
        open_attempts: those before that may have added one since then.
    """
    assert attempt.ended is not None
    assert last.ended is not None
    relevant = _between(restorations, last, attempt)
    bases = {r.counters[server, worker] for r in relevant}
    if not any(_is_certain(r, last, attempt) for r in relevant):
        bases.add(last.values[server])
    for base in sorted(bases, reverse=True):
        if 0 <= attempt.values[server] - base - own <= open_attempts:
            return base
    return None


def _between(restorations: Sequence[Restoration], last: Attempt, now: Attempt) -> list[Restoration]:
    """Those that may have been after the effect of one step and before that of another."""
    assert now.ended is not None
    return [r for r in restorations if r.began <= now.ended and r.ended >= last.began]


def _is_certain(restoration: Restoration, last: Attempt, now: Attempt) -> bool:
    assert last.ended is not None
    return (
        restoration.is_done and restoration.began >= last.ended and restoration.ended <= now.began
    )


def _complaint(
    found: Account, last: Attempt, now: Attempt, restorations: Sequence[Restoration]
) -> str:
    server, worker = found.server, found.worker
    before, value = last.values[server], now.values[server]
    relevant = _between(restorations, last, now)
    saved = ", ".join(
        f"{r.counters[server, worker]} at {r.began:.3f} to {_time(r.ended)}" for r in relevant
    )
    return (
        f"worker {worker} on server {server}: the counter was {before} at {_time(last.ended)} and "
        f"{value} at {_time(now.ended)}, and "
        + (f"what was restored is {saved}" if saved else "nothing was restored")
    )


def _time(seconds: float | None) -> str:
    assert seconds is not None
    return "the beginning" if seconds == float("-inf") else f"{seconds:.3f}"
