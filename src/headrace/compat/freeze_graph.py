"""``tensorflow.python.tools.freeze_graph``: graph and checkpoint become a graph of constants."""

from __future__ import annotations

from typing import Any

from headrace.files import system
from headrace.graph.graph import Graph
from headrace.graph.graph_def import parse_message
from headrace.graph.proto import GraphDef, MetaGraphDef
from headrace.graph_files import graph_util
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.core.build import constant, raw
from headrace.session.session import Session
from headrace.train.checkpoint_utils import load_checkpoint
from headrace.train.meta_graph import import_meta_graph

__all__ = ["freeze_graph", "freeze_graph_with_def_protos"]


def _parsed(kind: Any, path: str) -> Any:
    """The message of a file, binary or text. Raises DataLossError if it is damaged."""
    return parse_message(kind, system.read_regular(path), f"The file '{path}'")


def _names(text: str | None) -> list[str] | None:
    found = [n.strip() for n in (text or "").replace(" ", ",").split(",") if n.strip()]
    return found or None


def freeze_graph(
    input_graph: Any,
    input_saver: Any,
    input_binary: bool,
    input_checkpoint: Any,
    output_node_names: str,
    restore_op_name: str,
    filename_tensor_name: str,
    output_graph: str,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: Any = None,
    input_saved_model_dir: Any = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = 2,
) -> Any:
    """Write a graph whose variables are constants, with the values of a checkpoint.

    Args:
        input_graph: the file of the GraphDef; or give ``input_meta_graph`` or
            ``input_saved_model_dir``.
        input_saver: accepted; checkpoints are read by the names of variables.
        input_binary: accepted; whether a file is binary or text is seen by what it holds.
        input_checkpoint: the checkpoint's path.
        output_node_names: the nodes to keep, with what they need; comma-separated.
        restore_op_name, filename_tensor_name: used where the graph has them.
        output_graph: where to write; nowhere if empty.
        clear_devices: drop the devices of nodes.
        initializer_nodes: run before the values are taken; comma-separated.
        variable_names_whitelist, variable_names_blacklist: which variables become constants.

    Returns:
        The new GraphDef.

    Raises:
        NotFoundError: if a file is absent.
        ValueError: if there are no output nodes.
    """
    graph_def, meta_graph_def = None, None
    if input_meta_graph:
        meta_graph_def = _parsed(MetaGraphDef, input_meta_graph)
    elif input_graph:
        graph_def = _parsed(GraphDef, input_graph)
    return freeze_graph_with_def_protos(
        graph_def,
        None,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta_graph_def,
        input_saved_model_dir,
        saved_model_tags.replace(" ", "").split(","),
        checkpoint_version,
    )


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: Any,
    output_node_names: str,
    restore_op_name: str,
    filename_tensor_name: str,
    output_graph: str,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: Any = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = 2,
) -> Any:
    """As `freeze_graph`, with messages in the place of files."""
    outputs = _names(output_node_names)
    if outputs is None:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    graph = Graph()
    with graph.as_default(), Session(graph=graph) as session:
        if input_saved_model_dir:
            from headrace import saved_model

            saved_model.loader.load(session, saved_model_tags, input_saved_model_dir)
        elif input_meta_graph_def is not None:
            saver = import_meta_graph(input_meta_graph_def, clear_devices=True)
            saver.restore(session, input_checkpoint)
        else:
            plain = GraphDef()
            plain.CopyFrom(input_graph_def)
            for node in plain.node:
                node.device = ""
            import_graph_def(plain, name="")
            _restore(session, graph, input_checkpoint, restore_op_name, filename_tensor_name)
        for name in _names(initializer_nodes) or ():
            session.run(graph.get_operation_by_name(name))
        source = graph.as_graph_def()
        if not clear_devices and input_graph_def is not None:
            devices = {node.name: node.device for node in input_graph_def.node}
            for node in source.node:
                node.device = devices.get(node.name, "")
        frozen = graph_util.convert_variables_to_constants(
            session,
            source,
            outputs,
            _names(variable_names_whitelist),
            _names(variable_names_blacklist),
        )
    if output_graph:
        system.write_bytes(output_graph, frozen.SerializeToString())
    return frozen


def _restore(
    session: Any, graph: Graph, checkpoint: Any, restore_op: str, filename_tensor: str
) -> None:
    """Give the graph's variables the values of a checkpoint."""
    operations = {op.name: op for op in graph.get_operations()}
    if restore_op in operations and filename_tensor.partition(":")[0] in operations:
        session.run(restore_op, {filename_tensor: str(checkpoint)})
        return
    reader = load_checkpoint(checkpoint)
    assigns = [
        raw.AssignVariableOp(op.outputs[0], constant(reader.get_tensor(name)))
        for name in reader.get_variable_to_shape_map()
        if (op := operations.get(name)) is not None and op.op_def.makes_handle == "variable"
    ]
    session.run(assigns)
