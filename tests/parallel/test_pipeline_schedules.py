"""Schedules of pipelines: nobody waits for ever, what is kept is bounded, how long a step takes."""

from __future__ import annotations

import itertools

import pytest

from headrace.parallel.schedule import (
    BACKWARD,
    FORWARD,
    SCHEDULES,
    Item,
    gpipe,
    in_order,
    one_forward_one_backward,
    orders_of,
)

SIZES = list(itertools.product((1, 2, 3, 5, 8), (1, 2, 3, 4, 7, 16)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_stage_does_all_its_work_and_none_waits_for_ever(schedule):
    for stages, micro_batches in SIZES:
        orders = orders_of(schedule, stages, micro_batches)
        everything = {
            Item(s, d, m)
            for s in range(stages)
            for d in (FORWARD, BACKWARD)
            for m in range(micro_batches)
        }
        items = in_order(orders)
        assert set(items) == everything
        assert len(items) == len(everything)
        for stage, order in enumerate(orders):
            assert [i for i in items if i.stage == stage] == order


def most_kept(order):
    """How many micro-batches a stage keeps values of, at most."""
    kept = most = 0
    for item in order:
        kept += 1 if item.direction == FORWARD else -1
        most = max(most, kept)
    return most


def test_one_forward_one_backward_keeps_as_many_as_there_are_stages_from_it_on():
    for stages, micro_batches in SIZES:
        for stage, order in enumerate(one_forward_one_backward(stages, micro_batches)):
            assert most_kept(order) == min(stages - stage, micro_batches)
        for order in gpipe(stages, micro_batches):
            assert most_kept(order) == micro_batches


def duration(orders, forward, backward):
    """How long a step takes if nothing but the work takes time."""
    last = len(orders) - 1
    ends = {}
    free = [0] * len(orders)
    for item in in_order(orders):
        stage, direction, number = item
        if direction == FORWARD:
            ready = ends[Item(stage - 1, FORWARD, number)] if stage else 0
            takes = forward
        else:
            ready = ends[Item(stage, FORWARD, number)]
            if stage < last:
                ready = max(ready, ends[Item(stage + 1, BACKWARD, number)])
            takes = backward
        ends[item] = free[stage] = max(ready, free[stage]) + takes
    return max(ends.values())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_step_takes_as_long_as_the_papers_say(schedule):
    """(micro-batches + stages - 1) times the work of a stage: GPipe, section 2.2."""
    for stages, micro_batches in SIZES:
        took = duration(orders_of(schedule, stages, micro_batches), 1, 2)
        assert took == (micro_batches + stages - 1) * 3


def test_orders_that_wait_for_each_other_are_refused():
    orders = gpipe(2, 1)
    orders[1].reverse()
    with pytest.raises(ValueError, match="wait for each other"):
        in_order(orders)


def test_there_is_no_other_schedule():
    with pytest.raises(ValueError, match=r"no pipeline schedule 'gpip'. Did you mean 'gpipe'"):
        orders_of("gpip", 2, 2)
