"""`tf.graph_util`: cutting and freezing graphs in GraphDef form, and writing them to files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from headrace.files.paths import as_path, is_local, translate
from headrace.files.system import write_bytes
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation
from headrace.graph_files.export_graph import graph_def_for_files
from headrace.graph_files.import_slices import node_of
from headrace.ops.state import share

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
    "write_graph",
]

#: Of nodes in files, also of older releases, whose ops nothing here defines.
_VARIABLES = frozenset({"Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp"})
_INT32 = dtypes.int32.as_datatype_enum


def _check_graph_def(graph_def: Any) -> None:
    if getattr(getattr(graph_def, "DESCRIPTOR", None), "name", "") != "GraphDef":
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got {type(graph_def)}.")


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The part of a GraphDef that ``dest_nodes`` need, in its order.

    Raises:
        TypeError: if ``graph_def`` is no GraphDef or ``dest_nodes`` is one string.
        ValueError: if a node is not in the graph.
    """
    _check_graph_def(graph_def)
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be an iterable of strings.")
    by_name = {n.name: n for n in graph_def.node}
    needed: set[str] = set()
    stack = list(dest_nodes)
    for name in stack:
        if name not in by_name:
            raise ValueError(f"{name} is not in graph")
    while stack:
        name = stack.pop()
        if name in needed or name not in by_name:
            continue
        needed.add(name)
        stack.extend(node_of(s) for s in by_name[name].input)
    out = type(graph_def)()
    out.node.extend(n for n in graph_def.node if n.name in needed)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether an operation or NodeDef has to run on the CPU: strings and 32-bit integers do."""
    definition = node.node_def if isinstance(node, Operation) else node
    if pin_variables_on_cpu and definition.op in _VARIABLES:
        return True
    wanted = {"Const": "dtype", "DynamicStitch": "T", "ParallelDynamicStitch": "T"}
    if definition.op in wanted:
        dtype = DType(definition.attr[wanted[definition.op]].type).base_dtype
        return dtype.name in ("string", "int32")
    return False


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of the tensor ``input_name`` (``node`` or ``node:index``) of ``graph``.

    Raises:
        KeyError: if the graph has no such tensor.
    """
    name = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(name).get_shape()


def remove_training_nodes(input_graph: Any, protected_nodes: Collection[str] | None = None) -> Any:
    """A GraphDef without checks and identities, which matter in training only.

    Nodes in ``protected_nodes``, those with control inputs and those that others wait for stay.

    Raises:
        TypeError: if ``input_graph`` is no GraphDef.
    """
    _check_graph_def(input_graph)
    protected = set(protected_nodes or ())
    checks = {
        n.name: n.input[0]
        for n in input_graph.node
        if n.op == "CheckNumerics" and n.name not in protected and n.input
    }
    kept = [n for n in input_graph.node if n.name not in checks]
    awaited = {node_of(s) for n in kept for s in n.input if s.startswith("^")}
    identities = {
        n.name: n.input[0]
        for n in kept
        if n.op == "Identity"
        and n.name not in protected | awaited
        and not any(s.startswith("^") for s in n.input)
    }
    aliases = checks | identities
    out = type(input_graph)()
    for node in kept:
        if node.name in identities:
            continue
        new = out.node.add()
        new.CopyFrom(node)
        del new.input[:]
        new.input.extend(_follow(s, aliases) for s in node.input)
    out.library.CopyFrom(input_graph.library)
    out.versions.CopyFrom(input_graph.versions)
    return out


def _follow(source: str, aliases: dict[str, str]) -> str:
    if source.startswith("^"):
        name = source[1:]
        while name in aliases:
            name = node_of(aliases[name])
        return f"^{name}"
    while node_of(source) in aliases:
        source = aliases[node_of(source)]
    return source


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> Any:
    """The part of a graph that ``output_node_names`` need, its variables replaced by their values.

    Args:
        sess: the session that holds the values.
        input_graph_def: the graph of the session, or a part of it.
        output_node_names: names of nodes to keep, with what they need.
        variable_names_whitelist: names of the only variables to convert; None for all.
        variable_names_blacklist: names of variables not to convert.

    Raises:
        ValueError: if an output is not in the graph, or a variable is used otherwise than read.
        FailedPreconditionError: if a variable has no value.
    """
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    chosen = [
        n.name
        for n in graph_def.node
        if n.op in _VARIABLES
        and (variable_names_whitelist is None or n.name in variable_names_whitelist)
        and n.name not in (variable_names_blacklist or ())
    ]
    values = dict(zip(chosen, _values(sess, chosen), strict=True))
    out = type(graph_def)()
    for node in graph_def.node:
        sources = [node_of(s) for s in node.input if not s.startswith("^")]
        if node.name in values:
            _fill_const(out.node.add(), node, values[node.name])
        elif values.keys().isdisjoint(sources):
            out.node.add().CopyFrom(node)
        else:
            _add_use(out, node, values)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def _values(sess: Any, names: Sequence[str]) -> list[Any]:
    """The values of variables, by reads that the graph has or, failing that, by new ones."""
    if not names:
        return []
    from headrace.ops.core.build import raw

    graph = sess.graph
    reads = []
    for name in names:
        handle = graph.get_operation_by_name(name).outputs[0]
        found = next(
            (
                op.outputs[0]
                for op in handle.consumers()
                if op.type == "ReadVariableOp" and not op.control_inputs
            ),
            None,
        )
        if found is None:
            with graph.as_default(), graph.control_dependencies(None):
                found = raw.ReadVariableOp(handle, dtype=handle.op.attrs["dtype"])
        reads.append(found)
    values: list[Any] = sess.run(reads)
    return values


def _fill_const(new: Any, variable: Any, value: Any) -> None:
    from headrace.graph.tensor_proto import make_tensor_proto

    dtype = DType(variable.attr["dtype"].type).base_dtype
    new.name, new.op, new.device = variable.name, "Const", variable.device
    new.attr["dtype"].type = dtype.as_datatype_enum
    proto = make_tensor_proto(np.asarray(value), dtype)
    new.attr["value"].tensor.ParseFromString(proto.SerializeToString())


def _add_use(out: Any, node: Any, values: dict[str, Any]) -> None:
    """Add a node that used the handle of a variable which is a constant now."""
    if node.op == "ReadVariableOp":
        new = out.node.add(name=node.name, op="Identity", device=node.device, input=node.input)
        new.attr["T"].CopyFrom(node.attr["dtype"])
        if "_class" in node.attr:
            new.attr["_class"].CopyFrom(node.attr["_class"])
    elif node.op == "ResourceGather" and not node.attr["batch_dims"].i:
        _add_gather(out, node)
    elif not _takes_resource(node):
        out.node.add().CopyFrom(node)
    else:
        used = ", ".join(s for s in map(node_of, node.input) if s in values)
        raise ValueError(
            f"Cannot convert variable {used} to a constant: '{node.name}' ({node.op}) uses it "
            "otherwise than by reading it."
        )


def _add_gather(out: Any, node: Any) -> None:
    """GatherV2 along axis 0 in the place of a gather from a variable."""
    axis = out.node.add(name=f"{node.name}/axis", op="Const", device=node.device)
    axis.attr["dtype"].type = _INT32
    axis.attr["value"].tensor.dtype = _INT32
    axis.attr["value"].tensor.tensor_shape.SetInParent()
    axis.attr["value"].tensor.int_val.append(0)
    new = out.node.add(name=node.name, op="GatherV2", device=node.device)
    data = [s for s in node.input if not s.startswith("^")]
    new.input.extend([*data, axis.name])
    new.input.extend(s for s in node.input if s.startswith("^"))
    new.attr["Tparams"].CopyFrom(node.attr["dtype"])
    new.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    new.attr["Taxis"].type = _INT32
    new.attr["batch_dims"].i = 0


def _takes_resource(node: Any) -> bool:
    from headrace.ops.core.registry import find_op_def

    definition = find_op_def(node.op)
    return definition is None or any(
        a.dtype is not None and a.dtype.name == "resource" for a in definition.inputs
    )


def write_graph(
    graph_or_graph_def: Any, logdir: str | os.PathLike[str], name: str, as_text: bool = True
) -> str:
    """Write a graph to the file ``name`` in ``logdir``, which may be a URL.

    Of workers that run one script the chief writes.

    Args:
        graph_or_graph_def: a Graph, which is written with TensorFlow's operations alone as far as
            it can be, or a GraphDef message, which is written as it is.
        logdir: the folder; made if it is not there.
        name: the name of the file.
        as_text: whether to write the text form; else binary.

    Returns:
        The path of the file.

    Raises:
        TypeError: if ``graph_or_graph_def`` is neither.
        AlreadyExistsError: if ``logdir`` is a file.
        ResourceExhaustedError: if the disk is full; nothing is left of the file then.
    """
    message = graph_or_graph_def
    if isinstance(message, Graph):
        message = graph_def_for_files(message, add_shapes=False)
    else:
        _check_graph_def(message)
    path = os.path.join(as_path(logdir), as_path(name))
    return write_message(message, path, as_text) if share.writes() else path


def write_message(message: Any, path: str, as_text: bool) -> str:
    """Write a message to ``path`` (a file or a URL), whole or not at all; returns ``path``."""
    from google.protobuf import text_format

    path = as_path(path)
    data = text_format.MessageToString(message).encode() if as_text else message.SerializeToString()
    if not is_local(path):
        write_bytes(path, data)
        return path
    temporary = f"{path}.tmp{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise translate(path, error) from error
    return path
