"""Variables, and tables that sessions share, that are in another task than their device says.

Both are called variables here.

>>> moved = MovedVariables()
>>> moved.set(3, {"w": "/job:ps/replica:0/task:2"})
True
>>> moved.epoch, moved.task_of("w")
(3, '/job:ps/replica:0/task:2')
>>> moved.set(2, {})
False
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from headrace.executor.resources import ResourceHandle, handle_for
from headrace.graph import dtypes
from headrace.passes.ir import Node

__all__ = ["MOVING", "NOWHERE", "MovedVariables", "groups_with", "key_of", "variables_of"]

_NOTHING: Mapping[str, str] = MappingProxyType({})
#: The kinds of resources that move.
MOVING = frozenset({"variable", "table", "table of embeddings"})


class MovedVariables:
    """Where variables are that were moved.

    Attributes:
        epoch: of the record of the cluster that says so.
        tasks: full name of the task by `key_of` of the variable; replaced as a whole. The full name
            of a task that has left may be a key too: another one stands for it.
    """

    def __init__(self, tasks: Mapping[str, str] = _NOTHING, epoch: int = 0) -> None:
        self.epoch = epoch
        self.tasks = MappingProxyType(dict(tasks))

    @property
    def retired(self) -> dict[str, str]:
        """Which task stands for one that has left."""
        return {key: task for key, task in self.tasks.items() if key.startswith("/job:")}

    def set(self, epoch: int, tasks: Mapping[str, str]) -> bool:
        """Something newer is known; whether that is so."""
        if epoch <= self.epoch:
            return False
        # Who sees the new epoch sees the new tasks.
        self.tasks = MappingProxyType(dict(tasks))
        self.epoch = epoch
        return True

    def now(self) -> MovedVariables:
        """A copy that does not change."""
        epoch = self.epoch  # before the tasks: these are never older then
        return MovedVariables(self.tasks, epoch)

    def with_more(self, keys: Iterable[str], task: str) -> MovedVariables:
        """The same once some variables have gone to a task."""
        return MovedVariables({**self.tasks, **dict.fromkeys(keys, task)}, self.epoch)

    def task_of(self, key: str) -> str:
        """The task that has a variable; "" if that is the one that its device says."""
        return self.tasks.get(key, "")

    def of_nodes(self, nodes: Sequence[Node]) -> dict[str, str]:
        """The tasks of moved variables among nodes, and among the ops that these are to share a
        device with, by the names of their ops."""
        if not self.tasks:
            return {}
        found = {n.name: self.task_of(key_of_node(n)) for n in nodes if _is_variable(n)}
        for node in nodes:
            for name in node.colocation:
                op = node.op.graph._by_name.get(name) if node.op is not None else None
                if op is not None and name not in found and _is_variable(op):
                    found[name] = self.task_of(key_of_node(op))
        return {name: task for name, task in found.items() if task}


#: Nothing was moved.
NOWHERE = MovedVariables()


def key_of(handle: ResourceHandle) -> str:
    """How a variable is named among those that were moved.

    >>> key_of(ResourceHandle("variable", "", "w")), key_of(ResourceHandle("variable", "c", "w"))
    ('w', 'c:w')
    >>> key_of(ResourceHandle("table of embeddings", "", "users"))
    'table of embeddings users'
    """
    kind = "" if handle.kind == "variable" else f"{handle.kind} "
    return f"{kind}{handle.container}:{handle.name}" if handle.container else f"{kind}{handle.name}"


def key_of_node(node: Any) -> str:
    """The same of the op, or the node of a step, that stands for a variable."""
    return key_of(handle_for(node))


def variables_of(nodes: Iterable[Any]) -> set[str]:
    """The keys of the variables among nodes or ops."""
    return {key_of_node(n) for n in nodes if _is_variable(n)}


def groups_with(graph: Any, keys: Collection[str]) -> list[set[str]]:
    """The keys of variables of a graph that must share a device, in groups, of which each has some
    of ``keys``: one op uses all of a group, or is to be where they are."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while (parent := leader.setdefault(name, name)) != name:
            leader[name] = name = leader[parent]
        return name

    ops = list(graph._by_name.values())
    for op in ops:
        others = list(op.colocation)
        if op.op_def.lower is None:
            others += [t.op.name for t in op.inputs if t.dtype is dtypes.resource]
        for other in others:
            leader[find(op.name)] = find(other)
    variables = {key_of_node(op): find(op.name) for op in ops if _is_variable(op)}
    found: dict[str, set[str]] = {variables[key]: set() for key in keys if key in variables}
    for key, root in variables.items():
        if root in found:
            found[root].add(key)
    return list(found.values())


def _is_variable(node: Any) -> bool:
    return node.op_def.makes_handle in MOVING and handle_for(node).kind in MOVING
