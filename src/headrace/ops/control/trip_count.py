"""How often a loop runs, where that is known while a program is compiled.

The condition is taken apart at its ``logical_and``s. A part that depends only on loop variables
whose course is known (counters, mostly) is followed on NumPy values until it becomes false: all
parts known give the exact number of iterations, some give a bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Tensor
from headrace.ops.control.flow_kernels import is_known

#: Loops that are followed step by step (not in closed form) are given up after so many iterations.
_LIMIT = 20_000


def trip_count(
    evaluation: Any, cond: FuncGraph, body: FuncGraph, args: list[Any]
) -> tuple[int | None, bool]:
    """The number of iterations (None: unknown), and whether it is exact or only a bound."""
    parts = _conjuncts(cond.outputs[0])
    counts = [_count_part(evaluation, cond, body, args, part) for part in parts]
    known = [c for c in counts if c is not None]
    return (min(known) if known else None), len(known) == len(counts)


def _conjuncts(tensor: Tensor) -> list[Tensor]:
    if tensor.op.type == "LogicalAnd":
        return [part for t in tensor.op.inputs for part in _conjuncts(t)]
    if tensor.op.type == "Identity":
        return _conjuncts(tensor.op.inputs[0])
    return [tensor]


def _count_part(
    evaluation: Any, cond: FuncGraph, body: FuncGraph, args: list[Any], part: Tensor
) -> int | None:
    if part.dims not in ((), None):
        return None
    closed = _closed_form(evaluation, cond, body, args, part)
    if closed is not None:
        return closed
    positions = _needed(cond, body, part)
    if positions is None or not all(_small_and_known(args[i]) for i in positions):
        return None
    values = list(args)
    moving = [i for i in positions if body.outputs[i] is not body.all_inputs[i]]
    outputs = [body.outputs[i] for i in moving]
    for count in range(_LIMIT):
        (go,) = evaluation.call_part(cond, (part,), values)
        if not is_known(go):
            return None
        if not go:
            return count
        if not moving:
            return None  # never changes: another part must end the loop
        new = evaluation.call_part(body, tuple(outputs), values)
        for i, value in zip(moving, new, strict=True):
            if not _small_and_known(value):
                return None
            values[i] = value
    return None


def _small_and_known(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.size <= 1024


def _needed(cond: FuncGraph, body: FuncGraph, part: Tensor) -> set[int] | None:
    """Positions of the loop variables that decide ``part``; None if other things do as well."""
    found = _inputs_of(cond, part)
    if found is None:
        return None
    todo = list(found)
    while todo:
        more = _inputs_of(body, body.outputs[todo.pop()])
        if more is None:
            return None
        todo.extend(more - found)
        found |= more
    return found


def _inputs_of(function: FuncGraph, tensor: Tensor) -> set[int] | None:
    """Positions of the inputs that ``tensor`` depends on through plain arithmetic."""
    position = {t: i for i, t in enumerate(function.all_inputs)}
    found: set[int] = set()
    seen = set()
    todo = [tensor]
    while todo:
        current = todo.pop()
        if current in position:
            found.add(position[current])
            continue
        op = current.op
        if op in seen:
            continue
        seen.add(op)
        d = op.op_def
        if d.interpret is None or not d.effects.pure or op.control_inputs:
            return None
        todo.extend(op.inputs)
    return found


_COMPARISONS = {"Less": (1, 0), "LessEqual": (1, 1), "Greater": (-1, 0), "GreaterEqual": (-1, 1)}


def _closed_form(
    evaluation: Any, cond: FuncGraph, body: FuncGraph, args: list[Any], part: Tensor
) -> int | None:
    """The count of ``i < n`` with ``i += step`` for integers; None if it has another form."""
    rule = _COMPARISONS.get(part.op.type)
    inputs = {t: i for i, t in enumerate(cond.all_inputs)}
    if rule is None or part.op.inputs[0] not in inputs:
        return None
    position = inputs[part.op.inputs[0]]
    start = args[position]
    limit = _fixed(evaluation, cond, body, part.op.inputs[1], args)
    update = body.outputs[position]
    if (
        update.op.type not in ("Add", "AddV2")
        or update.op.inputs[0] is not body.all_inputs[position]
    ):
        return None
    step = _fixed(evaluation, body, body, update.op.inputs[1], args)
    if any(not _integer_scalar(v) for v in (start, limit, step)):
        return None
    sign, inclusive = rule
    distance = sign * (int(limit) - int(start)) + inclusive
    stride = sign * int(step)
    if distance <= 0:
        return 0
    return math.ceil(distance / stride) if stride > 0 else None


def _fixed(
    evaluation: Any, function: FuncGraph, body: FuncGraph, tensor: Tensor, args: list[Any]
) -> Any:
    """The value of a tensor that is the same in each iteration and known, else None."""
    if tensor.op.type == "Const":  # whatever it waits for
        return tensor.op.attrs["value"]
    positions = _inputs_of(function, tensor)
    if positions is None:
        return None
    for i in positions:
        if body.outputs[i] is not body.all_inputs[i] or not _small_and_known(args[i]):
            return None
    (value,) = evaluation.call_part(function, (tensor,), args)
    return value


def _integer_scalar(value: Any) -> bool:
    return (
        isinstance(value, (np.ndarray, np.generic))
        and value.size == 1
        and np.issubdtype(value.dtype, np.integer)
    )
