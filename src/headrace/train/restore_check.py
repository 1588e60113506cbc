"""Whether a checkpoint fits a graph: found out before anything is assigned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidArgumentError, NotFoundError, suggest
from headrace.graph.dtypes import DType
from headrace.graph.shapes import compatible_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.static import static_value
from headrace.ops.state.variable_ops import handle_dims
from headrace.train.checkpoint import CheckpointReader, Request
from headrace.train.save_ops import check_entry, parse_slices, texts


@dataclass
class _Target:
    """What one restored tensor is for: the op that takes it, and the shape that fits there."""

    name: str
    dims: Dims
    reshaped: bool


def check_restorable(restore_op: Operation, filename: Tensor, reader: CheckpointReader) -> int:
    """Compare all that ``restore_op`` reads from ``filename`` with what a checkpoint holds.

    Returns:
        How many operations read it.

    Raises:
        NotFoundError: if tensors are missing; the message names all of them, and beside them what
            else does not fit, and what only the checkpoint has.
        InvalidArgumentError: if types or shapes differ; the message shows all that do, side by
            side.
        DataLossError: if data is damaged and the graph would restore it piece by piece.
    """
    ops = ancestors(restore_op)
    readers = [op for op in ops if op.type == "RestoreV2" and op.inputs[0] is filename]
    targets = _targets(ops)
    missing: list[str] = []
    wrong: list[str] = []
    beside: dict[str, tuple[str, str]] = {}
    asked: set[str] = set()
    requests: list[Request] = []
    for op in readers:
        names, specs = static_value(op.inputs[1]), static_value(op.inputs[2])
        if names is None or specs is None:
            continue  # computed names: the op checks them itself
        parsed = parse_slices(texts(specs))
        for i, (name, spec) in enumerate(zip(texts(names), parsed, strict=True)):
            dtype: DType = op.attrs["dtypes"][i]
            target = targets.get((op, i))
            asked.add(name)
            dims = spec[0] if spec is not None else None if target is None else target.dims
            here = _described(dtype, dims)
            if not reader.holds(name, of_part=spec is not None):
                missing.append(name)
                beside[name] = here, "-"
                continue
            problem = check_entry(reader, name, spec, dtype)
            stored = reader.entry(name, of_part=spec is not None)
            shape = stored.shape if spec is None else spec[1].shape
            problem = problem or _misfit(name, shape, target)
            if problem is not None:
                wrong.append(problem)
                beside[name] = here, _described(stored.dtype, stored.shape)
            requests.append(Request(name, None if spec is None else spec[1]))
    if missing:
        known = reader.names
        lines = [
            f"Key {name} not found in checkpoint {reader.prefix}.{suggest(name, known)}"
            for name in sorted(missing)
        ]
        text = _report(lines, "variables that the checkpoint lacks")
        for name in reader.names:
            if name not in asked:
                stored = reader.entry(name)
                beside[name] = "-", _described(stored.dtype, stored.shape)
        table = _side_by_side(beside)
        raise NotFoundError(None, None, f"{text}\n  {reader.described_names()}\n{table}")
    if wrong:
        why = "a mismatch between the current graph and the graph from the checkpoint"
        text = _report(sorted(wrong), why)
        raise InvalidArgumentError(None, None, f"{text}\n{_side_by_side(beside)}")
    if len(readers) > 1:
        reader.verify(requests)
    return len(readers)


def _report(problems: list[str], cause: str) -> str:
    shown = "\n  ".join(problems[:20])
    more = f"\n  and {len(problems) - 20} more" if len(problems) > 20 else ""
    return (
        f"Restoring from checkpoint failed: {cause}. Nothing was assigned. Check that the graph is "
        f"the one that was saved, or restore a part of it with Saver(var_list).\n  {shown}{more}"
    )


def _described(dtype: DType, dims: Dims) -> str:
    return f"{dtype.name} {'of any shape' if dims is None else _text(dims)}"


def _side_by_side(rows: dict[str, tuple[str, str]]) -> str:
    """Tensors that do not fit: what the graph has of each, and what the checkpoint has."""
    shown = [(name, *rows[name]) for name in sorted(rows)[:40]]
    lines = [("tensor", "graph", "checkpoint"), *shown]
    widths = [max(len(line[i]) for line in lines) for i in range(2)]
    text = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in lines]
    if len(rows) > len(shown):
        text.append(f"  and {len(rows) - len(shown)} more")
    return "\n".join(text)


def ancestors(start: Operation) -> list[Operation]:
    """All operations that have to run before ``start``, and ``start``."""
    seen = {start}
    stack = [start]
    while stack:
        op = stack.pop()
        for before in (*(t.op for t in op.inputs), *op.control_inputs):
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return list(seen)


def _targets(ops: list[Operation]) -> dict[tuple[Operation, int], _Target]:
    found = {}
    for op in ops:
        if op.type != "AssignVariableOp":
            continue
        source, reshaped = op.inputs[1], False
        while source.op.type in ("Identity", "Reshape"):
            reshaped = reshaped or source.op.type == "Reshape"
            source = source.op.inputs[0]
        if source.op.type == "RestoreV2":
            handle: Any = op.inputs[0]
            target = _Target(handle.op.name, handle_dims(handle), reshaped)
            found[source.op, source.value_index] = target
    return found


def _misfit(name: str, shape: tuple[int, ...], target: _Target | None) -> str | None:
    if target is None or compatible_static(target.dims, shape):
        return None
    if target.reshaped and target.dims is not None and None not in target.dims:
        wanted, given = 1, 1
        for n in target.dims:
            wanted *= n or 0
        for n in shape:
            given *= n
        if wanted == given:
            return None
        return (
            f"Cannot reshape {name} of the checkpoint, shape {list(shape)}, to variable "
            f"{target.name} of shape {list(target.dims)}: {given} and {wanted} elements"
        )
    return (
        f"Assign requires shapes of both tensors to match. lhs shape= {_text(target.dims)} "
        f"(variable {target.name}) rhs shape= {_text(shape)} (checkpoint, {name})"
    )


def _text(dims: Any) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in dims or ()) + "]"
