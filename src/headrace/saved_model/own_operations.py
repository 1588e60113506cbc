"""What a SavedModel does with operations that only Headrace has: TensorFlow has to load it.

Programs train and export in one graph, so that operations which nothing served needs are left out,
with what depends on them, and the log names them. Where something served needs them, an error does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace import logging
from headrace.graph.graph_def import called_functions
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import VariableDef
from headrace.graph_files.export_graph import only_here, own_operations
from headrace.graph_files.import_slices import node_of
from headrace.ops.core.registry import find_op_def


def leave_out_own_operations(message: Any, init_op: Any, train_op: Any) -> None:
    """Take the operations that only Headrace has out of a MetaGraphDef.

    Raises:
        ValueError: if signatures, variables, assets, the saver, ``init_op`` or ``train_op`` need
            some; names them and who needs them.
    """
    _tell_libraries(message.graph_def)
    found = own_operations(message.graph_def)
    if not found:
        return
    bad = _own_functions(message.graph_def.library)
    dropped = {
        n.name
        for n in message.graph_def.node
        if only_here(n.op) or not bad.isdisjoint(called_functions(n))
    }
    reasons = dict(found)
    users: dict[str, list[str]] = {}
    for node in message.graph_def.node:
        for source in node.input:
            users.setdefault(node_of(source), []).append(node.name)
    waiting = list(dropped)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in dropped:
                dropped.add(user)
                waiting.append(user)
    for who, name in _needed(message, init_op, train_op):
        if name in dropped:
            raise ValueError(_refusal(who, name, found))
    logging.warning(
        "The SavedModel leaves out %d operations of training: TensorFlow has no %s ('%s').",
        len(dropped),
        ", ".join(sorted(set(reasons.values()))),
        found[0][0],
    )
    _drop(message, dropped, bad)


def _tell_libraries(graph_def: Any) -> None:
    """Log which modules a program of TensorFlow has to load before it can load the model."""
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    definitions = map(find_op_def, {node.op for node in nodes})
    needed = {d.traits.library for d in definitions if d is not None} - {""}
    if needed:
        logging.warning(
            "The SavedModel has operations of %s: only programs of TensorFlow 1.x that load these "
            "can load it.",
            ", ".join(sorted(needed)),
        )


def _refusal(who: str, name: str, found: list[tuple[str, str]]) -> str:
    shown = "; ".join(f"'{n}' ({t}: {only_here(t)})" for n, t in found[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return (
        f"The SavedModel cannot be written: {who} needs '{name}', which depends on operations that "
        f"TensorFlow does not have: {shown}{more}. Export what does not need them, or keep the "
        "model as a checkpoint (tf.train.Saver), which has no such limit."
    )


def _own_functions(library: Any) -> set[str]:
    """The functions that have an operation of our own, or call one that has."""
    callers: dict[str, list[str]] = {}
    found: set[str] = set()
    for function in library.function:
        name = function.signature.name
        for node in function.node_def:
            if only_here(node.op):
                found.add(name)
            for called in called_functions(node):
                callers.setdefault(called, []).append(name)
    waiting = list(found)
    while waiting:
        new = set(callers.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _needed(message: Any, init_op: Any, train_op: Any) -> Iterable[tuple[str, str]]:
    for key, signature in message.signature_def.items():
        for infos in (signature.inputs, signature.outputs):
            for info in infos.values():
                for name in _names(info):
                    yield f"the signature '{key}'", node_of(name)
    for what, op in (("the operation to run after loading", init_op), ("train_op", train_op)):
        if op is not None:
            yield what, node_of(op.name)
    saver = message.saver_def
    for name in (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name):
        if name:
            yield "the saver", node_of(name)
    for asset in message.asset_file_def:
        yield f"the asset '{asset.filename}'", node_of(asset.tensor_info.name)
    for data in message.collection_def[GraphKeys.GLOBAL_VARIABLES].bytes_list.value:
        variable = VariableDef.FromString(data)
        for name in (variable.initializer_name, variable.snapshot_name):
            yield f"the variable '{variable.variable_name}'", node_of(name)


def _names(info: Any) -> Iterable[str]:
    kind = info.WhichOneof("encoding")
    if kind == "name":
        yield info.name
    elif kind == "coo_sparse":
        sparse = info.coo_sparse
        yield from (
            sparse.values_tensor_name,
            sparse.indices_tensor_name,
            sparse.dense_shape_tensor_name,
        )
    elif kind == "composite_tensor":
        for component in info.composite_tensor.components:
            yield from _names(component)


def _drop(message: Any, dropped: set[str], functions: set[str]) -> None:
    graph_def = message.graph_def
    nodes = [n for n in graph_def.node if n.name not in dropped]
    library = [f for f in graph_def.library.function if f.signature.name not in functions]
    kept = type(graph_def)()
    kept.node.extend(nodes)
    kept.library.function.extend(library)
    kept.versions.CopyFrom(graph_def.versions)
    graph_def.CopyFrom(kept)
    message.meta_info_def.ClearField("any_info")  # the graph before this: no reader takes it now
    for key in list(message.collection_def):
        names = message.collection_def[key].node_list.value
        if any(node_of(n) in dropped for n in names):
            left = [n for n in names if node_of(n) not in dropped]
            del message.collection_def[key]
            if left:
                message.collection_def[key].node_list.value.extend(left)
    ops = message.meta_info_def.stripped_op_list.op
    known = [op for op in ops if not only_here(op.name)]
    del ops[:]
    ops.extend(known)


__all__ = ["leave_out_own_operations"]
