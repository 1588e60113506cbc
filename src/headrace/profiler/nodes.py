"""The ops of a graph with what they hold and cost."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from headrace.graph.graph import Graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.profiler.flops import float_ops
from headrace.profiler.options import TRAINABLE_VARIABLES

#: What a trace times that is more than one op.
_WHOLES = frozenset({"Region", "Compile"})
_LABEL = re.compile(r".* = (\w+)\(.*\)", re.DOTALL)


@dataclass
class RunStats:
    """Figures of an op, or their sums. Times in microseconds, memory in bytes."""

    definitions: int = 0
    runs: int = 0
    micros: int = 0
    accelerator_micros: int = 0
    cpu_micros: int = 0
    bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    params: int = 0
    float_ops: int = 0

    def add(self, other: RunStats) -> None:
        """Add the figures of another."""
        for name in _FIGURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def copy(self) -> RunStats:
        return RunStats(**{name: getattr(self, name) for name in _FIGURES})


_FIGURES = tuple(f.name for f in fields(RunStats))


@dataclass(eq=False)
class ProfiledNode:
    """One line of a view: an op, or a name scope, type or source line.

    Attributes:
        own: the figures of the op itself.
        total: those with all that is below.
        types: what ``account_type_regexes`` looks at.
        is_counted: whether ``own`` counts; scopes count nothing of their own.
        below: the whole tree.
        shown: the tree that is shown.
    """

    name: str
    op: Operation | None = None
    own: RunStats = field(default_factory=RunStats)
    total: RunStats = field(default_factory=RunStats)
    types: frozenset[str] = frozenset({""})
    devices: list[str] = field(default_factory=list)
    is_counted: bool = True
    shape: list[int] | None = None
    below: list[ProfiledNode] = field(default_factory=list)
    shown: list[ProfiledNode] = field(default_factory=list)
    members: list[ProfiledNode] = field(default_factory=list)


def nodes_of(graph: Graph, op_log: Any = None) -> dict[str, ProfiledNode]:
    """A node for each op of a graph, with parameters and float operations.

    Args:
        op_log: an OpLogProto that adds types and replaces numbers of float operations.
    """
    trained = {v.op.name for v in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    entries = {e.name: e for e in op_log.log_entries} if op_log is not None else {}
    unknown = 0
    nodes = {}
    for op in graph.get_operations():
        node = nodes[op.name] = ProfiledNode(op.name, op)
        node.own.definitions = 1
        types = {op.type, *([TRAINABLE_VARIABLES] if op.name in trained else [])}
        entry = entries.get(op.name)
        if entry is not None:
            types |= set(entry.types)
        node.types = frozenset(types)
        count = entry.float_ops if entry is not None and entry.float_ops else float_ops(op)
        unknown += count is None
        node.own.float_ops = count or 0
        if op.op_def.makes_handle == "variable":
            shape = op.attrs["shape"].as_tuple
            if shape is not None and None not in shape:
                node.shape = list(shape)
                node.own.params = math.prod(shape)
    if unknown:
        sys.stderr.write(f"{unknown} ops have shapes that are not known: no float_ops of them.\n")
    return nodes


def add_times(nodes: dict[str, ProfiledNode], metadata: Iterable[Any]) -> None:
    """Add times and memory of traced steps (RunMetadata messages): the means."""
    steps = list(metadata)
    found: dict[str, RunStats] = {}
    for step in steps:
        for device in step.step_stats.dev_stats:
            for record in device.node_stats:
                label = _LABEL.fullmatch(record.timeline_label)
                kind = label[1] if label else ""
                name = record.node_name
                if kind in _WHOLES:  # no scope: it holds ops of several
                    name = f"{kind.lower()}: {name}".replace("/", ".")
                node = nodes.get(name)
                if node is None:  # a region, or an op made while the graph was rewritten
                    node = nodes[name] = ProfiledNode(name)
                    node.types = frozenset({kind})
                if device.device not in node.devices:
                    node.devices.append(device.device)
                    node.types |= {device.device}
                stats = found.setdefault(name, RunStats())
                stats.add(_stats_of_run(record, device.device, node.op))
    for name, stats in found.items():
        for figure in _FIGURES:
            setattr(stats, figure, round(getattr(stats, figure) / len(steps)))
        nodes[name].own.add(stats)


def _stats_of_run(record: Any, device: str, op: Operation | None) -> RunStats:
    """The figures of one run of an op."""
    micros = record.all_end_rel_micros
    on_host = "CPU" in device.rpartition("/")[2].upper()
    stats = RunStats(runs=1, micros=micros)
    if on_host:
        stats.cpu_micros = micros
    else:
        stats.accelerator_micros = micros
    allocated = sum(m.total_bytes for m in record.memory)
    outputs = sum(
        o.tensor_description.allocation_description.requested_bytes for o in record.output
    )
    # Traces have no allocations of ops without recorded outputs: their sizes stand for them.
    outputs = outputs or (_output_bytes(op) if op is not None else 0)
    stats.bytes = allocated or outputs
    stats.peak_bytes = sum(m.peak_bytes for m in record.memory) or outputs
    stats.residual_bytes = sum(m.live_bytes for m in record.memory)
    stats.output_bytes = outputs
    return stats


def _output_bytes(op: Operation) -> int:
    total = 0
    for tensor in op.outputs:
        dims = tensor.dims
        if dims is not None and None not in dims and tensor.dtype.is_numpy_compatible:
            total += math.prod(dims) * tensor.dtype.size  # type: ignore[arg-type]
    return total
