"""What a master does when steps are to be held, in orders that threads and links may bring."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.distributed.master.held_steps import HeldSteps
from headrace.distributed.master.plans import Turnstile
from headrace.distributed.protocol import step_pb2 as pb
from headrace.step.moved import MovedVariables

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
HOLD, END = pb.MoveTold.HOLD, pb.MoveTold.END


class Gate(Turnstile):
    """Calls something when it is about to be closed."""

    before: Any = None

    def hold(self, why, on_empty):
        if self.before is not None:
            self.before()
        super().hold(why, on_empty)


class Plan:
    """What is asked of a plan here."""

    def __init__(self):
        self.gate = Gate()
        self.variables = {"v"}
        self.is_alone = False

    @property
    def is_held(self):
        return bool(self.gate._held)


class Session:
    def __init__(self, moved, count=1):
        self.graph, self.moved = None, moved
        self.plans = {i: Plan() for i in range(count)}


@pytest.fixture
def master():
    moved = MovedVariables()
    session = Session(moved, 2)
    made = HeldSteps(WORKER, moved, lambda: [session])
    made.session = session
    made.answers = []
    return made


def tell(master, stage, number=1, **fields):
    message = pb.MoveTold(move=number, stage=stage, keys=["v"], task=PS, **fields)
    master.told(PS, message, master.answers.append)


def test_gates_that_close_after_the_end_are_opened(master):
    """The link is lost, or the end comes by another one, while gates are being closed."""
    for how in (lambda: tell(master, END, 1), lambda: master.lost(PS)):
        plans = list(master.session.plans.values())
        for plan in plans:
            plan.gate.before = how
        tell(master, HOLD, 1)
        assert not any(plan.is_held for plan in plans)
        master._over.clear()


def test_who_asks_twice_gets_two_answers(master):
    """Another plan was registered meanwhile, for which the task asks again."""
    gate = next(iter(master.session.plans.values())).gate
    gate.enter(None, lambda: None)
    tell(master, HOLD)
    tell(master, HOLD)
    assert master.answers == []
    gate.leave()
    assert len(master.answers) == 1
    tell(master, HOLD)
    assert [said.stage for said in master.answers] == [HOLD, HOLD]
    tell(master, END)
    tell(master, HOLD)
    assert len(master.answers) == 2


def test_steps_are_held_for_longer_only_while_they_are_held(master):
    now = 100.0
    master.clock = lambda: now
    plans = master.session.plans.values()
    tell(master, HOLD)
    now = 108.0
    tell(master, HOLD, renew=True)
    assert master.answers[-1].renew
    assert not master.answers[-1].HasField("failure")
    master.tick(117.0)
    assert all(plan.is_held for plan in plans)
    master.tick(119.0)
    assert not any(plan.is_held for plan in plans)
    tell(master, HOLD, renew=True)
    assert "does not hold these steps any more" in master.answers[-1].failure.message
    assert not any(plan.is_held for plan in plans)
