"""Which tasks hold the others up, by comparison with the median of their job."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from headrace.operations.readings import TaskRates

__all__ = ["stragglers"]

#: A task with less than this part of the median of steps is slow.
_SLOW = 0.7
#: So much more of anything than the median is much.
_MUCH = 1.5
#: What is compared must be this part of the time of a step: less makes no difference.
_PART = 0.2
#: Steps in a second, below which nothing is said.
_LEAST_RATE = 1e-6


def stragglers(tasks: Sequence[TaskRates]) -> dict[str, str]:
    """The tasks that are slower than others of their job, and in what.

    Where workers do not wait for each other, the slow one has fewer steps. Where they train in
    step, all have as many, and the slow one is that which does more between its steps (reads its
    input) or uses more time of processors for each.

    >>> def worker(index, rate):
    ...     return TaskRates(f"worker/{index}", "worker", steps_rate=rate)
    >>> stragglers([worker(0, 10.0), worker(1, 9.5), worker(2, 4.0)])
    {'worker/2': '0.41 of the median of steps'}
    """
    found = {}
    for job in sorted({task.job for task in tasks}):
        busy = [t for t in tasks if t.job == job and (t.steps_rate or 0.0) > _LEAST_RATE]
        if len(busy) < 2:
            continue
        for task in busy:
            why = _why(task, [other for other in busy if other is not task])
            if why:
                found[task.task] = why
    return found


def _why(task: TaskRates, others: Sequence[TaskRates]) -> str:
    rate = task.steps_rate or 0.0
    usual = median(other.steps_rate or 0.0 for other in others)
    if rate < _SLOW * usual:
        return f"{rate / usual:.2f} of the median of steps"
    period = 1.0 / rate
    idle = task.idle_seconds or 0.0
    usual_idle = median(other.idle_seconds or 0.0 for other in others)
    if idle > _MUCH * usual_idle and idle - usual_idle > _PART * period:
        return f"{idle * 1e3:.1f} ms between steps, others {usual_idle * 1e3:.1f}"
    own = _cpu(task)
    usual_cpu = median(_cpu(other) for other in others)
    if own > _MUCH * usual_cpu and own - usual_cpu > _PART * period:
        return f"{own * 1e3:.1f} ms of processors for a step, others {usual_cpu * 1e3:.1f}"
    return ""


def _cpu(task: TaskRates) -> float:
    """Seconds of processors for a step."""
    return (task.cores or 0.0) / (task.steps_rate or 1.0)
