"""Stacks of old graph files, rewritten as tensor lists.

A stack was a resource: one loop pushed what its gradient's loop popped. It becomes a list, handed
down through the loops and branches around the push, out of them again, and then the same way
through those around the pop. Pops come in the opposite order of pushes, so one list serves all
rounds of nested loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_contexts import Contexts, Step
from headrace.graph_files.import_rewrite import RESOURCE, VARIANT, Rewriting
from headrace.graph_files.import_slices import INT32, UniqueNames, data_inputs, stated_shape

_CARRIES = frozenset({"Enter", "Switch", "Identity"})
#: TensorFlow 1.0 and 1.1 had these; they are the same but for the kind of handle.
OLDER = {"Stack": "StackV2", "StackPush": "StackPushV2", "StackPop": "StackPopV2"}


@dataclass
class _Stack:
    """One stack: the op that made it, those on it, and the nodes that hand it on."""

    made: NodeDef
    pushes: list[NodeDef] = field(default_factory=list)
    pops: list[NodeDef] = field(default_factory=list)
    carriers: list[NodeDef] = field(default_factory=list)


@dataclass
class Kept:
    """A source that a stack keeps, where it comes back, and the operations on the list."""

    element: str
    popped: str
    operations: list[NodeDef]


class Stacks(Rewriting):
    """Rewrites all stacks of a graph that still has loops of tokens."""

    def __init__(self, nodes: dict[str, NodeDef], names: UniqueNames) -> None:
        super().__init__(nodes, names)
        self.kept: list[Kept] = []

    def rewrite_stacks(self) -> list[Kept]:
        """Rewrite the stacks; tells what they keep.

        Raises:
            ValueError: if a stack is used in a way that has no form with lists.
        """
        self.users_now = self.users()
        stacks = [self.collect(n) for n in self.nodes.values() if n.op == "StackV2"]
        # Edges for the order of pushes and pops: data has it now.
        self.remove_controls({n.name for s in stacks for n in (*s.pushes, *s.pops)})
        self.contexts = Contexts(self.nodes)
        gone: set[str] = set()
        for stack in stacks:
            idle = self.idle(stack)
            if idle is None:
                self.rewrite(stack)
            else:
                gone |= {n.name for n in idle}
            gone |= {n.name for n in stack.carriers}
        for name in gone:
            del self.nodes[name]
        self.remove_controls(gone)
        self.drop_unused_enters()
        return self.kept

    def collect(self, made: NodeDef) -> _Stack:
        """Follow the handle of a stack.

        Raises:
            ValueError: if it goes elsewhere than to one push and one pop.
        """
        stack = _Stack(made)
        sources = [f"{made.name}:0"]
        for source in sources:
            for user in self.users_now.get(source, ()):
                if user.op == "StackPushV2" and data_inputs(user)[0] == source:
                    stack.pushes.append(user)
                elif user.op == "StackPopV2":
                    stack.pops.append(user)
                elif user.op in _CARRIES and data_inputs(user)[0] == source:
                    stack.carriers.append(user)
                    sources += [f"{user.name}:{i}" for i in range(2 if user.op == "Switch" else 1)]
                else:
                    raise ValueError(
                        f"the stack '{made.name}' goes to '{user.name}' of type {user.op}"
                    )
        if len(stack.pushes) > 1 or len(stack.pops) > len(stack.pushes):
            raise ValueError(
                f"the stack '{made.name}' is pushed in {len(stack.pushes)} places and popped in "
                f"{len(stack.pops)}, not in one each"
            )
        return stack

    def idle(self, stack: _Stack) -> list[NodeDef] | None:
        """The nodes that only hand on what is popped, with the pop; None if something uses it.

        Gradients of writes to TensorArrays keep flows so, only to wait for them, and handles.
        """
        found = list(stack.pops)
        for node in found:
            for source in (f"{node.name}:0", f"{node.name}:1"):
                for user in self.users_now.get(source, ()):
                    if user.op.startswith("TensorArray") and source not in data_inputs(user)[1:]:
                        continue
                    if user.op not in _CARRIES:
                        return None
                    if user not in found:
                        found.append(user)
        for push in stack.pushes:
            self.change(push, "NoOp", [])
        self.change(stack.made, "NoOp", [])
        return found

    def rewrite(self, stack: _Stack) -> None:
        made, push, pop = stack.made, stack.pushes[0], stack.pops[0]
        dtype = made.attr["elem_type"].type
        if dtype == RESOURCE:
            raise ValueError(f"the stack '{made.name}' keeps handles of resources")
        element = data_inputs(push)[1]
        shape = self.element_shape(made.name, pop, element)
        limit = self.constant(f"{made.name}/max_num_elements", [-1], INT32, scalar=True)
        self.change(made, "EmptyTensorList", [shape, limit], element_dtype=dtype, shape_type=INT32)
        new_push, new_pop = (
            self.add("TensorListPushBack", push, element),
            self.add("TensorListPopBack", pop, shape),
        )
        for node in (new_push, new_pop):
            node.attr["element_dtype"].type = dtype
        start = self.contexts.of(made)
        full = self.thread(self.way(start, push), made.name, new_push)
        self.thread(self.way(start, pop), full, new_pop)
        self.change(push, "Identity", [element], T=dtype)
        self.change(pop, "Identity", [f"{new_pop.name}:1"], T=dtype)
        self.kept.append(Kept(element, f"{pop.name}:0", [made, new_push, new_pop]))

    def add(self, op: str, like: NodeDef, source: str) -> NodeDef:
        """A list operation of which the list comes later."""
        node = NodeDef(name=self.names(f"{like.name}/{op}"), op=op, device=like.device)
        node.input.append(source)
        self.nodes[node.name] = node
        return node

    def element_shape(self, name: str, pop: NodeDef, element: str) -> str:
        """A constant of what the file says of the shape of the elements."""
        stated = stated_shape(pop.name, self.nodes) or stated_shape(element, self.nodes)
        if stated is None:
            return self.constant(f"{name}/element_shape", [-1], INT32, scalar=True)
        return self.constant(f"{name}/element_shape", [d.size for d in stated.dim], INT32)

    def way(self, start: Sequence[Step], node: NodeDef) -> list[Step]:
        """The steps down to ``node`` from where its stack was made.

        Raises:
            ValueError: if the stack was made in another loop or branch.
        """
        steps = self.contexts.of(node)
        if steps[: len(start)] != list(start):
            raise ValueError(f"'{node.name}' uses a stack of another loop or branch")
        return steps[len(start) :]

    def thread(self, steps: Sequence[Step], begin: str, operation: NodeDef) -> str:
        """Hand a list down to an operation on it.

        Args:
            steps: the loops and branches around the operation.
            begin: the source of the list before them.

        Returns:
            The source of the changed list behind them.
        """
        if not steps:
            operation.input.insert(0, begin)
            return f"{operation.name}:0"
        step, base = steps[0], operation.name
        if not step.frame:
            switch = self.token("Switch", base, [begin, step.predicate], VARIANT)
            inner = self.thread(steps[1:], f"{switch.name}:{step.side}", operation)
            other = f"{switch.name}:{1 - step.side}"
            sides = [other, inner] if step.side else [inner, other]
            return f"{self.token('Merge', base, sides, VARIANT).name}:0"
        condition = self.contexts.loop_conditions.get(step.frame)
        if condition is None:
            raise ValueError(f"loop '{step.frame[-1]}' has no LoopCond")
        enter = self.enter(base, begin, step.frame, constant=False)
        merge = self.token("Merge", base, [enter.name], VARIANT)
        switch = self.token("Switch", base, [merge.name, condition], VARIANT)
        inner = self.thread(steps[1:], f"{switch.name}:1", operation)
        merge.input.append(self.token("NextIteration", base, [inner], VARIANT).name)
        return f"{self.token('Exit', base, [switch.name], VARIANT).name}:0"


__all__: list[str] = []
