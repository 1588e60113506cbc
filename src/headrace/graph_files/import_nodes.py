"""From the nodes of a graph file to operations: checking and decoding before, adding after.

Everything that a file can get wrong by itself is found in `plan`, which touches no graph.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import suggest
from headrace.graph import devices, dtypes
from headrace.graph.attr_proto import decode
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph
from headrace.graph.proto import NodeDef
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import check_attr, output_types
from headrace.ops.core.known_attrs import is_neutral
from headrace.ops.core.registry import ArgDef, AttrDef, OpDef, all_op_defs, find_op_def

_VALID_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
#: Older ops that a newer one replaces, with the same inputs and attributes.
_SUCCESSORS = {"BatchMatMul": "BatchMatMulV2", "Add": "AddV2", "BatchCholesky": "Cholesky"}
_SUCCESSORS["PlaceholderV2"] = "Placeholder"
#: Accumulators whose handles were references; sparse ones still have ops of these names.
_SUCCESSORS |= {
    name: f"Resource{name}"
    for name in (
        *("ConditionalAccumulator", "AccumulatorApplyGradient", "AccumulatorTakeGradient"),
        *("AccumulatorNumAccumulated", "AccumulatorSetGlobalStep"),
    )
}
#: Queues, readers and tables whose handles were references to strings.
_SUCCESSORS |= {
    name: f"{name}V2"
    for name in (
        *("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue"),
        *("QueueEnqueue", "QueueEnqueueMany", "QueueDequeue", "QueueDequeueMany"),
        *("QueueDequeueUpTo", "QueueClose", "QueueIsClosed", "QueueSize"),
        *("IdentityReader", "WholeFileReader", "TextLineReader", "FixedLengthRecordReader"),
        *("TFRecordReader", "ReaderRead", "ReaderReadUpTo", "ReaderNumRecordsProduced"),
        *("ReaderNumWorkUnitsCompleted", "ReaderSerializeState", "ReaderRestoreState"),
        *("ReaderReset", "HashTable", "MutableHashTable", "MutableHashTableOfTensors"),
        *("InitializeTable", "InitializeTableFromTextFile", "LookupTableFind"),
        *("LookupTableInsert", "LookupTableImport", "LookupTableExport", "LookupTableSize"),
    )
}

#: An input: the name of a node (or function argument) and the index of its output.
Source = tuple[str, int]


@dataclass
class NodePlan:
    """A node whose definition and attributes are known."""

    name: str
    op_def: OpDef
    attrs: dict[str, Any]
    output_types: list[DType]
    device: str
    colocation: tuple[str, ...]
    inputs: list[Source] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    #: Shapes that the file states for the outputs.
    shapes: tuple[Any, ...] = ()


def plan(
    nodes: Sequence[NodeDef],
    producer_attrs: Mapping[str, Mapping[str, Any]] | None = None,
    arguments: Sequence[str] | None = None,
    mapped: Collection[str] = (),
    producer: int | None = None,
) -> list[NodePlan]:
    """Check and decode ``nodes``; the result is in an order in which they can be added.

    Args:
        nodes: the nodes, in any order.
        producer_attrs: default values of attributes in the program that wrote the file, by op.
        arguments: names of arguments, for the body of a function; None for a graph.
        mapped: inputs (``node:index``, ``^node``) for which something else will be used: their
            nodes need not be there.
        producer: the version of the program that wrote a graph; None for the body of a function.

    Raises:
        ValueError: if a node cannot be imported; the message names it and says why.
    """
    plans: dict[str, NodePlan] = {}
    for node in nodes:
        if not is_valid_name(node.name):
            raise ValueError(f"Node '{node.name}': Node name contains invalid characters")
        if node.name in plans or node.name in (arguments or ()):
            raise ValueError(f"Node '{node.name}' is not unique")
        made = _decode_node(_as_known_here(node), (producer_attrs or {}).get(node.op, {}))
        if made.op_def.name == "Placeholder" and node.op != "PlaceholderV2":
            _forget_scalar(made, producer)
        plans[node.name] = made
    for node in nodes:
        if arguments is None:
            _parse_inputs(node, plans, mapped)
        else:
            _parse_body_inputs(node, plans, arguments)
        _check_count(node, plans[node.name])
    return _in_order(plans)


def is_valid_name(name: str) -> bool:
    """Whether an operation may have this name."""
    return _VALID_NAME.fullmatch(name) is not None


def successor_of(op_type: str) -> str:
    """The newer op that replaces an op, "" if none does."""
    return _SUCCESSORS.get(op_type, "")


#: Operations of tf.data: iterators, and what they go over.
_OF_DATA = re.compile(r"\w*Iterator\w*|\w*Dataset(V\d+)?|DatasetTo\w+|\w+ToDataset")

#: What TensorFlow does to lists by ops that ours do to numbers only.
_OF_LISTS = {"AddN": "TensorListAdd", "ZerosLike": "TensorListZerosLike"}


def _as_known_here(node: NodeDef) -> NodeDef:
    """The node by an op that does the same here: ops on lists, and the ends of a function's body.

    Raises:
        ValueError: if more than two lists are added.
    """
    if node.op in ("_Arg", "_Retval"):
        new = NodeDef(name=node.name, device=node.device, input=node.input)
        new.op = "Placeholder" if node.op == "_Arg" else "Identity"
        new.attr["dtype" if node.op == "_Arg" else "T"].CopyFrom(node.attr["T"])
        if node.op == "_Arg":
            new.attr["shape"].shape.unknown_rank = True
        if "_output_shapes" in node.attr:
            new.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
        return new
    if node.op not in _OF_LISTS or node.attr["T"].type != dtypes.variant.as_datatype_enum:
        return node
    new = NodeDef()
    new.CopyFrom(node)
    count = new.attr.pop("N").i if "N" in new.attr else 1
    if node.op == "AddN" and count != 2:
        raise ValueError(f"Node '{node.name}': {count} lists are added; only two can be.")
    new.op = _OF_LISTS[node.op]
    del new.attr["T"]
    return new


def _decode_node(node: NodeDef, producer_defaults: Mapping[str, Any]) -> NodePlan:
    op_def = find_op_def(node.op) or find_op_def(successor_of(node.op))
    if op_def is None and _OF_DATA.fullmatch(node.op):
        raise ValueError(
            f"Node '{node.name}' is of type {node.op}, a part of tf.data that is not in "
            "Headrace yet. Put placeholders in the place of what its iterators give (the outputs "
            "of IteratorGetNext) before the graph is written, and feed them."
        )
    if op_def is None:
        raise ValueError(
            f"Op type not registered '{node.op}' (node '{node.name}')."
            f"{suggest(node.op, all_op_defs())}"
        )
    attrs: dict[str, Any] = {}
    colocation: tuple[str, ...] = ()
    shapes: tuple[Any, ...] = ()
    for name, value in node.attr.items():
        definition = op_def.attrs.get(name)
        try:
            if definition is not None:
                attrs[name] = decode(value, definition.kind)
            elif name == "_class":
                colocation = _colocation(decode(value, "list(string)"))
            elif name == "_validate_shape":  # see `graph_files.export_graph`
                attrs["validate_shape"] = decode(value, "bool")
            elif name == "_output_shapes":
                shapes = decode(value, "list(shape)")[: op_def.traits.stated_outputs]
            elif name.startswith("_"):
                attrs[name] = decode(value) if value.WhichOneof("value") else value
            elif not (value == producer_defaults.get(name) or is_neutral(name, value)):
                raise ValueError(
                    f"NodeDef mentions attr '{name}' not in {_signature(op_def)}, and its value is "
                    "not the default with which older programs go on to work"
                )
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"{error}\n\t for attr '{name}'\n\t; NodeDef: {{{{node {node.name}}}}}; "
                f"{_signature(op_def)}"
            ) from None
    _complete_attrs(node, op_def, attrs)
    return NodePlan(
        node.name,
        op_def,
        attrs,
        output_types(op_def, attrs),
        _device(node),
        colocation,
        shapes=shapes,
    )


#: Programs up to this version wrote the shape of a scalar for a shape that is not known.
_SCALAR_FOR_UNKNOWN = 21


def _forget_scalar(plan: NodePlan, producer: int | None) -> None:
    """Let a placeholder of old have any shape, where its scalar shape does not mean a scalar.

    Newer programs handed such nodes on: then the shape stated for the output tells.
    """
    shape = plan.attrs.get("shape")
    if shape is None or shape.as_tuple != ():
        return
    stated = plan.shapes[0].as_tuple if plan.shapes else ()
    is_old = producer is not None and producer <= _SCALAR_FOR_UNKNOWN
    if is_old or stated != ():
        plan.attrs["shape"] = TensorShape(None)


def _complete_attrs(node: NodeDef, op_def: OpDef, attrs: dict[str, Any]) -> None:
    for definition in op_def.attrs.values():
        if definition.name not in attrs:
            if not definition.has_default:
                raise ValueError(
                    f"NodeDef missing attr '{definition.name}' from {_signature(op_def)}; NodeDef: "
                    f"{{{{node {node.name}}}}}"
                )
            attrs[definition.name] = definition.default
        elif definition.allowed is not None or definition.minimum is not None:
            try:
                check_attr(definition, attrs[definition.name], op_def.name)
            except (TypeError, ValueError) as error:
                raise ValueError(f"Node '{node.name}': {error}") from None
    if (
        op_def.name == "Const"
        and node.attr["value"].tensor.dtype != attrs["dtype"].as_datatype_enum
    ):
        raise ValueError(
            f"Node '{node.name}': its value is of type "
            f"{DType(node.attr['value'].tensor.dtype).name}, its dtype is {attrs['dtype'].name}"
        )
    for arg in (*op_def.inputs, *op_def.outputs):
        if arg.number_attr is not None and not 0 <= attrs[arg.number_attr] <= _MAX_LIST:
            raise ValueError(
                f"Node '{node.name}': {attrs[arg.number_attr]} is no length for '{arg.name}'"
            )


#: More inputs or outputs than this are taken for damage.
_MAX_LIST = 1 << 24


def _signature(op_def: OpDef) -> str:
    """An op's definition as messages show it."""

    def args(group: Iterable[ArgDef]) -> str:
        parts = []
        for arg in group:
            kind = arg.type_list_attr or arg.type_attr or (arg.dtype.name if arg.dtype else "")
            parts.append(f"{arg.name}:{arg.number_attr + '*' if arg.number_attr else ''}{kind}")
        return ", ".join(parts)

    attrs = "".join(f"; attr={a.name}:{a.kind}" for a in op_def.attrs.values())
    return (
        f"Op<name={op_def.name}; signature={args(op_def.inputs)} -> {args(op_def.outputs)}{attrs}>"
    )


def _colocation(entries: Iterable[Any]) -> tuple[str, ...]:
    found = []
    for entry in entries:
        text = entry if isinstance(entry, str) else entry.decode(errors="replace")
        if text.startswith("loc:@"):
            found.append(text[5:])
    return tuple(found)


def _device(node: NodeDef) -> str:
    try:
        return devices.canonical_name(node.device)
    except ValueError as error:
        raise ValueError(f"Node '{node.name}': {error}") from None


# -- inputs -------------------------------------------------------------------------------------


def split_inputs(node: NodeDef) -> tuple[list[str], list[str]]:
    """The data inputs of a node and the nodes it waits for.

    Raises:
        ValueError: if a control input stands before a data input.
    """
    data: list[str] = []
    controls: list[str] = []
    for source in node.input:
        if source.startswith("^"):
            controls.append(source[1:])
        elif controls:
            raise ValueError(
                f"Node '{node.name}': Control dependencies must come after regular dependencies"
            )
        else:
            data.append(source)
    return data, controls


def parse_tensor_name(name: str) -> Source:
    """Node and output index of ``node`` or ``node:index``.

    Raises:
        ValueError: if the index is no number.
    """
    node, colon, index = name.partition(":")
    if not colon:
        return node, 0
    if not (index.isascii() and index.isdigit()):
        raise ValueError(
            f"Cannot convert '{name}' to a tensor name. Second component of the name following the "
            f"`:` should be an int. Got {index}."
        )
    return node, int(index)


def _parse_inputs(node: NodeDef, plans: dict[str, NodePlan], mapped: Collection[str]) -> None:
    mine = plans[node.name]
    data, controls = split_inputs(node)
    for source in data:
        name, index = parse_tensor_name(source)
        if f"{name}:{index}" in mapped:
            mine.inputs.append((name, index))
            continue
        found = _known(node, name, plans)
        if index >= len(found.output_types):
            raise ValueError(
                f"Node '{node.name}': Connecting to invalid output {index} of source node {name} "
                f"which has {len(found.output_types)} outputs."
            )
        mine.inputs.append((name, index))
    for name in controls:
        if f"^{name}" not in mapped:
            _known(node, name, plans)
        mine.controls.append(name)
    for name in mine.colocation:
        if name not in plans:
            raise ValueError(
                f"Node '{node.name}' expects to be colocated with unknown node '{name}'"
            )


def _known(node: NodeDef, name: str, plans: dict[str, NodePlan]) -> NodePlan:
    found = plans.get(name)
    if found is None:
        raise ValueError(f"Node '{node.name}': Unknown input node '{name}'{suggest(name, plans)}")
    return found


def _parse_body_inputs(node: NodeDef, plans: dict[str, NodePlan], arguments: Sequence[str]) -> None:
    mine = plans[node.name]
    data, controls = split_inputs(node)
    mine.inputs = [parse_body_source(s, plans, arguments, f"Node '{node.name}'") for s in data]
    for name in controls:
        if name not in arguments:
            _known(node, name, plans)
            mine.controls.append(name)


def parse_body_source(
    source: str, plans: Mapping[str, NodePlan], arguments: Sequence[str], user: str
) -> Source:
    """What ``argument`` or ``node:output:index`` means inside a function.

    Raises:
        ValueError: if there is no such argument or output.
    """
    name, _, rest = source.partition(":")
    if name in arguments and rest in ("", "0"):
        return name, 0
    output, _, index = rest.partition(":")
    found = plans.get(name)
    position = None if found is None else _output_position(found, output, index)
    if position is None:
        raise ValueError(f"{user}: Unknown input '{source}' in the body of a function")
    return name, position


def _output_position(node: NodePlan, output: str, index: str) -> int | None:
    if index and not index.isdigit():
        return None
    position = 0
    for arg in node.op_def.outputs:
        count = _count(arg, node.attrs)
        if arg.name == output:
            offset = int(index or 0)
            return position + offset if offset < count else None
        position += count
    return None


def _count(arg: ArgDef, attrs: Mapping[str, Any]) -> int:
    if arg.number_attr is not None:
        return int(attrs[arg.number_attr])
    return 1 if arg.type_list_attr is None else len(attrs[arg.type_list_attr])


def input_types(node: NodePlan) -> list[DType]:
    """The types that the inputs of a node must have, by its definition."""
    types: list[DType] = []
    for arg in node.op_def.inputs:
        if arg.type_list_attr is not None:
            types.extend(node.attrs[arg.type_list_attr])
        else:
            dtype = arg.dtype or node.attrs[arg.type_attr or ""]
            types.extend([dtype] * _count(arg, node.attrs))
    return types


def _check_count(node: NodeDef, mine: NodePlan) -> None:
    expected = input_types(mine)
    if len(expected) != len(mine.inputs):
        names = ", ".join(t.name for t in expected)
        raise ValueError(
            f"NodeDef expected inputs '{names}' do not match {len(mine.inputs)} inputs specified; "
            f"{_signature(mine.op_def)}; NodeDef: {{{{node {node.name}}}}}"
        )


def _in_order(plans: dict[str, NodePlan]) -> list[NodePlan]:
    """The nodes, each after those it depends on; else in the order of the file."""
    rank = {name: i for i, name in enumerate(plans)}
    users: dict[str, list[str]] = {name: [] for name in plans}
    pending: dict[str, int] = {}
    for name, node in plans.items():
        needs = {n for n in (*[n for n, _ in node.inputs], *node.controls) if n in plans}
        pending[name] = len(needs)
        for source in needs:
            users[source].append(name)
    names = list(plans)
    ready = [rank[n] for n in names if not pending[n]]
    result: list[NodePlan] = []
    while ready:
        name = names[heapq.heappop(ready)]
        result.append(plans[name])
        for user in users[name]:
            pending[user] -= 1
            if not pending[user]:
                heapq.heappush(ready, rank[user])
    if len(result) != len(plans):
        stuck = [n for n in names if pending[n]]
        shown = ", ".join(f"'{n}'" for n in stuck[:5])
        raise ValueError(
            f"{len(stuck)} nodes in a cycle or behind one: {shown}"
            f"{' ...' if len(stuck) > 5 else ''}"
        )
    return result


# -- adding -------------------------------------------------------------------------------------


def add_node(
    graph: Graph,
    node: NodePlan,
    name: str,
    inputs: Sequence[Tensor],
    controls: Iterable[Operation],
    attrs: dict[str, Any],
) -> Operation:
    """Add a planned node to ``graph`` under the full name ``name``.

    Raises:
        ValueError: if types or shapes do not fit.
    """
    for i, (tensor, wanted) in enumerate(zip(inputs, input_types(node), strict=True)):
        if tensor.dtype is not wanted:
            raise ValueError(
                f"Input {i} of node {name} was passed {tensor.dtype.name} from {tensor.name} "
                f"incompatible with expected {wanted.name}."
            )
    try:
        op = graph.add_op(
            node.op_def, inputs, attrs, node.output_types, name + "/", controls, node.device
        )
    except RuntimeError:
        raise
    except Exception as error:
        raise ValueError(f"Node '{name}' (op {node.op_def.name}) does not fit: {error}") from error
    if graph._devices.entries:
        graph._devices.apply(op)
    for i, (tensor, stated) in enumerate(zip(op.outputs, node.shapes, strict=False)):
        try:
            tensor.set_shape(stated)
        except ValueError as error:
            raise ValueError(
                f"Node '{name}' has an _output_shapes attribute inconsistent with the GraphDef "
                f"for output #{i}: {error}"
            ) from None
    return op


def resolve_functions(node: NodePlan, inputs: Sequence[Tensor], library: Any) -> dict[str, Any]:
    """The attributes of a node with function bodies in the place of their names.

    Args:
        node: the node.
        inputs: its inputs, whose shapes are those of the arguments of what it calls.
        library: the FunctionLibrary that makes the bodies.
    """
    kinds = {n: d.kind for n, d in node.op_def.attrs.items() if d.kind.endswith(("func", "func)"))}
    if not kinds:
        return node.attrs
    attrs = dict(node.attrs)
    bodies: list[Any] = []
    for name, kind in kinds.items():
        own = node.op_def.traits.own_arguments
        dims = None if own else _argument_dims(node.op_def.attrs[name], attrs, inputs)
        if kind == "func":
            attrs[name] = library.body(attrs[name], dims)
            bodies.append(attrs[name])
        else:
            attrs[name] = tuple(library.body(v, dims) for v in attrs[name])
            bodies.extend(attrs[name])
    if attrs.get("_saved"):
        attrs["_saved"] = tuple(_renamed_saved(s, bodies, library) for s in attrs["_saved"])
    return attrs


def _renamed_saved(saved: str, bodies: Sequence[Any], library: Any) -> str:
    """The name of an inner tensor that an op hands out, as the tensor is called now."""
    branch, mark, tensor = saved.rpartition("!")
    name, colon, index = tensor.partition(":")
    chosen = [bodies[int(branch)]] if mark else bodies
    for body in chosen:
        name = library.renamed.get(body, {}).get(name, name)
    return f"{branch}{mark}{name}{colon}{index}"


def _argument_dims(
    definition: AttrDef, attrs: Mapping[str, Any], inputs: Sequence[Tensor]
) -> list[Any] | None:
    """Shapes of the arguments of the function in attribute ``definition``; None if not known."""
    if definition.name in ("then_branch", "else_branch", "branches"):
        return [t.dims for t in inputs[1:]]
    if definition.name == "f":
        return [t.dims for t in inputs]
    if definition.name in ("cond", "body") and attrs.get("output_shapes"):
        return [s.as_tuple for s in attrs["output_shapes"]]
    return None
