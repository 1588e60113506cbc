"""Parts of a step as messages, to register them with the task that runs them.

Constants travel as buffers beside the message, so no limit of protocol buffers concerns them. No
Python function is among what crosses: function bodies are graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps.steps import RegisteredPlan
from headrace.distributed.wire import codec
from headrace.errors import InvalidArgumentError
from headrace.executor.stages import PartTables
from headrace.executor.transfers import RECV, SEND
from headrace.graph import attr_proto
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph
from headrace.graph.graph_def import function_to_function_def, functions_of, write_attrs
from headrace.graph.shapes import shape_to_proto
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph_files.import_functions import FunctionLibrary
from headrace.graph_files.import_nodes import resolve_functions
from headrace.ops.control.flow import calls_of
from headrace.ops.core.registry import OpDef, get_op_def
from headrace.partition.functions import Bodies, Body
from headrace.partition.parts import Moved, Part, Partition, Transfer
from headrace.passes.ir import FEED, Node

_INTERNAL: dict[str, OpDef] = {d.name: d for d in (FEED, SEND, RECV)}


def to_message(part: Part) -> tuple[pb.PartDef, list[Any]]:
    """The message of a part, and the buffers of its constants."""
    message = pb.PartDef(task=part.task)
    transfers = list(dict.fromkeys([*part.sends, *part.recvs]))
    feeds = [n for _, n in part.feeds]
    nodes = [*feeds, *[n for n in part.nodes if n.op_def is not FEED]]
    position = {n: i for i, n in enumerate(nodes)}
    constants: list[Any] = []
    for node in nodes:
        made = message.nodes.add(name=node.name, op=node.type, device=node.device)
        made.input_nodes.extend(position[n] for n, _ in node.inputs)
        made.input_indices.extend(i for _, i in node.inputs)
        made.controls.extend(position[n] for n in node.control)
        made.dtypes.extend(d.as_datatype_enum for d in node.dtypes)
        made.shapes.extend(shape_to_proto(d) for d in node.dims)
        if node in part.tables.groups:
            made.stage, made.component = part.tables.groups[node]
        if node.op_def in (SEND, RECV):
            made.transfer = transfers.index(node.attrs["transfer"]) + 1
        elif node.op_def is not FEED:
            _write_attrs(made, node, constants, part.tables.bodies.get(node, {}))
    message.feeds.extend(range(len(feeds)))
    message.fetch_nodes.extend(position[n] for _, (n, _) in part.fetches)
    message.fetch_indices.extend(i for _, (_, i) in part.fetches)
    message.transfers.extend(_transfer_message(t) for t in transfers)
    for function in functions_of(n for n in nodes if n.op_def not in _INTERNAL.values()):  # type: ignore[misc]
        message.library.function.append(function_to_function_def(function))
    metas, buffers = codec.encode_many(constants)
    message.values.extend(metas)
    return message, buffers


def _write_attrs(
    made: pb.PartNode, node: Node, constants: list[Any], bodies: Mapping[Any, Body]
) -> None:
    attrs = node.attrs
    if node.type == "Const":
        constants.append(attrs["value"])
        made.value = len(constants)
        attrs = {k: v for k, v in attrs.items() if k != "value"}
    write_attrs(made, node.op_def, attrs)  # type: ignore[arg-type]
    if bodies:
        for number, key in enumerate(calls_of(attrs)):
            if key in bodies:
                made.bodies.append(_body_message(number, bodies[key], constants))


def _body_message(number: int, body: Body, constants: list[Any]) -> pb.BodyDef:
    plan: RegisteredPlan = body.plan
    message = pb.BodyDef(call=number, name=body.name, plan=plan.number, size=plan.size)
    for task, feeds in plan.feeds.items():
        message.shares.add(task=task, feeds=feeds, fetches=plan.fetches[task])
    for fetch, feed in plan.fed:
        message.fed_fetches.append(fetch)
        message.fed_feeds.append(feed)
    for fetch, value in plan.constants:
        constants.append(value)
        message.constant_fetches.append(fetch)
        message.constants.append(len(constants))
    return message


def _transfer_message(transfer: Transfer) -> pb.TransferDef:
    message = pb.TransferDef(
        number=transfer.number, source=transfer.source, destination=transfer.destination
    )
    for moved in transfer.tensors:
        message.tensors.add(
            name=moved.name,
            dtype=moved.dtype.as_datatype_enum,
            shape=shape_to_proto(moved.dims),
            source=moved.source,
            destination=moved.destination,
            precision=moved.precision,
        )
    return message


def from_message(message: pb.PartDef, buffers: list[Any]) -> Part:
    """The part that `to_message` was given, with operations to name in errors.

    Raises:
        InvalidArgumentError: if the message does not describe a part.
    """
    try:
        return _Reader(message, codec.decode_many(message.values, buffers)).part()
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise InvalidArgumentError(
            None, None, f"The part of a plan for {message.task} cannot be read: {error}"
        ) from error


class _Reader:
    def __init__(self, message: pb.PartDef, constants: list[Any]) -> None:
        self.message = message
        self.constants = constants
        self.graph = Graph()
        self.library = FunctionLibrary(self.graph, message.library.function)
        self.transfers = [_read_transfer(t) for t in message.transfers]
        self.nodes: list[Node] = []
        self.groups: dict[Node, tuple[int, int]] = {}
        self.bodies: Bodies = {}

    def part(self) -> Part:
        message = self.message
        for number, node in enumerate(message.nodes):
            self.nodes.append(self._node(number, node))
        nodes = self.nodes
        feeds = [nodes[i] for i in message.feeds]
        if any(n.op_def is not FEED for n in feeds):
            raise ValueError("a feed is no feed")
        fetches = [
            (nodes[n], i) for n, i in zip(message.fetch_nodes, message.fetch_indices, strict=True)
        ]
        sends = {n.attrs["transfer"] for n in nodes if n.op_def is SEND}
        return Part(
            message.task,
            nodes,
            list(enumerate(feeds)),
            list(enumerate(fetches)),
            [t for t in self.transfers if t in sends],
            [t for t in self.transfers if t not in sends],
            PartTables(self.groups, self.bodies),
        )

    def _node(self, number: int, message: pb.PartNode) -> Node:
        op_def = _INTERNAL.get(message.op) or get_op_def(message.op)
        inputs = []
        for source, index in zip(message.input_nodes, message.input_indices, strict=True):
            if not 0 <= source < number or not 0 <= index < len(self.nodes[source].dtypes):
                raise ValueError(f"input {source}:{index} of node {number} is not before it")
            inputs.append((self.nodes[source], index))
        dtypes = tuple(DType(d) for d in message.dtypes)
        dims = tuple(_dims_of(s) for s in message.shapes)
        if len(dims) != len(dtypes):
            raise ValueError(f"node {number} has {len(dtypes)} types and {len(dims)} shapes")
        tensors = tuple(n.op.outputs[i] for n, i in inputs if n.op is not None)
        attrs = self._attrs(message, op_def, tensors)
        op = Operation(self.graph, message.name, op_def, tensors, attrs)
        op.device = message.device
        op._id = number
        op.outputs = tuple(
            Tensor(op, i, t, d) for i, (t, d) in enumerate(zip(dtypes, dims, strict=True))
        )
        node = Node(op_def, message.name, inputs, attrs, dtypes, dims, op)
        node.control = [self.nodes[c] for c in message.controls if 0 <= c < number]
        node.device = message.device
        self.groups[node] = (message.stage, message.component)
        if message.bodies:
            keys = calls_of(attrs)
            self.bodies[node] = {keys[b.call]: self._body(b) for b in message.bodies}
        return node

    def _body(self, message: pb.BodyDef) -> Body:
        plan = RegisteredPlan(
            message.plan,
            {share.task: list(share.feeds) for share in message.shares},
            {share.task: list(share.fetches) for share in message.shares},
            list(zip(message.fed_fetches, message.fed_feeds, strict=True)),
            [
                (fetch, self.constants[value - 1])
                for fetch, value in zip(message.constant_fetches, message.constants, strict=True)
            ],
            message.size,
        )
        return Body(message.name, Partition({}, [], [], len(plan.feeds), plan.size), plan)

    def _attrs(
        self, message: pb.PartNode, op_def: OpDef, inputs: tuple[Tensor, ...]
    ) -> dict[str, Any]:
        if op_def in (SEND, RECV):
            return {"transfer": self.transfers[message.transfer - 1]}
        attrs: dict[str, Any] = {}
        for name, value in message.attr.items():
            declared = op_def.attrs.get(name)
            attrs[name] = attr_proto.decode(value, declared.kind if declared else None)
        for name, declared in op_def.attrs.items():
            if name not in attrs and declared.has_default:
                attrs[name] = declared.default
        if message.value:
            attrs["value"] = self.constants[message.value - 1]
        plan = SimpleNamespace(op_def=op_def, attrs=attrs)
        return resolve_functions(plan, inputs, self.library)  # type: ignore[arg-type]


def _dims_of(message: Any) -> Dims:
    if message.unknown_rank:
        return None
    return tuple(None if d.size < 0 else d.size for d in message.dim)


def _read_transfer(message: pb.TransferDef) -> Transfer:
    tensors = [
        Moved(t.name, DType(t.dtype), _dims_of(t.shape), t.source, t.destination, t.precision)
        for t in message.tensors
    ]
    return Transfer(message.number, message.source, message.destination, tensors)
