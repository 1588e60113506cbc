"""The changes of a record: who may join, who leaves, who votes.

>>> tasks = ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:3"]
>>> first_free("worker", tasks)
1
>>> leaving({"worker": 1}, tasks)
['/job:worker/replica:0/task:3']
>>> missing({"worker": 4}, tasks)
{'worker': 2}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from headrace.distributed.cluster.cluster_spec import SERVERS, task_name
from headrace.distributed.membership.record import GONE, ClusterRecord, changed
from headrace.errors import AlreadyExistsError
from headrace.graph.devices import DeviceSpec

__all__ = [
    "VOTERS",
    "admitted",
    "by_weight",
    "first_free",
    "indices",
    "leaving",
    "missing",
    "with_more_voters",
    "without",
]

#: So many tasks vote, if there are so many: one of them may be dead or have forgotten.
VOTERS = 3


def indices(job: str, tasks: Iterable[str]) -> list[int]:
    """The indices of a job's tasks, ascending."""
    specs = map(DeviceSpec.from_string, tasks)
    return sorted(s.task for s in specs if s.job == job and s.task is not None)


def first_free(job: str, tasks: Iterable[str]) -> int:
    """The lowest index that no task of a job has."""
    taken = set(indices(job, tasks))
    return next(i for i in range(len(taken) + 1) if i not in taken)


def leaving(wanted: Mapping[str, int], tasks: Iterable[str]) -> list[str]:
    """The tasks that are too many: those of a job with the highest indices."""
    known = list(tasks)
    found = []
    for job, count in sorted(wanted.items()):
        found += [task_name(job, i) for i in indices(job, known)[count:]]
    return found


def missing(wanted: Mapping[str, int], tasks: Iterable[str]) -> dict[str, int]:
    """How many tasks of each job there are too few."""
    known = list(tasks)
    found = {job: count - len(indices(job, known)) for job, count in sorted(wanted.items())}
    return {job: count for job, count in found.items() if count > 0}


def admitted(
    record: ClusterRecord,
    job: str,
    index: int | None,
    address: str,
    known: Mapping[str, str],
    dead: Collection[str],
) -> ClusterRecord:
    """The record with one more task of a job, or with a dead one at another address.

    Args:
        index: None for any: that of a task that has joined and died, or the lowest that is free.
        known: the addresses of all tasks.
        dead: those of them that do not answer.

    Raises:
        AlreadyExistsError: if a task with the index lives.
    """
    now = {**known, **record.tasks}
    now = {task: a for task, a in now.items() if a != GONE}
    if index is None:
        old = [t for t, a in record.tasks.items() if a == address or t in dead]
        same = indices(job, [t for t in old if t in now])
        task = task_name(job, same[0] if same else first_free(job, now))
    else:
        task = task_name(job, index)
    there = now.get(task)
    if there == address:
        return record
    if there is not None and task not in dead:
        raise AlreadyExistsError(
            None,
            None,
            f"There is a {task} at {there}, which answers. Leave the index out to get one that is "
            "free, or stop that task first.",
        )
    # One that was dead is where it was, with what its programs give it again.
    is_sharing = record.is_sharing or (there is None and job == SERVERS)
    return changed(record, is_sharing, tasks={task: address})


def without(record: ClusterRecord, tasks: Sequence[str], known: Mapping[str, str]) -> ClusterRecord:
    """The record without some tasks: without all of them but for voters, of whom one goes at a
    time, since two sets of voters must have a majority in common.

    For each server that goes another one stands: what programs ask to be there is at that one.
    """
    gone = [t for t in tasks if {**known, **record.tasks}.get(t, GONE) != GONE]
    voters = [t for t in gone if t in record.voters]
    gone = [t for t in gone if t not in voters[1:]]
    if not gone:
        return record
    made = changed(record, tasks=dict.fromkeys(gone, GONE), moved=_stand_ins(record, gone, known))
    left = {t: start for t, start in record.voters.items() if t not in voters[:1]}
    return replace(made, voters=left or record.voters)


def _stand_ins(
    record: ClusterRecord, gone: Collection[str], known: Mapping[str, str]
) -> dict[str, str]:
    """What the record is to say of moved variables when some tasks go."""
    now = {**known, **record.tasks}
    staying = [t for t, a in now.items() if a != GONE and t not in gone]
    staying = [task_name(SERVERS, index) for index in indices(SERVERS, staying)]
    servers = {task_name(SERVERS, index): index for index in indices(SERVERS, gone)}
    if not staying:
        return {}
    stands = {task: staying[index % len(staying)] for task, index in servers.items()}
    there = {key: stands[task] for key, task in record.moved.items() if task in stands}
    return {**there, **stands}


def with_more_voters(
    before: ClusterRecord, record: ClusterRecord, known: Mapping[str, str]
) -> ClusterRecord:
    """The record with one voter more, where there are too few and it changes none by itself."""
    if not 0 < len(before.voters) < VOTERS or before.voters.keys() != record.voters.keys():
        return record
    left = [t for t, a in {**known, **record.tasks}.items() if a != GONE]
    more = by_weight(t for t in left if t not in record.voters)[:1]
    return replace(record, voters={**record.voters, **dict.fromkeys(more, 0)})


def by_weight(tasks: Iterable[str]) -> list[str]:
    """Tasks in the order in which they are to vote: servers before others.

    >>> by_weight(f"/job:{job}/replica:0/task:{i}" for i in (1, 0) for job in ("worker", "ps"))
    ... # doctest: +NORMALIZE_WHITESPACE
    ['/job:ps/replica:0/task:0', '/job:ps/replica:0/task:1',
     '/job:worker/replica:0/task:0', '/job:worker/replica:0/task:1']
    """

    def order(task: str) -> tuple[bool, str, int]:
        job, _, index = task.removeprefix("/job:").partition("/replica:0/task:")
        return job != SERVERS, job, int(index)

    return sorted(tasks, key=order)
