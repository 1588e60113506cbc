"""What a step is for: it trains, it changes variables otherwise, or it only looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.data_parallel.state import GraphState
from headrace.errors import InvalidArgumentError
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Operation, Tensor
from headrace.step.request import PlanRequest

__all__ = ["ScriptStep", "bodies", "needed", "reads_dataset", "reads_queue", "where"]


def where(op: Operation) -> str:
    """An operation by its name and the line of the program that made it."""
    site = op.site
    return f"'{op.name}'" + ("" if site is None else f" ({site.filename}, line {site.lineno})")


class ScriptStep:
    """One kind of step of a script, as all workers are to run it.

    Attributes:
        state: of its graph.
        updates: of those that it runs, what `apply_gradients` made.
        writes: operations by which it changes shared variables otherwise.
        ops: all operations that it needs, those of function bodies apart.
    """

    def __init__(self, request: PlanRequest, state: GraphState) -> None:
        self.request, self.state = request, state
        fed = set(request.feeds)
        self.ops = needed([*(t.op for t in request.fetches if t not in fed), *request.targets], fed)
        self.updates = [u for u in state.updates if u.op in self.ops]
        self.writes = [] if self.updates else [op for op in self.ops if self._writes(op)]

    def examples(self) -> dict[Operation, None]:
        """The operations that its gradients need, without those by which workers wait."""
        roots = [op for update in self.updates for op in update.gradients]
        return needed(roots, set(self.request.feeds))

    def written(self) -> list[Any]:
        """The variables that it changes."""
        found = {}
        for op in self.writes:
            for tensor in op.inputs:
                if self._is_shared(tensor):
                    found[tensor] = tensor.op.graph._variable_of.get(tensor.op)
        return [v for v in found.values() if v is not None]

    def without_writes(self) -> PlanRequest:
        """What a worker runs where another one changes the variables: values are read afterwards.

        Raises:
            InvalidArgumentError: if it fetches what is computed by the change.
        """
        changed = _after(self.writes, self.ops)
        fetches = [t if t.op not in changed else self._read(t) for t in self.request.fetches]
        targets: dict[Operation, None] = {}
        for target in self.request.targets:
            targets.update(dict.fromkeys(_parts(target, changed)))
        return self.request._replace(
            fetches=fetches, targets=[t for t in targets if t not in changed]
        )

    def _read(self, tensor: Tensor) -> Tensor:
        op = tensor.op
        variable = op.inputs and op.graph._variable_of.get(op.inputs[0].op)
        if op.type != "ReadVariableOp" or not variable:
            change = where(next(iter(self.writes)))
            raise InvalidArgumentError(
                None,
                op,
                f"This step changes variables by {change}, and fetches {where(op)}, which is "
                "computed with that. It does not train, so one worker runs it for all, and the "
                "others would not have the value. Run the change by itself (its `.op`), and fetch "
                "values in a step after it.",
            )
        read: Tensor = variable._snapshot
        return read

    def _writes(self, op: Operation) -> bool:
        changed = _changed(op)
        return any(self._is_shared(t) for t in changed)

    def _is_shared(self, tensor: Tensor) -> bool:
        return tensor.op.type == "VarHandleOp" and tensor.op not in self.state.local


def _changed(op: Operation) -> list[Tensor]:
    """The resources that an operation changes, in its function bodies, too."""
    effects = getattr(op.op_def, "effects", None)
    found = [op.inputs[i] for i in effects.writes] if effects is not None else []
    for body in bodies(op):
        inner = {t for o in body.get_operations() for t in _changed(o)}
        found += [outer for outer, inside in body.captures.items() if inside in inner]
    return found


def bodies(op: Operation) -> Iterable[FuncGraph]:
    """The function bodies of an operation, such as the branches of a condition."""
    for value in op.attrs.values():
        if isinstance(value, FuncGraph):
            yield value


def reads_dataset(op: Operation) -> bool:
    """Whether an operation takes elements of a dataset."""
    return bool(op.op_def.traits.takes_out) and not reads_queue(op)


def reads_queue(op: Operation) -> bool:
    """Whether an operation takes elements out of a queue, or by a reader."""
    takes = op.op_def.traits.takes_out
    return bool(takes) and op.inputs[0].op.op_def.makes_handle in ("queue", "reader")


def needed(roots: Sequence[Operation], fed: set[Tensor]) -> dict[Operation, None]:
    """Operations that these need, in the order in which they were made."""
    seen, todo = set(roots), list(roots)
    while todo:
        op = todo.pop()
        before = [*(t.op for t in op.inputs if t not in fed), *op.control_inputs]
        for other in before:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return dict.fromkeys(sorted(seen, key=lambda op: op._id))


def _after(first: Sequence[Operation], ops: Iterable[Operation]) -> set[Operation]:
    """Those of ``ops`` (in order) that come after some of them, and these."""
    found = set(first)
    for op in ops:
        if any(t.op in found for t in op.inputs) or any(c in found for c in op.control_inputs):
            found.add(op)
    return found


def _parts(target: Operation, changed: set[Operation]) -> list[Operation]:
    """What a group stands for, if a part of it is not to be run."""
    if target not in changed or target.type != "NoOp":
        return [target]
    return [part for c in target.control_inputs for part in _parts(c, changed)]
