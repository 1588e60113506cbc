"""Variables on servers by size and traffic: both memory and what crosses links are shared out.

When a variable is made, nobody knows what a step will move of it: a dense one goes to each worker
and its gradient comes back, of a table of embeddings only some rows do. So variables are placed by
size first, and once more before the first step of their graph, when its training steps are known.
What crosses is what the graph says: tensors between an operation beside a variable and one that is
elsewhere. Groups that must stay together (a variable and its slots) are dealt out, largest first,
to the server where the sum of squares of all servers' shares of memory and of traffic grows least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace import logging
from headrace.data_parallel.state import GraphState
from headrace.data_parallel.steps import needed
from headrace.graph.devices import DeviceSpec
from headrace.graph.tensor import Operation, Tensor

__all__ = ["Load", "deal", "settle", "size_of"]

#: For how many rows a size that the graph does not know is taken.
_ROWS = 128
#: What a variable or tensor without a known shape is taken for; bytes.
_UNKNOWN = 1 << 20
#: Smaller groups stay where they are: they are counters, which others stand beside. Bytes.
_SMALL = 1 << 12
#: To so much of it the sum of squares must come down, or all stays as it is.
_GAIN = 0.9


class Load(NamedTuple):
    """What a group of variables costs its server: bytes held, and bytes moved by a step."""

    memory: float
    traffic: float


def size_of(op: Operation) -> int:
    """The bytes of a variable, by its handle."""
    shape, dtype = op.attrs.get("shape"), op.attrs.get("dtype")
    count = shape.num_elements() if shape is not None else None
    return _UNKNOWN if count is None or dtype is None else int(count * dtype.size)


def deal(loads: Sequence[Load], servers: int, now: Sequence[int] | None = None) -> list[int]:
    """A server for each group, so that memory and traffic are shared out alike.

    Args:
        now: where they are: they stay there where that is as good.

    >>> table, dense = Load(100e6, 0.1e6), Load(1e6, 2e6)
    >>> deal([table, dense, dense, dense, dense], 2)
    [0, 1, 0, 1, 0]
    """
    whole = [max(sum(load[k] for load in loads), 1.0) for k in (0, 1)]
    parts = [[load[k] / whole[k] for k in (0, 1)] for load in loads]
    held = [[0.0, 0.0] for _ in range(servers)]
    found = [0] * len(loads)

    def cost(server: int, group: int) -> tuple[float, bool, int]:
        more = sum((a + b) ** 2 - a**2 for a, b in zip(held[server], parts[group], strict=True))
        return round(more, 9), now is not None and now[group] != server, server

    for group in sorted(range(len(loads)), key=lambda i: (-max(parts[i]), i)):
        server = min(range(servers), key=lambda s: cost(s, group))
        found[group] = server
        held[server] = [a + b for a, b in zip(held[server], parts[group], strict=True)]
    return found


def settle(state: GraphState, servers: int) -> None:
    """Move variables, that no session has made yet, where traffic is shared out as well."""
    if state.is_settled:
        return
    state.is_settled = True
    if servers < 2 or not state.updates:
        return
    groups = _Groups(state)
    handles = [h for h in state.placed if groups.memory[h] >= _SMALL]
    loads = [Load(groups.memory[h], groups.traffic[h]) for h in handles]
    now = [state.placed[h] for h in handles]
    then = deal(loads, servers, now)
    if _imbalance(loads, then, servers) > _GAIN * _imbalance(loads, now, servers):
        return
    moved = {h: t for h, a, t in zip(handles, now, then, strict=True) if a != t}
    groups.move(moved)
    logging.info("%d variables are on other servers, by the traffic of a step.", len(moved))


def _imbalance(loads: Sequence[Load], where: Sequence[int], servers: int) -> float:
    """The sum of squares of all servers' shares of memory and of traffic."""
    whole = [max(sum(load[k] for load in loads), 1.0) for k in (0, 1)]
    shares = (
        sum(load[k] for load, at in zip(loads, where, strict=True) if at == s) / whole[k]
        for s in range(servers)
        for k in (0, 1)
    )
    return sum(share**2 for share in shares)


class _Groups:
    """The operations that stand beside the variables of a graph.

    Attributes:
        memory: bytes of a variable and what is colocated with it, by its handle.
        traffic: bytes of tensors that go to these operations, or come from them, in a step.
    """

    def __init__(self, state: GraphState) -> None:
        self._placed = state.placed
        graph = next(iter(state.placed)).graph if state.placed else None
        ops = graph.get_operations() if graph is not None else []
        names = {h.name: h for h in state.placed}
        self._of: dict[Operation, Operation] = {}
        self.memory: dict[Operation, float] = dict.fromkeys(state.placed, 0.0)
        self.traffic: dict[Operation, float] = dict.fromkeys(state.placed, 0.0)
        for op in ops:
            handle = self._beside(op, names)
            if handle is not None:
                self._of[op] = handle
                if op.op_def.makes_handle == "variable":
                    self.memory[handle] += size_of(op)
        self._count(needed([update.op for update in state.updates], set()))

    def _beside(self, op: Operation, names: Mapping[str, Operation]) -> Operation | None:
        """The variable by which an operation is placed."""
        for name in op.colocation_names():
            if name in names:
                return names[name]
            other = op.graph._by_name.get(name) if name != op.name else None
            if other in self._of:
                return self._of[other]
        if op.device:  # as one that takes the handle, on its server
            for tensor in op.inputs:
                handle = self._of.get(tensor.op)
                if handle is not None and op.device == handle.device:
                    return handle
        return None

    def _count(self, ops: Mapping[Operation, None]) -> None:
        crossing: set[tuple[Tensor, Operation | None, str]] = set()
        for op in ops:
            for tensor in op.inputs:
                ends = self._of.get(tensor.op), self._of.get(op)
                if ends[0] is ends[1] or tensor.dtype.name == "resource":
                    continue
                for end in {e for e in ends if e is not None}:
                    key = tensor, end, op.device
                    if key not in crossing:
                        crossing.add(key)
                        self.traffic[end] += min(_bytes(tensor), max(self.memory[end], 1.0))

    def move(self, moved: Mapping[Operation, int]) -> None:
        """Put groups on other servers."""
        for op, handle in self._of.items():
            if handle in moved and op.device:
                spec = DeviceSpec.from_string(op.device)
                if spec.job == "ps":
                    op._set_device(spec.replace(task=moved[handle]).to_string())
        self._placed.update(moved)


def _bytes(tensor: Tensor) -> float:
    if tensor.dims is None or tensor.dtype.size is None:
        return _UNKNOWN
    size: Any = tensor.dtype.size
    for dim in tensor.dims:
        size *= _ROWS if dim is None else dim
    return float(size)
