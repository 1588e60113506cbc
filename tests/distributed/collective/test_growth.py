"""Groups that grow and shrink over random schedules: all go on together, from the one ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
import pytest
from random_schedules import run_schedules
from simulated_growth import KEY, SUMMED, SimulatedGrowth, name_of

from headrace.errors import AbortedError
from headrace.graph import dtypes
from headrace.ops.collective.calls import Call

#: Two that came waited for each other in a generation that the others had left.
LEFT_BEHIND = 8676
#: All died that the last one that had trained waited for, to be admitted.
LEFT_ALONE = 4448


def _run(seeds: Iterable[int]) -> list[SimulatedGrowth]:
    return run_schedules(SimulatedGrowth, seeds, steps=1500)


def test_tasks_come_and_go_over_random_schedules() -> None:
    found = _run(range(80))
    assert sum(g.joined for g in found) > 50
    assert sum(g.returned for g in found) > 30
    assert sum(g.kills for g in found) > 50


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_tasks_come_and_go_over_thousands_of_schedules() -> None:
    for begin in range(1000, 11_000, 1000):
        _run(range(begin, begin + 1000))


def test_newcomers_that_wait_in_a_generation_that_the_others_have_left() -> None:
    _run([LEFT_BEHIND])


def test_one_that_waits_for_those_who_have_all_died() -> None:
    _run([LEFT_ALONE])


class _Directed(SimulatedGrowth):
    """Three tasks whose messages go when the test says so."""

    def __init__(self) -> None:
        super().__init__(next(s for s in range(100) if SimulatedGrowth(s).size == 3))

    def deliver_all(self, *without: str) -> None:
        """All messages, but those of some pairs of tasks (as "02") stay on their way."""
        for _ in range(200):
            for (sender, receiver), wire in sorted(self.wires.items()):
                while wire and sender[-1] + receiver[-1] not in without:
                    item = wire.popleft()
                    self.wires[sender, receiver], kept = deque([item]), wire
                    self.deliver_one(sender, receiver)
                    self.wires[sender, receiver] = kept
            while self.probes:
                self.answer()
            if not any(w for (a, b), w in self.wires.items() if a[-1] + b[-1] not in without):
                return

    def deliver_one(self, sender: str, receiver: str) -> None:
        others = {p: w for p, w in self.wires.items() if p != (sender, receiver)}
        self.wires = {(sender, receiver): self.wires[sender, receiver]}
        self.deliver()
        found, self.wires = self.wires, others
        for pair, wire in found.items():
            self.wires.setdefault(pair, deque()).extend(wire)

    def let(self, *numbers: int, times: int = 1) -> None:
        """These tasks go on."""
        for _ in range(times):
            for number in numbers:
                next(self.nodes[name_of(number)].work, None)

    def end(self, number: int) -> None:
        node = self.nodes[name_of(number)]
        node.alive = False
        for other in self.nodes:
            if other != node.name:
                self.break_wire(other, node.name)


def _with_one_that_goes_on() -> _Directed:
    """Task 1 is started again, asks both others, and goes on with task 2, while task 0, that was
    started again, too, has heard nothing but that it is there."""
    world = _Directed()
    for _ in range(20):
        world.let(0, 1, 2)
        world.deliver_all()
    assert all(node.steps > 1 for node in world.living)
    world.end(0)
    world.end(1)
    for _ in range(20):
        world.deliver_all()
        world.let(2)
    world.start(0)
    world.start(1)
    world.let(0, 1)
    world.deliver_all()
    assert [m[-1] for m in world.nodes[name_of(0)].groups.groups[KEY]._joined] == ["0", "1"]
    # It asks the others, too, after a while. That task 0 is there task 2 hears later.
    for _ in range(2):
        node = world.nodes[name_of(1)]
        node.do(node.groups.tick())
    world.deliver_all("02", "10")
    assert world.nodes[name_of(1)].groups.generations.wants_more(KEY)
    return world


def test_a_leader_forgets_who_has_gone_on_elsewhere() -> None:
    """Else it forms a group with it beside the one that runs, which waits for it for ever."""
    world = _with_one_that_goes_on()
    world.deliver_all("02")
    assert [m[-1] for m in world.nodes[name_of(0)].groups.groups[KEY]._joined] == ["0"]
    for _ in range(20):
        world.let(1, 2)
        world.deliver_all("02")
    world.end(2)
    world.start(2)
    for _ in range(20):
        world.let(0, 2)
        world.deliver_all("01", "02", "21")
    assert not world.nodes[name_of(0)].groups.groups[KEY].is_formed
    world.settle()


def test_a_leader_that_loses_the_link_does_not_wait_for_who_goes_on() -> None:
    world = _with_one_that_goes_on()
    world.break_wire(name_of(0), name_of(1))
    world.deliver_all("02")
    assert [m[-1] for m in world.nodes[name_of(0)].groups.groups[KEY]._joined] == ["0"]
    world.settle()


def test_a_group_that_was_formed_with_who_goes_on_waits_anew() -> None:
    """That it has gone on comes after the group was formed with it."""
    world = _with_one_that_goes_on()
    for _ in range(20):
        world.let(1, 2)
        world.deliver_all("02", "10")
    world.end(2)
    world.start(2)
    for _ in range(4):
        world.let(0, 2)
        world.deliver_all("01", "10", "21", "12")
    leader = world.nodes[name_of(0)].groups
    assert [t[-1] for t in leader.groups[KEY].tasks] == ["0", "1", "2"]
    world.deliver_all()
    assert leader.generations.wants_more(KEY)
    world.settle()


def _with_one_that_waits_outside() -> _Directed:
    """Task 0 was taken for dead, has heard of the newest generation, which is that of tasks 1 and
    2, and waits for these to admit it; they have not heard of it yet."""
    world = _Directed()
    for _ in range(20):
        world.let(0, 1, 2)
        world.deliver_all()
    outside, last = world.nodes[name_of(0)], world.nodes[name_of(2)]
    outside.is_frozen = True
    for number in (1, 2):
        world.break_wire(name_of(0), name_of(number))
    for _ in range(2):
        for _ in range(20):
            world.deliver_all("10", "20")
            world.let(1, 2)
        world.nodes[name_of(1)].fails = True
        for _ in range(4):
            world.let(1)
            world.deliver_all("10", "20")
    outside.is_frozen = False
    # That task 2 is there task 1 hears late, so it tells all what it waits for.
    world.let(2, times=3)
    for _ in range(2):
        last.do(last.groups.tick())
    for _ in range(10):
        world.deliver_all("01", "02", "21")
        world.let(0)
    for _ in range(20):
        world.deliver_all("01", "02")
        world.let(1, 2)
    assert [m.task[-1] for m in outside.groups.generations.newest_members(KEY)] == ["1", "2"]
    assert not outside.groups.generations.wants_more(KEY)
    assert last.step > outside.step > 0
    return world


@pytest.mark.parametrize("is_told", [True, False])
def test_a_task_goes_on_once_all_have_died_that_it_waits_for(is_told: bool) -> None:
    world = _with_one_that_waits_outside()
    outside = world.nodes[name_of(0)]
    reached = outside.step
    for number in (1, 2):
        world.end(number)
        if not is_told:  # it has no link to them
            del world.wires[name_of(number), outside.name]
            world.start(number)
    world.settle()
    assert outside is world.nodes[name_of(0)]
    assert min(node.step for node in world.living) > reached


def test_a_task_asks_who_may_have_gone_on_before_it_goes_on_alone() -> None:
    """Those that it waits for have died, but one that came to them lives, and admits it."""
    world = _with_one_that_waits_outside()
    outside = world.nodes[name_of(0)]
    world.end(1)
    world.start(1)
    successor = world.nodes[name_of(1)]
    withheld = ("01", "02", "10", "20")
    for _ in range(20):
        world.let(1, 2)
        successor.do(successor.groups.tick())
        world.deliver_all(*withheld)
    world.end(2)
    for _ in range(20):
        world.deliver_all(*withheld)
        world.let(1)
    assert successor.step > outside.step
    world.break_wire(name_of(0), name_of(1))
    waited_for = outside.groups.generations.newest_number(KEY)
    while outside.groups.generations.newest_number(KEY) == waited_for:
        world.deliver_all()
        outside.do(outside.groups.tick())
    found = outside.groups.generations.newest_members(KEY)
    assert [m[:2] for m in found] == [(n.name, n.incarnation) for n in (outside, successor)]
    world.settle()


def test_an_operation_of_a_generation_that_ended_meanwhile_does_not_wait() -> None:
    """Another member begins anew between two looks of this one at where it is."""
    world = _Directed()
    for _ in range(20):
        world.let(0, 1, 2)
        world.deliver_all()
    own = world.nodes[name_of(1)].groups
    devices = ("/device:CPU:0",)
    call = Call(
        "reduce", KEY, 3, SUMMED, np.zeros(3), dtypes.float64, (3,), "Add", "", devices[0], "op"
    )
    found = own.in_generation(call)
    world.nodes[name_of(0)].fails = True
    world.let(0, times=3)
    world.deliver_all()
    with pytest.raises(AbortedError, match="was made anew"):
        own.joined(found)
    assert found.group_key not in own.groups
    # The same while the devices of a task divide what the tasks have summed.
    with pytest.raises(AbortedError, match="was made anew"):
        own.running(found.group_key)
