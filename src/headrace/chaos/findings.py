"""What a run under faults has shown: losses, standstills, recoveries, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from headrace.chaos.accounts import ALL, Account, Attempt, Restoration, account
from headrace.chaos.histories import ClientCall, counter_complaint
from headrace.chaos.records import LifeRecord, attempts_of, restorations_of, saves_of
from headrace.chaos.schedule import Cluster, Fault

__all__ = ["Findings", "Recovery", "find"]

#: Standstills of fewer seconds are not listed.
GAP = 1.0
#: The memory of a worker is compared from so many seconds after its first step on, that of a server
#: from so many after its start.
_WARM = 5.0


@dataclass(frozen=True)
class Recovery:
    """How long a fault was felt.

    Attributes:
        fault: what happened, ``at`` seconds after the beginning.
        seconds: from then to the end of the first step that began after it: of the task itself if
            it is a worker, else of any. None if there was none, or not before it was hit again.
    """

    fault: Fault
    seconds: float | None


@dataclass
class Findings:
    """The findings of one run; times are seconds after its beginning.

    Attributes:
        mode: of training.
        seed: of the faults.
        seconds: how long it was under faults.
        steps: acknowledged steps of all workers.
        attempts: how often a step was tried.
        accounts: of each worker on each server.
        saves: checkpoints that were written.
        restorations: when, which servers, and how many steps each cost.
        gaps: times in which no step of any worker ended, from when to when, if over a second.
        step_ends: when steps ended; left out of the JSON.
        longest_gap: the longest time in which none ended.
        recoveries: of each fault.
        memory_growth: bytes that a process had more at its end than when it had begun to train,
            the most of each task.
        taken_over: how often a server that was stopped or cut off found that its copy serves, and
            ended, to be started again.
        violations: what cannot be if the runtime keeps its word; empty if all is well.
        accuracy: at the end, on test images; undisturbed: of one process after as many steps.
    """

    mode: str
    seed: int
    seconds: float
    steps: int = 0
    attempts: int = 0
    accounts: list[Account] = field(default_factory=list)
    saves: int = 0
    restorations: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    step_ends: list[float] = field(default_factory=list)
    longest_gap: float = 0.0
    recoveries: list[Recovery] = field(default_factory=list)
    memory_growth: dict[str, int] = field(default_factory=dict)
    taken_over: int = 0
    violations: list[str] = field(default_factory=list)
    accuracy: float = float("nan")
    undisturbed: float = float("nan")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = asdict(self)
        del found["step_ends"]
        return found

    def lost(self, server: int) -> int:
        """Acknowledged steps that are not on a server any more."""
        return sum(a.lost for a in self.accounts if a.server == server)


def find(
    findings: Findings,
    cluster: Cluster,
    lives: Sequence[LifeRecord],
    faults: Sequence[Fault],
    final: Sequence[Attempt],
    began: float,
    ended: float,
) -> None:
    """Fill in what follows from the records.

    Args:
        faults: those that happened.
        final: for each worker, a read of its counters after all.
        began, ended: times of the run, by the clock of the records.
    """
    workers = {w: attempts_of(lives, w) for w in range(cluster.workers)}
    findings.saves = len(saves_of(lives))
    restored = restorations_of(lives, cluster.servers)
    for w, attempts in workers.items():
        findings.attempts += len(attempts)
        for s in range(cluster.servers):
            one = account(s, w, attempts, [r for r, _ in restored], final[w])
            findings.accounts.append(one)
            findings.violations += one.violations
    everyone = [a for attempts in workers.values() for a in attempts]
    for s in range(cluster.servers):
        findings.violations += history_complaints(s, everyone, [r for r, _ in restored])
    findings.steps = sum(a.acknowledged for a in findings.accounts if a.server == 0)
    _find_restorations(findings, lives, cluster.servers, began)
    ends = sorted(a.ended for attempts in workers.values() for a in attempts if a.ended)
    findings.step_ends = [end - began for end in ends]
    _find_gaps(findings, ends, began, ended)
    findings.recoveries = [
        Recovery(f, _recovered(f, _next_hit(f, faults), workers, began)) for f in faults
    ]
    findings.memory_growth = _memory_growth(lives)
    for life in lives:
        if any(event["event"] == "taken over" for event in life.events):
            findings.taken_over += 1  # it was stopped for long, and its copy serves: no surprise
        elif life.status is not None:
            findings.violations.append(
                f"{life.task} ended by itself at {life.ended - began:.1f} s, with status "
                f"{life.status}"
            )


def history_complaints(
    server: int, attempts: Sequence[Attempt], restorations: Sequence[Restoration]
) -> list[str]:
    """What is not linearisable in the history of the counter of all workers on a server.

    Each restoration begins a new history. An addition that was under way then may be in either.
    """
    found = []
    begin, start = float("-inf"), 0
    ours = sorted((r for r in restorations if server in r.servers), key=lambda r: r.began)
    for following in [*ours, None]:
        end = float("inf") if following is None else following.began
        complaint = counter_complaint(_calls(server, attempts, begin, end), start)
        if complaint:
            found.append(f"server {server}, counter of all workers: {complaint}")
        if following is not None:
            if not following.is_done:
                break  # what it began with, nobody knows
            begin, start = following.ended, following.counters[server, ALL]
    return found


def _calls(server: int, attempts: Sequence[Attempt], begin: float, end: float) -> list[ClientCall]:
    """Additions and reads between two restorations."""
    found = []
    for a in attempts:
        ended = float("inf") if a.ended is None else a.ended
        if a.began > end or ended < begin:
            continue
        if begin <= a.began and ended <= end:
            found.append(ClientCall(a.began, ended, "add"))
            if a.ended is not None:
                found.append(ClientCall(a.began, ended, "read", a.totals[server]))
        else:
            found.append(ClientCall(max(a.began, begin), float("inf"), "add"))
    return found


def _find_restorations(
    findings: Findings, lives: Sequence[LifeRecord], servers: int, began: float
) -> None:
    saves = saves_of(lives)
    for restoration, path in restorations_of(lives, servers):
        findings.restorations.append(
            {
                "at": restoration.began - began,
                "seconds": restoration.ended - restoration.began,
                "servers": sorted(restoration.servers),
                "path": path,
                "is_done": restoration.is_done,
            }
        )
        newest = [s for s in saves if s.at < restoration.began]
        if newest and newest[-1].path != path and path in [s.path for s in newest]:
            findings.violations.append(
                f"{path} was restored at {restoration.began - began:.1f} s, although "
                f"{newest[-1].path} was saved at {newest[-1].at - began:.1f} s"
            )


def _find_gaps(findings: Findings, ends: list[float], began: float, ended: float) -> None:
    times = [began, *ends, ended]
    for one, other in pairwise(times):
        if other - one > findings.longest_gap:
            findings.longest_gap = other - one
        if other - one > GAP:
            findings.gaps.append((one - began, other - began))


def _next_hit(fault: Fault, faults: Sequence[Fault]) -> float:
    """When the same task is hit again."""
    return min((f.at for f in faults if f.task == fault.task and f.at > fault.at), default=1e9)


def _recovered(
    fault: Fault, until: float, workers: dict[int, list[Attempt]], began: float
) -> float | None:
    job, _, index = fault.task.partition("/")
    whose = [int(index)] if job == "worker" else list(workers)
    at = began + fault.at
    ends = [a.ended for w in whose for a in workers[w] if a.began > at and a.ended is not None]
    return min(ends) - at if ends and min(ends) < began + until else None


def _memory_growth(lives: Sequence[LifeRecord]) -> dict[str, int]:
    found: dict[str, int] = {}
    for life in lives:
        # A worker that is still importing and compiling grows: on a busy machine for long.
        steps = (event["at"] for event in life.events if event["event"] == "done")
        begins = next(steps, life.began) + _WARM
        later = [size for at, size in life.memory if at > begins and size]
        if len(later) > 1:
            grown = max(later[len(later) // 2 :]) - later[0]
            found[life.task] = max(found.get(life.task, grown), grown)
    return found
