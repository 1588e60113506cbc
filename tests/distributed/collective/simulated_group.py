"""Groups alone: no sockets, no threads, no clock. What happens next is drawn at random.

Messages between two tasks come in order, unless their link is cut: then those under way are gone,
and both ends hear of it some time later. Tasks die. Each task runs its operations one after the
other, several kinds of them at the same time.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import Ended, Formed, LifeProbe, Send, Work
from headrace.graph import dtypes
from headrace.ops.collective.calls import Call


def name_of(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


class Node:
    """A task."""

    def __init__(self, number: int, size: int) -> None:
        self.name = name_of(number)
        self.number = number
        self.group = CollectiveGroup(1, size, (self.name, number + 1), name_of(0))
        self.alive = True
        self.done: dict[tuple[int, int], Work] = {}


class Simulation:
    """``size`` tasks in one group.

    Args:
        make: ``make(number, instance, sequence)``: the call of a task.
        instances, runs: which operations each task runs, and how often.
    """

    def __init__(
        self, size: int, seed: int, make: Callable[[int, int, int], Call], instances=(1,), runs=3
    ) -> None:
        self.rng = random.Random(seed)
        self.make, self.instances, self.runs = make, instances, runs
        self.nodes = [Node(i, size) for i in range(size)]
        self.by_name = {n.name: n for n in self.nodes}
        #: For each pair, messages and news of losses.
        self.wires: dict[tuple[str, str], deque[Any]] = {}
        self.busy: list[tuple[str, str]] = []
        self.pending: list[Callable[[], None]] = []
        self.most_early = 0
        for node in self.nodes:
            self.do(node, node.group.join("/device:CPU:0"))
            for instance in instances:
                self.begin(node, instance, 1)

    def begin(self, node: Node, instance: int, sequence: int) -> None:
        work, actions = node.group.begin(self.make(node.number, instance, sequence), 0.0)
        assert work.sequence == sequence
        self.do(node, actions)

    def do(self, node: Node, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, Send):
                value = None if action.value is None else np.array(action.value)
                self.put(node.name, action.task, ("message", action.message, value))
            elif isinstance(action, LifeProbe):
                self.pending.append(lambda a=action: self.answer(node, a))
            elif isinstance(action, Ended):
                self.ended(node, action.work)
            else:
                assert isinstance(action, Formed)

    def put(self, source: str, target: str, item: Any) -> None:
        wire = self.wires.setdefault((source, target), deque())
        if not wire:
            self.busy.append((source, target))
        wire.append(item)

    def answer(self, node: Node, probe: LifeProbe) -> None:
        if node.alive:
            alive = self.by_name[probe.task].alive
            self.do(node, node.group.verdict(probe.task, probe.incarnation, alive))

    def ended(self, node: Node, work: Work) -> None:
        instance, sequence = work.run
        assert work.run not in node.done
        node.done[work.run] = work
        if sequence < self.runs:
            self.pending.append(lambda: self.next(node, instance, sequence + 1))

    def next(self, node: Node, instance: int, sequence: int) -> None:
        if node.alive:
            self.begin(node, instance, sequence)

    # -- faults -----------------------------------------------------------------------------------

    def cut(self, one: str, other: str) -> None:
        """What is under way is gone; each end hears of it behind that."""
        for source, target in ((one, other), (other, one)):
            wire = self.wires.get((source, target))
            if wire:
                wire.clear()
                self.busy.remove((source, target))
            if self.by_name[target].alive:
                self.put(source, target, ("lost", None, None))

    def kill(self, node: Node) -> None:
        node.alive = False
        for other in self.nodes:
            if other is not node:
                self.cut(node.name, other.name)

    # -- time -------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One thing happens; false if nothing is left to happen."""
        choices = len(self.busy) + len(self.pending)
        if not choices:
            return False
        choice = self.rng.randrange(choices)
        if choice >= len(self.busy):
            place = choice - len(self.busy)
            self.pending[place], self.pending[-1] = self.pending[-1], self.pending[place]
            self.pending.pop()()
            return True
        source, target = self.busy[choice]
        wire = self.wires[source, target]
        kind, message, value = wire.popleft()
        if not wire:
            self.busy[choice] = self.busy[-1]
            self.busy.pop()
        node = self.by_name[target]
        if node.alive:
            group = node.group
            if kind == "lost":
                self.do(node, group.lost(source))
            else:
                self.do(node, group.received(source, message, value))
            early = sum(map(len, group._early.values())) + len(group._later)
            self.most_early = max(self.most_early, early)
        return True

    def run(self, faults: Callable[[int], None] = lambda step: None, most: int = 200_000) -> None:
        """Until nothing is left to do, with faults before each step; time passes when all rest."""
        quiet = 0
        for number in range(most):
            faults(number)
            if self.step():
                quiet = 0
                continue
            if self.is_over or quiet > 100:
                return
            quiet += 1
            for node in self.nodes:
                if node.alive:
                    self.do(node, node.group.tick())
        raise AssertionError("it goes on and on")

    @property
    def is_over(self) -> bool:
        wanted = len(self.instances) * self.runs
        return all(len(n.done) == wanted for n in self.nodes if n.alive)


def call(kind: str, size: int, instance: int, value: Any, **more: Any) -> Call:
    """A call of a simulated task."""
    array = None if value is None else np.asarray(value)
    shape = more.pop("shape", None) or array.shape
    dtype = more.pop("dtype", None) or dtypes.as_dtype(array.dtype)
    fields = {"merge": "Add", "final": "Id", **more} if kind in ("reduce", "scatter") else more
    return Call(kind, 1, size, instance, array, dtype, tuple(shape), name=f"op{instance}", **fields)
