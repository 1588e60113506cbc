"""What running an op and moving a tensor cost: the questions placement asks, and two answers.

A learned or measured model implements `CostModel`; placement takes nothing else from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.passes.ir import FEED, Node, function_step
from headrace.placement.devices import DeviceAttributes

#: Size assumed for dimensions that are not known.
_UNKNOWN = 64
#: Runs assumed for the body of a loop.
_ITERATIONS = 16
#: Bytes assumed for a string.
_STRING_BYTES = 32


class CostModel(Protocol):
    """Seconds and bytes of the nodes of a step."""

    def compute_seconds(self, node: Node, device: DeviceAttributes) -> float:
        """How long the node runs on the device once its inputs are there."""

    def transfer_seconds(
        self, size: float, source: DeviceAttributes, destination: DeviceAttributes
    ) -> float:
        """How long ``size`` bytes take from one device to another; 0 bytes are a mere signal."""

    def output_bytes(self, node: Node, index: int) -> float:
        """The size of one output."""


def node_cost(node: Node) -> float:
    """Estimated floating point operations: the op's own rule, else one per output element."""
    # A node that is differentiated within another's operation has no operation of its own to ask.
    if node.op_def.cost is not None and node.op is not None and node.op.op_def is node.op_def:
        return node.op_def.cost(node.op)
    total = 0.0
    for dims in node.dims:
        # A scalar counts as a short vector: the call is most of what it costs.
        total += assumed_elements(dims or (None,))
    return total


def assumed_elements(dims: Any) -> float:
    """How many elements a shape has, as far as the graph lets one think: ``dims`` or None."""
    if dims is None:
        return float(_UNKNOWN)
    size = 1.0
    for d in dims:
        size *= _UNKNOWN if d is None else d
    return size


def state_bytes(node: Node) -> float:
    """The size of the state whose handle the node makes, 0 for others and where it is unknown."""
    dtype, shape = node.attrs.get("dtype"), node.attrs.get("shape")
    if not node.op_def.makes_handle or dtype is None or shape is None or shape.as_tuple is None:
        return 0.0
    return assumed_elements(shape.as_tuple) * float(dtype.size)


class HeuristicCosts:
    """Costs from shapes alone.

    Attributes:
        latency, bandwidth: of one transfer between two tasks: seconds, bytes per second.
        local_latency, local_bandwidth: between two devices of one task, unless both are CPUs:
            these share their memory, so that nothing moves.
    """

    #: Seconds for any op, per floating point operation and per byte that it makes.
    _CPU = (1e-6, 1e-10, 1e-10)
    _ACCELERATOR = (2e-6, 2e-13, 2e-12)

    def __init__(
        self,
        latency: float = 150e-6,
        bandwidth: float = 1e9,
        local_latency: float = 20e-6,
        local_bandwidth: float = 10e9,
    ) -> None:
        self.latency = latency
        self.bandwidth = bandwidth
        self.local_latency = local_latency
        self.local_bandwidth = local_bandwidth
        # One node is asked about for several devices in a row.
        self._last: tuple[Node | None, float, float] = (None, 0.0, 0.0)

    def compute_seconds(self, node: Node, device: DeviceAttributes) -> float:
        """Time from the op's count of operations and the bytes it makes."""
        last, work, size = self._last
        if last is not node:
            if node.op_def is FEED or node.op_def.makes_handle or node.type == "Const":
                work = size = -1.0
            else:
                work = _work(node)
                size = sum([self.output_bytes(node, i) for i in range(len(node.dtypes))])
            self._last = (node, work, size)
        if work < 0:
            return 0.0
        fixed, per_operation, per_byte = (
            self._CPU if device.device_type in ("CPU", "NULL") else self._ACCELERATOR
        )
        return fixed + work * per_operation + size * per_byte

    def transfer_seconds(
        self, size: float, source: DeviceAttributes, destination: DeviceAttributes
    ) -> float:
        """Latency and bytes over bandwidth; nothing between devices that share memory."""
        if source.name == destination.name:
            return 0.0
        if source.task != destination.task:
            return self.latency + size / self.bandwidth
        if source.device_type == destination.device_type == "CPU":
            return 0.0
        return self.local_latency + size / self.local_bandwidth

    def output_bytes(self, node: Node, index: int) -> float:
        """Elements times the size of one; handles weigh nothing."""
        dtype = node.dtypes[index]
        if dtype is dtypes.resource:
            return 0.0
        size = _STRING_BYTES if dtype is dtypes.string else dtype.size
        return assumed_elements(node.dims[index]) * size


def _work(node: Node) -> float:
    """The operations of a node; for an op with function bodies those of its bodies."""
    work = node_cost(node)
    if node.op_def.lower is not None:
        for key, body in node.attrs.items():
            if isinstance(body, FuncGraph):
                once = sum([node_cost(n) for n in function_step(body).nodes])
                work += once * (_ITERATIONS if key == "body" else 1)
    return work


class TableCosts:
    """Measured seconds by name of the node; what the table does not know, the fallback tells."""

    def __init__(self, seconds: Mapping[str, float], fallback: CostModel | None = None) -> None:
        self.seconds = dict(seconds)
        self.fallback: CostModel = HeuristicCosts() if fallback is None else fallback

    @classmethod
    def from_step_stats(cls, step_stats: Any, fallback: CostModel | None = None) -> TableCosts:
        """From the ``step_stats`` of a RunMetadata of a FULL_TRACE that timed each op
        (``HEADRACE_TRACE_OPS=1``).

        A node that ran several times counts with its mean.
        """
        total: dict[str, tuple[float, int]] = {}
        for device in step_stats.dev_stats:
            for stats in device.node_stats:
                took = (stats.op_end_rel_micros - stats.op_start_rel_micros) * 1e-6
                seconds, count = total.get(stats.node_name, (0.0, 0))
                total[stats.node_name] = (seconds + took, count + 1)
        return cls({name: s / count for name, (s, count) in total.items()}, fallback)

    def compute_seconds(self, node: Node, device: DeviceAttributes) -> float:
        """The measured time, on whichever device it was measured."""
        seconds = self.seconds.get(node.name)
        return self.fallback.compute_seconds(node, device) if seconds is None else seconds

    def transfer_seconds(
        self, size: float, source: DeviceAttributes, destination: DeviceAttributes
    ) -> float:
        """As the fallback says."""
        return self.fallback.transfer_seconds(size, source, destination)

    def output_bytes(self, node: Node, index: int) -> float:
        """As the fallback says."""
        return self.fallback.output_bytes(node, index)
