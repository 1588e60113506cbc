"""Meta graphs: a graph with its collections and saver, as a message or a file."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable
from typing import Any

from headrace import logging
from headrace.errors import DataLossError
from headrace.files.paths import as_path
from headrace.files.system import read_regular
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import FunctionDef, NodeDef, OpDef
from headrace.graph.tensor import Operation, Tensor
from headrace.graph.versions import GIT_VERSION, VERSION
from headrace.graph_files.export_graph import graph_def_for_files, has_own_operations
from headrace.graph_files.graph_util import write_message
from headrace.graph_files.import_graph import import_graph_def, unchanged_on_failure
from headrace.ops.core.registry import find_op_def
from headrace.ops.state.save_slices import prepend_name_scope, strip_name_scope
from headrace.ops.state.variables import Variable
from headrace.train.queue_runner import QueueRunner
from headrace.train.saver import Saver

__all__ = ["export_meta_graph", "import_meta_graph"]

_UNBOUND = "$unbound_inputs_"
#: Collections that files hold as VariableDefs; under other keys they hold the names of variables.
_VARIABLE_KEYS = frozenset(
    (*GraphKeys._VARIABLE_COLLECTIONS, GraphKeys.GLOBAL_STEP, GraphKeys.EVAL_STEP)
)
#: What savers of old put into the graph. Ours keeps no ops there, so these are left out on import
#: (with what depends on them) unless they are registered.
_SAVER_OPS = frozenset(("Save", "SaveSlices", "Restore", "RestoreSlice"))


# -- export -------------------------------------------------------------------------------------


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Iterable[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """A MetaGraphDef of ``graph``, written to ``filename`` when that is given.

    Args:
        filename: where to write, a path or URL.
        meta_info_def: what to say of the graph; the op list is filled in when it has none.
        graph_def: the graph in message form; by default that of ``graph``.
        saver_def: the saver to describe.
        collection_list: names of the collections to write; by default all.
        as_text: whether to write the text form.
        graph: the graph; the default graph when not given.
        export_scope: write only what is inside this name scope, without the prefix.
        clear_devices: leave devices out.
        clear_extraneous_savers: leave other savers than ``saver_def`` out of the collections.
        strip_default_attrs: leave out attributes that have their default values.
        save_debug_info: not supported; has to be False.

    Raises:
        ValueError: for unknown arguments, and if debug information is asked for.
    """
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(sorted(kwargs))}")
    if save_debug_info:
        raise ValueError("save_debug_info is not supported: stack traces are not written to files.")
    message, _ = export_scoped_meta_graph(
        filename,
        graph_def=graph_def,
        graph=graph,
        export_scope=export_scope,
        as_text=as_text,
        clear_devices=clear_devices,
        saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        meta_info_def=meta_info_def,
        collection_list=collection_list,
    )
    return message


def export_scoped_meta_graph(
    filename: str | None = None,
    graph_def: Any = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    meta_info_def: Any = None,
    collection_list: Iterable[str] | None = None,
) -> tuple[Any, dict[str, Variable]]:
    """A MetaGraphDef of one name scope, and the variables in it by their names there.

    Inputs from outside of the scope are named ``$unbound_inputs_<name>`` and listed in the
    collection ``unbound_inputs_col_name``: importing asks for them in its ``input_map``.
    Arguments are those of `export_meta_graph`.
    """
    from headrace.graph.proto import MetaGraphDef

    graph = get_default_graph() if graph is None else graph
    message = MetaGraphDef()
    if meta_info_def is not None:
        message.meta_info_def.CopyFrom(meta_info_def)
    full = graph_def_for_files(graph) if graph_def is None else graph_def
    unbound = _fill_graph(message.graph_def, full, export_scope, clear_devices)
    if not message.meta_info_def.HasField("stripped_op_list"):
        _fill_op_list(message)
    if not message.meta_info_def.tensorflow_version:
        message.meta_info_def.tensorflow_version = VERSION
        message.meta_info_def.tensorflow_git_version = GIT_VERSION
    if strip_default_attrs:
        _strip_defaults(message)
    if graph_def is None and has_own_operations(graph):
        own = type(full)()
        _fill_graph(own, graph.as_graph_def(add_shapes=True), export_scope, clear_devices)
        _keep_own_graph(message, own)
    if saver_def is not None:
        message.saver_def.CopyFrom(saver_def)
    if unbound:
        message.collection_def[unbound_inputs_col_name].bytes_list.value.extend(
            name.encode() for name in sorted(unbound)
        )
    keys = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for key in keys:
        if key == GraphKeys.SAVERS and clear_extraneous_savers:
            continue
        add_collection_def(message, key, graph, export_scope)
    variables = {
        strip_name_scope(v.name, export_scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if isinstance(v, Variable) and _inside(v.name, export_scope)
    }
    if filename:
        write_message(message, filename, as_text)
    return message, variables


#: How a meta graph says that it holds a graph as it was before it was written for TensorFlow; the
#: digest of the graph beside it follows.
_OWN_GRAPH = "headrace.GraphDef/"


def _keep_own_graph(message: Any, own: Any) -> None:
    """Add the graph as Headrace has it, for when the one in the file is still the same then."""
    message.meta_info_def.any_info.type_url = _OWN_GRAPH + _digest(message.graph_def)
    message.meta_info_def.any_info.value = _without(own, message.graph_def).SerializeToString()


def _without(own: Any, written: Any) -> Any:
    """``own``, with only the names of nodes and functions that are the same in ``written``."""
    short = type(own)(versions=own.versions)
    nodes = {n.name: n for n in written.node}
    for node in own.node:
        is_same = nodes.get(node.name) == node
        short.node.append(NodeDef(name=node.name) if is_same else node)
    functions = {f.signature.name: f for f in written.library.function}
    for function in own.library.function:
        name = function.signature.name
        if functions.get(name) == function:
            short.library.function.add().signature.name = name
        else:
            short.library.function.append(function)
    short.library.gradient.extend(own.library.gradient)
    return short


def _filled(short: Any, written: Any) -> Any:
    """The graph of which `_without` has left out what is the same in ``written``."""
    own = type(short)(versions=short.versions)
    nodes = {n.name: n for n in written.node}
    own.node.extend(n if n.op else nodes[n.name] for n in short.node)
    functions = {f.signature.name: f for f in written.library.function}
    for function in short.library.function:
        name = function.signature.name
        is_name = function == FunctionDef(signature=OpDef(name=name))
        own.library.function.append(functions[name] if is_name else function)
    own.library.gradient.extend(short.library.gradient)
    return own


def graph_to_read(message: Any) -> Any:
    """The graph of a meta graph: as Headrace wrote it, if nobody changed it since.

    Raises:
        DataLossError: if the graph inside is damaged.
    """
    from headrace.graph.graph_def import parse_graph_def

    info = message.meta_info_def.any_info
    if info.type_url != _OWN_GRAPH + _digest(message.graph_def):
        return message.graph_def
    short = parse_graph_def(info.value, "The graph as Headrace has it")
    try:
        return _filled(short, message.graph_def)
    except KeyError as error:
        text = f"The graph as Headrace has it names {error}, which the graph beside it lacks."
        raise DataLossError(None, None, text) from None


def _digest(graph_def: Any) -> str:
    return hashlib.sha256(graph_def.SerializeToString(deterministic=True)).hexdigest()


def _inside(name: str, scope: str | None) -> bool:
    return not scope or name.startswith(scope.rstrip("/") + "/")


def _fill_graph(out: Any, full: Any, scope: str | None, clear_devices: bool) -> set[str]:
    """Copy the nodes inside ``scope``; returns the names of their inputs from outside."""
    unbound: set[str] = set()
    if not scope and not clear_devices:
        out.CopyFrom(full)
        return unbound
    out.versions.CopyFrom(full.versions)
    out.library.CopyFrom(full.library)
    for node in full.node:
        if not _inside(node.name, scope):
            continue
        new = out.node.add()
        new.CopyFrom(node)
        new.name = strip_name_scope(node.name, scope)
        if clear_devices:
            new.device = ""
        del new.input[:]
        for source in node.input:
            name = source.removeprefix("^")
            if _inside(name, scope):
                new.input.append(strip_name_scope(source, scope))
            elif not source.startswith("^"):
                unbound.add(name)
                new.input.append(_UNBOUND + name)
        if "_class" in node.attr:
            groups = [s.decode().removeprefix("loc:@") for s in node.attr["_class"].list.s]
            kept = [f"loc:@{strip_name_scope(g, scope)}" for g in groups if _inside(g, scope)]
            del new.attr["_class"]
            if kept:
                new.attr["_class"].list.s.extend(k.encode() for k in kept)
    return unbound


def _fill_op_list(message: Any) -> None:
    from headrace.graph.graph_def import op_def_to_proto

    bodies = [n for f in message.graph_def.library.function for n in f.node_def]
    for name in sorted({n.op for n in (*message.graph_def.node, *bodies)}):
        definition = find_op_def(name)
        if definition is not None:
            message.meta_info_def.stripped_op_list.op.append(op_def_to_proto(definition))


def _strip_defaults(message: Any) -> None:
    defaults = {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in message.meta_info_def.stripped_op_list.op
    }
    for node in message.graph_def.node:
        for name, value in defaults.get(node.op, {}).items():
            if name in node.attr and node.attr[name] == value:
                del node.attr[name]
    message.meta_info_def.stripped_default_attrs = True


def add_collection_def(
    message: Any, key: Any, graph: Graph | None = None, export_scope: str | None = None
) -> None:
    """Write the collection ``key`` of ``graph`` into a MetaGraphDef.

    A collection of things that no file can hold is left out, and the log says so, unless they are
    of a running program only (``stays_in_process``).
    """
    if not isinstance(key, (str, bytes)):
        logging.warning("Collection %r is not written: only text names collections in files.", key)
        return
    graph = get_default_graph() if graph is None else graph
    items = graph.get_collection(key)
    if any(getattr(item, "stays_in_process", False) for item in items):
        return
    name = key.decode() if isinstance(key, bytes) else key
    from headrace.graph.proto import CollectionDef

    collection = CollectionDef()
    try:
        _fill_collection(collection, name, items, export_scope)
    except (TypeError, ValueError, AttributeError) as error:
        logging.warning("Collection %r is not written: %s", name, error)
        return
    if collection.WhichOneof("kind") is not None:
        message.collection_def[name].CopyFrom(collection)


def _fill_collection(collection: Any, key: str, items: list[Any], scope: str | None) -> None:
    if not items:
        return
    first = items[0]
    if isinstance(first, (Tensor, Operation)) or (
        isinstance(first, Variable) and key not in _VARIABLE_KEYS
    ):
        _fill_names(collection, items, scope)
    elif hasattr(first, "to_proto"):
        protos = [item.to_proto(export_scope=scope) for item in items]
        collection.bytes_list.value.extend(p.SerializeToString() for p in protos if p is not None)
    elif isinstance(first, (str, bytes)):
        collection.bytes_list.value.extend(
            i.encode() if isinstance(i, str) else bytes(i) for i in items
        )
    elif isinstance(first, bool) or first is None:
        raise TypeError(f"no kind of collection holds {first!r}")
    elif isinstance(first, int):
        collection.int64_list.value.extend(items)
    elif isinstance(first, float):
        collection.float_list.value.extend(items)
    elif hasattr(first, "SerializeToString"):
        collection.bytes_list.value.extend(i.SerializeToString() for i in items)
    else:
        raise TypeError(f"no kind of collection holds {type(first).__name__}")


def _fill_names(collection: Any, items: list[Any], scope: str | None) -> None:
    for item in items:
        if not isinstance(item, (Tensor, Operation, Variable)):
            raise TypeError(f"a collection of names does not hold {type(item).__name__}")
    names = [i.name for i in items if _inside(i.name, scope)]
    collection.node_list.value.extend(strip_name_scope(n, scope) for n in names)


# -- import -------------------------------------------------------------------------------------


def read_meta_graph_file(filename: str) -> Any:
    """The MetaGraphDef in a file or at a URL, binary or text.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if it is cut off, corrupt or no MetaGraphDef.
    """
    from headrace.graph.graph_def import parse_message
    from headrace.graph.proto import MetaGraphDef

    return parse_message(MetaGraphDef, read_regular(filename), filename)


def _as_meta_graph(meta_graph_or_file: Any) -> Any:
    from headrace.graph.proto import MetaGraphDef

    if isinstance(meta_graph_or_file, MetaGraphDef):
        return meta_graph_or_file
    if getattr(getattr(meta_graph_or_file, "DESCRIPTOR", None), "name", "") == "MetaGraphDef":
        return MetaGraphDef.FromString(meta_graph_or_file.SerializeToString())
    return read_meta_graph_file(as_path(meta_graph_or_file))


def _naming(meta_graph_or_file: Any) -> Any:
    """Errors inside name the file, if it is one."""
    from headrace.graph.graph_def import from_file

    if isinstance(meta_graph_or_file, (str, bytes, os.PathLike)):
        return from_file(as_path(meta_graph_or_file))
    return contextlib.nullcontext()


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Any:
    """Add the graph and the collections of a meta graph to the default graph.

    Args:
        meta_graph_or_file: a MetaGraphDef message, or the path or URL of a file with one.
        clear_devices: leave devices out.
        import_scope: the prefix of all names.
        **kwargs: further arguments of `import_scoped_meta_graph`, such as ``input_map``.

    Returns:
        The Saver that the file describes, one of all variables if it describes none, or None if
        there are no variables.

    Raises:
        DataLossError: if the file is damaged.
        ValueError: as `import_scoped_meta_graph`; for a file it is an InvalidArgumentError too.
    """
    message = _as_meta_graph(meta_graph_or_file)
    with _naming(meta_graph_or_file):
        import_scoped_meta_graph(
            message, clear_devices=clear_devices, import_scope=import_scope, **kwargs
        )
    if _has_saver(message, import_scope):
        return Saver(saver_def=message.saver_def, name=import_scope)
    if get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
        return Saver()
    return None


def _has_saver(message: Any, scope: str | None) -> bool:
    """Whether the saver that the file describes has its ops in the graph."""
    if not message.HasField("saver_def"):
        return False
    saver = message.saver_def
    graph = get_default_graph()
    names = (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name)
    return all(prepend_name_scope(n, scope).partition(":")[0] in graph._by_name for n in names)


def import_scoped_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, **kwargs: Any
) -> dict[str, Variable]:
    """As `import_scoped_meta_graph_with_return_elements`; returns the variables only."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, **kwargs
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Iterable[str] | None = None,
) -> tuple[dict[str, Variable], Any]:
    """Add a meta graph to ``graph``.

    Args:
        meta_graph_or_file: a MetaGraphDef message, or the path or URL of a file with one.
        clear_devices: leave devices out.
        graph: the graph; the default graph when not given.
        import_scope: the prefix of all names.
        input_map: tensors for unbound inputs, by their names when the file was written.
        unbound_inputs_col_name: the collection that lists unbound inputs.
        restore_collections_predicate: whether to restore the collection of a name.
        return_elements: as for `import_graph_def`.

    Returns:
        The variables by their names inside ``import_scope``, and the elements asked for.

    Raises:
        ValueError: if unbound inputs are missing in ``input_map``, or as `import_graph_def`; the
            graph is as before then.
    """
    message = _as_meta_graph(meta_graph_or_file)
    graph = get_default_graph() if graph is None else graph
    mapped = _bound_inputs(message, input_map, unbound_inputs_col_name)
    definition = _without_saver_ops(graph_to_read(message))
    if clear_devices:
        for node in definition.node:
            node.device = ""
    saved = {k: list(v) for k, v in graph._collections.items()}
    with graph.as_default(), unchanged_on_failure(graph):
        elements = import_graph_def(
            definition,
            input_map=mapped,
            return_elements=return_elements,
            name=import_scope or "",
            producer_op_list=message.meta_info_def.stripped_op_list,
        )
        try:
            variables = _restore_collections(
                graph, message, import_scope, restore_collections_predicate
            )
        except BaseException:
            graph._collections.clear()
            graph._collections.update(saved)
            raise
    return variables, elements


def _bound_inputs(
    message: Any, input_map: dict[str, Any] | None, unbound_key: str
) -> dict[str, Any] | None:
    if unbound_key not in message.collection_def:
        return input_map
    names = [v.decode() for v in message.collection_def[unbound_key].bytes_list.value]
    if not names:
        return input_map
    if not input_map or sorted(names) != sorted(input_map):
        raise ValueError(
            f"Graph contains unbound inputs: {sorted(names)}. Must provide these inputs through "
            "input_map."
        )
    return {_UNBOUND + name: value for name, value in input_map.items()}


def _without_saver_ops(graph_def: Any) -> Any:
    """The graph without saver ops that are not registered here, and without what needs them."""
    dropped = {n.name for n in graph_def.node if n.op in _SAVER_OPS and find_op_def(n.op) is None}
    out = type(graph_def)()
    out.CopyFrom(graph_def)
    if not dropped:
        return out
    grown = True
    while grown:
        grown = False
        for node in graph_def.node:
            sources = {s.removeprefix("^").partition(":")[0] for s in node.input}
            if node.name not in dropped and not dropped.isdisjoint(sources):
                dropped.add(node.name)
                grown = True
    del out.node[:]
    out.node.extend(n for n in graph_def.node if n.name not in dropped)
    return out


def _restore_collections(
    graph: Graph, message: Any, scope: str | None, wanted: Callable[[str], bool]
) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    stored = {n.name for n in message.graph_def.node}
    for key in sorted(message.collection_def):
        if not wanted(key):
            continue
        collection = message.collection_def[key]
        kind = collection.WhichOneof("kind")
        if kind == "node_list":
            for name in collection.node_list.value:
                full = prepend_name_scope(name, scope)
                if (
                    full.partition(":")[0] not in graph._by_name
                    and name.partition(":")[0] in stored
                ):
                    logging.warning("'%s' is inside a loop or branch now: not in '%s'", name, key)
                    continue
                graph.add_to_collection(key, graph.as_graph_element(full))
        elif kind == "bytes_list" and key in _VARIABLE_KEYS:
            for data in collection.bytes_list.value:
                graph.add_to_collection(key, _variable(data, key, scope, variables))
        elif kind == "bytes_list":
            for data in collection.bytes_list.value:
                graph.add_to_collection(key, _restored_item(key, data, scope))
        elif kind in ("int64_list", "float_list"):
            graph._collections.setdefault(key, []).extend(getattr(collection, kind).value)
    return variables


def _restored_item(key: str, data: bytes, scope: str | None) -> Any:
    """What a collection of bytes holds: savers, queue runners, or the bytes themselves."""
    if key not in (GraphKeys.SAVERS, GraphKeys.QUEUE_RUNNERS):
        return data
    from headrace.graph.graph_def import parse_message
    from headrace.graph.proto import QueueRunnerDef, SaverDef

    where = f"An item of the collection '{key}'"
    if key == GraphKeys.SAVERS:
        return parse_message(SaverDef, data, where)
    return QueueRunner.from_proto(parse_message(QueueRunnerDef, data, where), import_scope=scope)


def _variable(data: bytes, key: str, scope: str | None, made: dict[str, Variable]) -> Variable:
    """The variable of a VariableDef; the same object in every collection that has it."""
    from headrace.graph.graph_def import parse_message
    from headrace.graph.proto import VariableDef

    definition = parse_message(VariableDef, data, f"An item of the collection '{key}'")
    name = definition.variable_name
    if name not in made:
        if key == GraphKeys.TRAINABLE_VARIABLES:
            definition.trainable = True
        try:
            made[name] = Variable.from_proto(definition, import_scope=scope)
        except KeyError as error:
            raise ValueError(
                f"Variable '{name}' of the collection '{key}' is not in the graph: {error}"
            ) from None
    elif key == GraphKeys.TRAINABLE_VARIABLES:
        made[name]._trainable = True
    return made[name]
