"""Sums by XLA of a group that ends, or loses a member, while they wait for their place."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace.distributed.collective.by_xla import XlaSums
from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import GroupMember
from headrace.errors import AbortedError, FailedPreconditionError
from headrace.graph.dtypes import float32
from headrace.ops.collective.calls import Call

TASKS = [f"/job:worker/replica:0/task:{i}" for i in range(2)]


@pytest.mark.parametrize("how", ["anew", "lost"])
def test_a_sum_whose_group_is_over_does_not_wait_for_its_place(how):
    """The sum before it never begins: its operation has ended with the group."""
    group = CollectiveGroup(1, 2, (TASKS[0], 1), TASKS[0], 1)
    group.members = [
        GroupMember(task, 1, ("/device:CPU:0",), i + 1) for i, task in enumerate(TASKS)
    ]
    changed, waiting = threading.Condition(), threading.Event()

    def over_links(call):
        waiting.set()
        return np.array([7, -1, -1, 0, 0])  # it is the eighth

    def wait(ready, step):
        with changed:
            assert changed.wait_for(ready, 20)

    sums = XlaSums(TASKS[0], changed, over_links, wait)
    call = Call(
        "reduce", 1, 2, 5, np.ones(3, np.float32), float32, (3,), "Add", "Id", "/device:CPU:0", "op"
    )
    errors = []

    def run():
        try:
            sums.run(call, group, None)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert waiting.wait(20)
    with changed:
        if how == "anew":
            group.given_up(AbortedError(None, None, "All begin anew."))
        else:
            group.lost_members.append(TASKS[1])
        changed.notify_all()
    thread.join()
    wanted = {"anew": (AbortedError, "All begin anew"), "lost": (FailedPreconditionError, "left")}
    kind, text = wanted[how]
    assert isinstance(errors[0], kind)
    assert text in errors[0].message
