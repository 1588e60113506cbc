"""Graphs as GraphDef messages, in TensorFlow's wire format.

Attributes are written by the kinds that the op declares, defaults included. A function body that
an attribute holds becomes a FunctionDef of the library, its captures further arguments.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from headrace.errors import DataLossError, InvalidArgumentError, OpError
from headrace.graph.attr_proto import encode, encode_untyped
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.graph.proto import FunctionDef, GraphDef, NodeDef, OpDef, VersionDef
from headrace.graph.shapes import shape_to_proto
from headrace.graph.tensor import Operation, Tensor

#: What files say of the program that wrote them: op signatures are those of TensorFlow 1.15.
PRODUCER = 134
#: Files that ask for a newer reader than this are refused; it is the version of TensorFlow 2.21.
CONSUMER = 2474


#: What a file can hold: the format counts with 31 bits.
MAX_BYTES = (1 << 31) - 1

#: The collection that holds `library_of` a graph.
_LIBRARY = "__function_library"


def graph_versions() -> VersionDef:
    """The producer and consumer versions that files of ours carry."""
    return VersionDef(producer=PRODUCER, min_consumer=0)


def graph_to_graph_def(
    graph: Graph,
    from_version: int | None = None,
    add_shapes: bool = False,
    own_checks: bool = False,
) -> GraphDef:
    """``graph`` as a GraphDef message.

    Args:
        graph: the graph to write.
        from_version: leave out operations that existed at this ``graph.version``.
        add_shapes: write the static shapes of outputs as ``_output_shapes``.
        own_checks: keep checks that only Headrace knows; otherwise Identity takes their place.
    """
    message = GraphDef(versions=graph_versions())
    with graph._lock:
        ops = graph._ops[from_version or 0 :]
        check_size(ops)
        message.node.extend(_node_def(op, add_shapes) for op in ops)
        held = {f.name: f for f in functions_of(ops)} | library_of(graph)
        for _, function in sorted(held.items()):
            message.library.function.append(function_to_function_def(function))
    if not own_checks:
        leave_out_checks(message, own_checks_among(ops))
    return message


def check_size(ops: Iterable[Operation]) -> None:
    """Refuse constants that no file can hold.

    Raises:
        ValueError: if the constants among ``ops`` and in their functions have more than 2 GB;
            names the largest.
    """
    ops = list(ops)
    bodies = (op for function in functions_of(ops) for op in function._ops)
    sizes = {op.name: op.attrs["value"].nbytes for op in chain(ops, bodies) if op.type == "Const"}
    total = sum(sizes.values())
    if total <= MAX_BYTES:
        return
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    shown = ", ".join(f"'{name}' ({sizes[name]:,} bytes)" for name in largest)
    raise ValueError(
        f"The constants of the graph have {total:,} bytes, and a GraphDef can hold {MAX_BYTES:,} "
        f"(2 GB). The largest are {shown}. Make them variables: tf.Variable of a placeholder that "
        "is fed when it is initialised, saved and restored by tf.train.Saver; or feed the values."
    )


def own_checks_among(ops: Iterable[Operation]) -> set[str]:
    """The types of ``ops``, and of those in their functions, that only Headrace knows as checks."""
    ops = list(ops)
    bodies = (op for function in functions_of(ops) for op in function._ops)
    return {op.type for op in chain(ops, bodies) if op.op_def.traits.own_check}


def leave_out_checks(message: GraphDef, checks: set[str]) -> None:
    """Write Identity for ``checks``, which hand on their first input after a look at it."""
    if not checks:
        return
    bodies = (function.node_def for function in message.library.function)
    for node in chain(message.node, *bodies):
        if node.op in checks:
            node.op = "Identity"
            del node.input[1 : sum(not i.startswith("^") for i in node.input)]
            for name in [a for a in node.attr if a != "T" and a[0] != "_"]:
                del node.attr[name]


def operation_to_node_def(op: Operation) -> NodeDef:
    """One operation as a NodeDef message."""
    return _node_def(op, add_shapes=False)


def _node_def(op: Operation, add_shapes: bool) -> NodeDef:
    node = NodeDef(name=op.name, op=op.type, device=op.device)
    node.input.extend(input_name(t) for t in op.inputs)
    node.input.extend(f"^{c.name}" for c in op.control_inputs)
    write_rest(node, op, add_shapes)
    return node


def write_rest(node: NodeDef, op: Operation, add_shapes: bool) -> None:
    """Fill in all but the inputs of the node that stands for ``op``."""
    write_attrs(node, op.op_def, op.attrs)
    if op.colocation:
        write_colocation(node, op.colocation)
    if add_shapes and op.outputs:
        shapes = [t.dims for t in op.outputs]
        node.attr["_output_shapes"].CopyFrom(encode(shapes, "list(shape)"))


def input_name(tensor: Tensor) -> str:
    """How the nodes of a graph refer to a tensor."""
    return tensor.op.name if tensor.value_index == 0 else tensor.name


def write_colocation(node: NodeDef, names: Iterable[str]) -> None:
    """State that ``node`` stands on the devices of the operations called ``names``."""
    node.attr["_class"].list.s.extend(f"loc:@{n}".encode() for n in names)


def write_attrs(node: NodeDef, op_def: Any, attrs: dict[str, Any]) -> None:
    """Fill in the attributes of ``node``: declared ones by their kind, others by their value.

    Raises:
        TypeError: if a value is not of the declared kind.
    """
    declared = op_def.attrs
    for name, value in attrs.items():
        definition = declared.get(name)
        if definition is None:
            if value is not None:
                node.attr[name].CopyFrom(encode_untyped(value))
        elif value is not None or definition.kind == "shape":
            if value is None and name[0] == "_":
                continue
            dtype = attrs.get("dtype") if definition.kind == "tensor" else None
            if not isinstance(dtype, DType):
                dtype = None
            node.attr[name].CopyFrom(encode(value, definition.kind, dtype))


# -- functions ----------------------------------------------------------------------------------


def functions_of(ops: Iterable[Operation]) -> list[FuncGraph]:
    """The function bodies that the attributes of ``ops`` hold, and those inside them, once each."""
    found: dict[str, FuncGraph] = {}
    stack = list(ops)
    while stack:
        for function in held_functions(stack.pop().attrs.values()):
            if function.name not in found:
                found[function.name] = function
                stack.extend(function._ops)
    return [found[name] for name in sorted(found)]


def held_functions(values: Iterable[Any]) -> Iterator[FuncGraph]:
    """The function bodies among the ``values`` of attributes."""
    for value in values:
        if isinstance(value, FuncGraph):
            yield value
        elif isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, FuncGraph))


def called_functions(node: Any) -> Iterator[str]:
    """The names of the functions that a NodeDef has among its attributes."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (f.name for f in value.list.func)


def library_of(graph: Graph) -> dict[str, FuncGraph]:
    """The functions that programs have added to a graph itself, by name."""
    kept = graph.outermost.get_collection_ref(_LIBRARY)
    if not kept:
        kept.append({})
    found: dict[str, FuncGraph] = kept[0]
    return found


class _FunctionNames:
    """Names of arguments, nodes and results of one FunctionDef, each used once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def argument(self, name: str) -> str:
        """``name`` in the form that arguments must have: lower case, digits, underscores."""
        plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
        return self.unique(plain if plain[:1].isalpha() else f"arg_{plain.lstrip('_')}")

    def unique(self, name: str) -> str:
        chosen, count = name, 0
        while chosen in self.taken:
            chosen = f"{name}_{count}"
            count += 1
        self.taken.add(chosen)
        return chosen


@dataclass
class FunctionParts:
    """A FunctionDef without its nodes, and what its nodes are called.

    Attributes:
        body: the operations to write, with ``names`` for them.
        taken: all names of arguments and nodes.
        sources: how inputs refer to arguments and to outputs of the body.
    """

    message: FunctionDef
    body: list[Operation]
    names: dict[Operation, str]
    taken: set[str]
    sources: dict[Tensor, str]


def function_to_function_def(function: FuncGraph) -> FunctionDef:
    """The body of a function as a FunctionDef: arguments are its inputs, then its captures."""
    parts = begin_function(function)
    for op in parts.body:
        parts.message.node_def.append(_body_node(op, parts.names, parts.sources))
    return end_function(function, parts, parts.sources.__getitem__)


def begin_function(function: FuncGraph) -> FunctionParts:
    """The arguments of a function, and names for all that is in its body."""
    message = FunctionDef()
    signature = message.signature
    signature.name = function.name
    names = _FunctionNames()
    sources: dict[Tensor, str] = {}
    for index, tensor in enumerate(function.all_inputs):
        arg = signature.input_arg.add(
            name=names.argument(tensor.op.name), type=tensor.dtype.as_datatype_enum
        )
        sources[tensor] = arg.name
        described = message.arg_attr[index].attr
        described["_output_shapes"].list.shape.append(shape_to_proto(tensor.dims))
        # Arguments have plain names; what refers to the operation inside needs its own.
        described["_op_name"].s = tensor.op.name.encode()
    arguments = {t.op for t in function.all_inputs}
    body = [op for op in function._ops if op not in arguments]
    node_names = {op: names.unique(op.name) for op in body}
    for op in body:
        sources.update(zip(op.outputs, body_sources(op, node_names[op]), strict=True))
    return FunctionParts(message, body, node_names, names.taken, sources)


def end_function(
    function: FuncGraph, parts: FunctionParts, source_of: Callable[[Tensor], str]
) -> FunctionDef:
    """Add the results of a function; ``source_of`` tells where each comes from."""
    message = parts.message
    results = _FunctionNames()
    for tensor in function.outputs:
        name = results.argument(tensor.op.name)
        message.signature.output_arg.add(name=name, type=tensor.dtype.as_datatype_enum)
        message.ret[name] = source_of(tensor)
    for op in parts.body:
        if not _only_reads(op):
            message.signature.control_output.append(parts.names[op])
            message.control_ret[parts.names[op]] = parts.names[op]
    message.signature.is_stateful = any(op.op_def.is_stateful for op in parts.body)
    return message


def _only_reads(op: Operation) -> bool:
    effects = op.op_def.effects
    return not (effects.writes or effects.external or effects.blocks)


def body_sources(op: Operation, node: str) -> list[str]:
    """How the nodes of a function refer to the outputs of ``op``: ``node:argument:index``."""
    found: list[str] = []
    for arg in op.op_def.outputs:
        count = 1
        if arg.number_attr is not None:
            count = op.attrs[arg.number_attr]
        elif arg.type_list_attr is not None:
            count = len(op.attrs[arg.type_list_attr])
        found.extend(f"{node}:{arg.name}:{i}" for i in range(count))
    return found


def _body_node(
    op: Operation, node_names: dict[Operation, str], sources: dict[Tensor, str]
) -> NodeDef:
    node = NodeDef(name=node_names[op], op=op.type, device=op.device)
    node.input.extend(sources[t] for t in op.inputs)
    node.input.extend(f"^{node_names[c]}" for c in op.control_inputs if c in node_names)
    write_rest(node, op, add_shapes=False)
    return node


def op_def_to_proto(op_def: Any) -> OpDef:
    """The definition of an op type as an OpDef message: arguments, attributes and defaults."""
    message = OpDef(name=op_def.name, is_stateful=op_def.is_stateful)
    for args, group in ((op_def.inputs, message.input_arg), (op_def.outputs, message.output_arg)):
        for arg in args:
            made = group.add(
                name=arg.name,
                type_attr=arg.type_attr or "",
                number_attr=arg.number_attr or "",
                type_list_attr=arg.type_list_attr or "",
            )
            if arg.dtype is not None:
                made.type = arg.dtype.as_datatype_enum
    for attr in op_def.attrs.values():
        made_attr = message.attr.add(name=attr.name, type=attr.kind)
        # TensorFlow has no default for the type of the shapes of lists: files always state it.
        stated = attr.name != "shape_type" or "TensorList" not in op_def.name
        if stated and attr.has_default and (attr.default is not None or attr.kind == "shape"):
            made_attr.default_value.CopyFrom(encode(attr.default, attr.kind))
        if attr.minimum is not None:
            made_attr.has_minimum = True
            made_attr.minimum = attr.minimum
    return message


# -- bytes and text -----------------------------------------------------------------------------


def parse_message(message_type: Any, data: bytes, what: str) -> Any:
    """A message of ``message_type`` from bytes, or from text when the bytes are no message.

    Args:
        message_type: the message class, such as GraphDef.
        data: the content of a file.
        what: where the bytes come from, for the error.

    Raises:
        DataLossError: if the bytes are no such message: cut off, corrupt or something else.
    """
    from google.protobuf import message as protobuf_message
    from google.protobuf import text_format

    from headrace.graph.text_messages import parse_text

    name = message_type.DESCRIPTOR.name
    reason = "none of its fields is in it" if data else "nothing is in it"
    found = None
    try:
        found = message_type.FromString(data)
    except (protobuf_message.DecodeError, RuntimeError) as error:
        reason = str(error)
    if found is None or not found.ListFields():
        try:
            found = parse_text(data, message_type())
        except (text_format.ParseError, ValueError):
            found = None
    if found is None or not found.ListFields():
        raise DataLossError(
            None,
            None,
            f"{what} ({len(data)} bytes) is no {name}, neither in binary nor in text form: it is "
            f"cut off, corrupt or something else ({reason}).",
        )
    return found


class GraphFileError(InvalidArgumentError, ValueError):
    """A file whose graph contradicts itself, or needs what is not there. Importing a message
    raises ValueError for that; this one names the file."""


@contextlib.contextmanager
def from_file(path: str) -> Iterator[None]:
    """Failures of adding what a file holds to a graph become errors that name the file.

    Raises:
        GraphFileError: for ValueError and KeyError.
        DataLossError: for errors of that class which do not name it yet.
    """
    try:
        yield
    except DataLossError as error:
        if path in error.message:
            raise
        raise DataLossError(None, None, f"The file '{path}': {error.message}") from error
    except OpError:
        raise
    except (ValueError, KeyError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise GraphFileError(None, None, f"The file '{path}': {text}") from error


def parse_graph_def(data: bytes, what: str = "The graph") -> GraphDef:
    """A GraphDef from its bytes, binary or text.

    Raises:
        DataLossError: if the bytes are cut off, corrupt or no GraphDef at all.
    """
    found: GraphDef = parse_message(GraphDef, data, what)
    return found
