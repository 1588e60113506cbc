"""Step timelines over all tasks: the traces of each, on one clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.distributed.steps.results import PartResult
from headrace.executor.errands import Limit

if TYPE_CHECKING:
    from headrace.distributed.master.plans import ClusterPlan


def run_traced(
    plan: ClusterPlan,
    feeds: Sequence[Any],
    options: Any,
    metadata: Any,
    limit: Limit | None = None,
) -> list[Any]:
    """Run a step under RunOptions; fills the RunMetadata message ``metadata`` if it is given.

    Every unit of work and every wait of every task stands in ``step_stats``, by the clock of the
    master: the offset of a task's clock is what makes its span lie in the middle of the time
    between question and answer (as NTP does).
    """
    if limit is None and options is not None and options.timeout_in_ms > 0:
        limit = Limit(options.timeout_in_ms)
    trace = options.trace_level if options is not None else 0
    asked = time.time()
    registered, results = plan.run_parts(feeds, limit, trace)
    if metadata is not None:
        metadata.Clear()
        gather(metadata.step_stats, plan.session.task, asked, results)
    return registered.assemble(feeds, results)


def gather(
    into: Any, own: str, asked: float, results: Mapping[str, PartResult]
) -> dict[str, float]:
    """Put what tasks have traced into one StepStats message, by the clock of the own task.

    Args:
        asked: when they were, in seconds since the epoch.

    Returns:
        How many seconds the clock of each task is ahead.
    """
    offsets = {}
    for task, result in sorted(results.items()):
        if result.stats is not None:
            offsets[task] = 0.0 if task == own else clock_offset(asked, result)
            _merge(into, result.stats, offsets[task])
    return offsets


def clock_offset(asked: float, result: PartResult) -> float:
    """How many seconds a task's clock is ahead of the one that asked."""
    return ((result.began - asked) + (result.ended - result.arrived)) / 2


def _merge(into: Any, stats: Any, offset: float) -> None:
    shift = int(offset * 1e6)
    for device in stats.dev_stats:
        made = into.dev_stats.add()
        made.CopyFrom(device)
        for node in made.node_stats:
            node.all_start_micros -= shift
