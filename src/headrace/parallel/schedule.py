"""In which order the stages of a pipeline do their work: pure lists, no graph.

A stage has two items of work for each micro-batch, forward and backward. A schedule gives each
stage the order of its items; `in_order` puts the items of all stages into one list that each may
follow, which shows that no stage waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.errors import suggest

FORWARD: Final = "forward"
BACKWARD: Final = "backward"


class Item(NamedTuple):
    """The work of one stage for one micro-batch, in one direction."""

    stage: int
    direction: str
    micro_batch: int


def gpipe(stages: int, micro_batches: int) -> list[list[Item]]:
    """All micro-batches forward, then all backward, the last one first.

    A stage keeps what its backward pass needs of all micro-batches. Source: Huang et al., "GPipe:
    Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2019, section 2.

    >>> [f"{i.direction[0]}{i.micro_batch}" for i in gpipe(2, 3)[0]]
    ['f0', 'f1', 'f2', 'b2', 'b1', 'b0']
    """
    forward = range(micro_batches)
    return [
        [Item(s, FORWARD, m) for m in forward] + [Item(s, BACKWARD, m) for m in reversed(forward)]
        for s in range(stages)
    ]


def one_forward_one_backward(stages: int, micro_batches: int) -> list[list[Item]]:
    """As soon as a micro-batch has come through, its backward pass takes turns with forward ones.

    A stage keeps what its backward pass needs of no more micro-batches than there are stages from
    it on. Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
    2019, section 3.2, with an update for the whole batch as in "Memory-Efficient Pipeline-Parallel
    DNN Training", 2021 (PipeDream-Flush).

    >>> [f"{i.direction[0]}{i.micro_batch}" for i in one_forward_one_backward(2, 3)[0]]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    orders = []
    for stage in range(stages):
        ahead = min(stages - stage, micro_batches)
        items = [Item(stage, FORWARD, m) for m in range(ahead)]
        for done in range(micro_batches):
            items.append(Item(stage, BACKWARD, done))
            if done + ahead < micro_batches:
                items.append(Item(stage, FORWARD, done + ahead))
        orders.append(items)
    return orders


SCHEDULES: Final = {"1f1b": one_forward_one_backward, "gpipe": gpipe}


def orders_of(schedule: str, stages: int, micro_batches: int) -> list[list[Item]]:
    """The order of each stage's items.

    Raises:
      ValueError: there is no such schedule.
    """
    if schedule not in SCHEDULES:
        near = suggest(schedule, SCHEDULES) if isinstance(schedule, str) else ""
        raise ValueError(
            f"There is no pipeline schedule {schedule!r}.{near} There are "
            f"{' and '.join(map(repr, SCHEDULES))}."
        )
    return SCHEDULES[schedule](stages, micro_batches)


def in_order(orders: Sequence[Sequence[Item]]) -> list[Item]:
    """All items, each behind those it needs and behind the item of its stage before it.

    Raises:
      ValueError: the stages would wait for each other.
    """
    last = len(orders) - 1
    done: set[Item] = set()
    at = [0] * len(orders)
    result: list[Item] = []
    total = sum(map(len, orders))
    while len(result) < total:
        before = len(result)
        for stage, items in enumerate(orders):
            if at[stage] < len(items) and done.issuperset(_needs(items[at[stage]], last)):
                item = items[at[stage]]
                at[stage] += 1
                done.add(item)
                result.append(item)
        if len(result) == before:
            waiting = [items[i] for items, i in zip(orders, at, strict=True) if i < len(items)]
            raise ValueError(f"The stages of the pipeline wait for each other: {waiting}.")
    return result


def _needs(item: Item, last: int) -> list[Item]:
    """What must be done before an item, apart from earlier items of its own stage."""
    stage, direction, micro_batch = item
    if direction == FORWARD:
        return [Item(stage - 1, FORWARD, micro_batch)] if stage else []
    needs = [Item(stage, FORWARD, micro_batch)]
    if stage < last:
        needs.append(Item(stage + 1, BACKWARD, micro_batch))
    return needs
