"""A group that grows and shrinks: the collectives of tasks whose sessions train, without threads.

Each task runs what the hook of an `AllReduceOptimizer` and its steps run: a broadcast of the first
member when it begins, the values of the member that is ahead when its session is made anew, and
then a sum in each step. Tasks die, are started again, come beyond the first ones, have sessions
made anew for reasons of their own, and are stopped for so long that they are taken for dead;
messages come late, and are lost with their links.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.distributed.collective.parts import Action, LifeProbe, Send, own_error
from headrace.distributed.collective.refusals import begun_anew
from headrace.distributed.collective.task_groups import TaskGroups
from headrace.errors import AbortedError, OpError
from headrace.graph import dtypes
from headrace.ops.collective.calls import Call

KEY = 1
FIRST, SHARED, SUMMED = 100, 101, 102


def name_of(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


class Node:
    """One start of a task.

    Attributes:
        step: its global step, which stands for all variables.
    """

    def __init__(self, world: SimulatedGrowth, number: int, incarnation: int) -> None:
        self.name, self.incarnation = name_of(number), incarnation
        self.groups = TaskGroups((self.name, incarnation), world.addresses)
        self.groups.first = frozenset(map(name_of, range(world.size)))
        self.world, self.number = world, number
        self.step = self.steps = self.sessions = 0
        self.alive, self.is_anew = True, False
        self.fails = self.is_frozen = False
        self.error: OpError | None = None
        self.work = self.train()

    def train(self) -> Iterator[None]:
        while True:
            try:
                yield from self.session()
            except AbortedError:
                self.sessions += 1
                yield
            except OpError as error:
                self.error = error
                return

    def session(self) -> Iterator[None]:
        self.do(self.groups.begin_anew(KEY))
        if self.is_anew:
            ahead = yield from self.run("reduce", SHARED, np.int64([self.step]), "Max")
            assert ahead[0] >= self.step, "a step that was reported is lost"
            self.step = int(ahead[0])
        else:
            self.is_anew = True
            given = np.int64([self.step]) if self.number == 0 else None
            self.step = int((yield from self.run("broadcast", FIRST, given))[0])
        while True:
            if self.fails:
                self.fails = False
                raise begun_anew(KEY)
            told = np.float64([1, self.step, self.step**2])
            count, total, squares = yield from self.run("reduce", SUMMED, told, "Add")
            assert count * squares == total**2, "members of one sum have other variables"
            self.step += 1
            self.steps += 1
            yield

    def do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self.world.put(self.name, action)
            elif isinstance(action, LifeProbe):
                self.world.probes.append((self, action))

    def run(self, kind: str, instance: int, value: Any, merge: str = "Add") -> Iterator[None]:
        """What `TaskCollectives.run` does, with pauses in the place of waits."""
        shape, dtype = (3,), dtypes.float64
        if instance != SUMMED:
            shape, dtype = (1,), dtypes.int64
        more = {"merge": merge, "final": "Id"} if kind == "reduce" else {}
        call = Call(
            kind, KEY, self.world.size, instance, value, dtype, shape, name="op",
            device="/device:CPU:0", **more,
        )  # fmt: skip
        call = self.groups.in_generation(call)
        group, actions = self.groups.joined(call)
        self.do(actions)
        while not group.is_formed:
            yield
        if group.refused is not None:
            raise own_error(group.refused)
        work, actions = self.groups.running(call.group_key).begin(call, 0.0)
        self.do(actions)
        while not work.ended:
            yield
        if work.error is not None:
            raise own_error(work.error)
        assert work.result is not None
        return work.result


class SimulatedGrowth:
    """Tasks that train together.

    Attributes:
        size: how many begin; joined, kills: what has happened.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.size = self.random.choice([2, 2, 3, 4])
        self.addresses = {name_of(i): f"host{i}:1" for i in range(self.size)}
        self.wires: dict[tuple[str, str], deque[Any]] = {}
        self.probes: list[tuple[Node, LifeProbe]] = []
        self.starts = self.kills = self.joined = self.cuts = self.returned = self.freezes = 0
        self.nodes: dict[str, Node] = {}
        for number in range(self.size):
            self.start(number)

    def start(self, number: int) -> None:
        self.starts += 1
        self.addresses[name_of(number)] = f"host{number}:1"
        self.nodes[name_of(number)] = Node(self, number, self.starts)

    @property
    def living(self) -> list[Node]:
        return [n for n in self.nodes.values() if n.alive]

    @property
    def awake(self) -> list[Node]:
        return [n for n in self.living if not n.is_frozen]

    # -- the network ------------------------------------------------------------------------------

    def put(self, sender: str, action: Send) -> None:
        value = None if action.value is None else np.array(action.value)
        if action.task in self.nodes and self.nodes[action.task].alive:
            self.wires.setdefault((sender, action.task), deque()).append((action.message, value))
        else:
            self.wires.setdefault((action.task, sender), deque()).append(None)

    def deliver(self) -> None:
        frozen = {n.name for n in self.living if n.is_frozen}
        full = [pair for pair, wire in self.wires.items() if wire and pair[1] not in frozen]
        if not full:
            return
        sender, receiver = self.random.choice(full)
        item = self.wires[sender, receiver].popleft()
        node = self.nodes.get(receiver)
        if node is None or not node.alive:
            return
        if item is None:
            node.do(node.groups.lost(sender))
            return
        node.do(node.groups.received(sender, *item))

    def answer(self) -> None:
        if self.probes:
            place = self.random.randrange(len(self.probes))
            own, probe = self.probes.pop(place)
            node = self.nodes.get(probe.task)
            alive = node is not None and node.alive and node.incarnation == probe.incarnation
            alive = alive and not node.is_frozen
            if self.nodes[own.name] is own and own.alive:
                own.do(own.groups.verdict(probe, alive))

    def break_wire(self, one: str, other: str) -> None:
        for pair in ((one, other), (other, one)):
            self.wires.pop(pair, None)
            if pair[1] in self.nodes and self.nodes[pair[1]].alive:
                self.wires[pair] = deque([None])

    # -- what happens -----------------------------------------------------------------------------

    def train(self) -> None:
        if self.awake:
            next(self.random.choice(self.awake).work, None)

    def tick(self) -> None:
        if self.awake:
            node = self.random.choice(self.awake)
            node.do(node.groups.tick())

    def kill(self) -> None:
        """A task dies; one of the first ones is always left that has begun to train."""
        trained = [n for n in self.living if n.steps]
        first = [n for n in trained if n.number < self.size]
        dying = trained if len(first) > 1 else [n for n in trained if n not in first]
        if dying and self.random.random() < 0.03:
            node = self.random.choice(dying)
            node.alive = False
            self.kills += 1
            for other in self.nodes:
                if other != node.name:
                    self.break_wire(other, node.name)

    def come_back(self) -> None:
        for node in list(self.nodes.values()):
            if not node.alive and self.random.random() < 0.03:
                self.returned += 1
                self.start(node.number)

    def join(self) -> None:
        trained = any(n.steps for n in self.living)
        if trained and len(self.nodes) < 6 and self.random.random() < 0.02:
            self.joined += 1
            self.start(len(self.nodes))

    def fail(self) -> None:
        """A session is made anew for a reason of its own."""
        if self.living and self.random.random() < 0.02:
            self.random.choice(self.living).fails = True

    def cut(self) -> None:
        if len(self.living) > 1 and self.random.random() < 0.01:
            one, other = self.random.sample([n.name for n in self.living], 2)
            self.cuts += 1
            self.break_wire(one, other)

    def freeze(self) -> None:
        """A task is stopped for so long that its links are lost; or goes on after that."""
        frozen = [n for n in self.living if n.is_frozen]
        if frozen and self.random.random() < 0.1:
            self.random.choice(frozen).is_frozen = False
        trained = [n for n in self.awake if n.steps]
        if trained and len(self.awake) > 1 and self.random.random() < 0.01:
            node = self.random.choice(trained)
            node.is_frozen = True
            self.freezes += 1
            for other in self.nodes:
                if other != node.name:
                    self.break_wire(other, node.name)

    def step(self) -> None:
        events = [self.deliver] * 12 + [self.train] * 8 + [self.tick, self.answer, self.answer]
        faults = [self.kill, self.come_back, self.join, self.fail, self.cut, self.freeze]
        self.random.choice([*events, *faults])()
        self.check()

    def check(self) -> None:
        for node in self.living:
            assert node.error is None, f"{node.name}: {node.error}"

    def settle(self) -> None:
        """Without more faults all train together: no step waits for ever."""
        for node in list(self.nodes.values()):
            node.is_frozen = False
            if not node.alive:
                self.start(node.number)
        wanted: dict[str, int] | None = None
        for _ in range(30_000):
            events = [self.deliver] * 12 + [self.train] * 8 + [self.tick, self.answer, self.answer]
            self.random.choice(events)()
            self.check()
            groups = [n.groups.generations.number_of(KEY) for n in self.living]
            if len(set(groups)) > 1:
                wanted = None
            elif wanted is None:
                wanted = {n.name: n.steps + 3 for n in self.living}
            elif all(n.steps >= wanted[n.name] for n in self.living):
                return
        raise AssertionError(f"stuck: {[(n.name, n.steps) for n in self.living]}, {groups}")
