"""What is found in records of a run that are written by hand."""

import io

import pytest
from rich.console import Console

from headrace.chaos.accounts import ALL, Attempt, Restoration
from headrace.chaos.findings import Findings, find, history_complaints
from headrace.chaos.records import LifeRecord, attempts_of, restorations_of
from headrace.chaos.report import show
from headrace.chaos.schedule import Cluster, Fault


def steps(*times, first=1):
    """Events of steps of 0.1 s that begin at some times."""
    found = []
    for value, at in enumerate(times, first):
        found.append({"event": "begin", "at": at})
        found.append(
            {"event": "done", "at": at + 0.1, "own": [value], "step": value, "total": [value]}
        )
    return found


@pytest.fixture
def lives():
    """Worker 0 is killed at 103 and comes back; then server 0, which goes back to 1 step."""
    restored = [
        {
            "event": "restoring",
            "at": 105,
            "path": "m-1",
            "servers": [0],
            "counters": {"0/0": 1, "0/-1": 1},
        },
        {"event": "restored", "began": 105, "at": 105.5, "path": "m-1"},
    ]
    saved = {"event": "saved", "began": 101.3, "at": 101.5, "path": "m-1", "counters": {}}
    first = [*steps(100, 101), saved, *steps(102, first=3), {"event": "begin", "at": 102.9}]
    return [
        LifeRecord("ps/0", 99, 104.2),
        LifeRecord("worker/0", 99, 103, first, [(104.5, 10), (105.2, 12), (106, 40), (107, 30)]),
        LifeRecord("worker/0", 103.5, 110, [*steps(104, first=4), *restored, *steps(106, first=2)]),
        LifeRecord("ps/0", 104.3),
    ]


FAULTS = [Fault(3, "kill", "worker/0", 0.5), Fault(4.2, "kill", "ps/0", 0.1)]


def found_in(lives, final=2):
    found = Findings("asynchronous", 7, 8.0)
    find(found, Cluster(1, 1), lives, FAULTS, [Attempt(108, 108.5, (final,))], 100, 108)
    return found


def test_attempts_and_restorations(lives):
    attempts = attempts_of(lives, 0)
    assert [a.began for a in attempts] == [100, 101, 102, 102.9, 104, 106]
    assert [a.ended is None for a in attempts] == [False] * 3 + [True] + [False] * 2
    ((restoration, path),) = restorations_of(lives, 1)
    assert (path, restoration.counters, restoration.is_done) == (
        "m-1",
        {(0, 0): 1, (0, ALL): 1},
        True,
    )


def test_a_run_without_complaints(lives):
    found = found_in(lives)
    assert found.violations == []
    assert (found.steps, found.attempts, found.lost(0), found.saves) == (5, 6, 3, 1)
    assert found.longest_gap == pytest.approx(2.0)
    assert [tuple(map(round, gap)) for gap in found.gaps] == [(2, 4), (4, 6), (6, 8)]
    assert [r.seconds for r in found.recoveries] == pytest.approx([1.1, 1.9])
    assert found.memory_growth == {"worker/0": 28}  # from 5 s after its first step on
    assert found.to_json()["recoveries"][0]["fault"]["kind"] == "kill"


def test_complaints(lives):
    lives[2].status = 1
    newer = {"event": "saved", "began": 102.4, "at": 102.5, "path": "m-2", "counters": {}}
    stale = {"event": "saved", "began": 101.0, "at": 102.6, "path": "m-0", "counters": {}}
    lives[1].events[5:5] = [newer, stale]
    assert found_in(lives, final=1).violations == [
        "worker 0 on server 0: the counter was 2 at 106.100 and 1 at 108.500, and nothing was "
        "restored",
        "m-1 was restored at 5.0 s, although m-2 was saved at 2.5 s",
        "worker/0 ended by itself at 10.0 s, with status 1",
    ]


def test_the_report(lives):
    console = Console(file=io.StringIO(), width=120)
    show(found_in(lives), console)
    show(found_in(lives, final=1), console)
    text = console.file.getvalue()
    assert "steps acknowledged   5 of 6 attempts" in text
    assert "on server 0          3 lost with what it had not saved, 0 without ack" in text
    assert "longest standstill   2.0 s; 3 over a second" in text
    assert "3.0 s   kill    worker/0   0.5 s    1.10 s" in text
    assert "Every acknowledged step is accounted for." in text
    assert "the counter was 2 at 106.100 and 1 at 108.500" in text


def test_histories_begin_anew_with_each_restoration():
    """Two workers; the server goes back from 4 to 2 while a step of one is under way."""
    attempts = [
        Attempt(0, 1, (1,), (1,)),
        Attempt(0, 2, (1,), (2,)),
        Attempt(2, 3, (2,), (3,)),
        Attempt(3, 9, (2,), (3,)),  # it may be in either
        Attempt(7, 8, (2,), (3,)),
    ]
    back = Restoration(frozenset([0]), 5, 6, {(0, ALL): 2})
    assert history_complaints(0, attempts, [back]) == []
    late = Attempt(10, 11, (4,), (4,))
    assert history_complaints(0, [*attempts, late], [back]) == []
    assert history_complaints(0, [*attempts, Attempt(10, 11, (4,), (3,))], [back]) == []
    assert history_complaints(0, [*attempts, Attempt(10, 11, (4,), (2,))], [back]) == [
        "server 0, counter of all workers: 3 was read at 7 to 8, and later 2 was read at 10 to 11"
    ]
    assert len(history_complaints(0, [*attempts, Attempt(10, 11, (4,), (2,))], [])) == 1
