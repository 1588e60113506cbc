"""Graph files with control flow of the old kind, rewritten with functions before import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.graph.proto import FunctionDef, NodeDef
from headrace.graph_files.import_arrays import arrays_to_lists
from headrace.graph_files.import_branches import raise_branches
from headrace.graph_files.import_contexts import ask_predicates, drop_known_switches
from headrace.graph_files.import_frames import raise_loops
from headrace.graph_files.import_rewrite import Rewriting
from headrace.graph_files.import_saved import split_merges
from headrace.graph_files.import_slices import TOKENS, Raised, UniqueNames
from headrace.graph_files.import_stacks import OLDER

#: Forms of the token ops on references, which variables are not here, and of stacks.
_PLAIN = {f"Ref{name}": name for name in TOKENS} | OLDER
_UNKNOWN = {"_SwitchN"}


def has_tokens(nodes: Iterable[NodeDef]) -> bool:
    """Whether there is control flow of the old kind among ``nodes``."""
    return any(n.op in TOKENS or n.op in _PLAIN or n.op in _UNKNOWN for n in nodes)


def raise_control_flow(
    nodes: Sequence[NodeDef], functions: Iterable[str] = ()
) -> tuple[list[NodeDef], list[FunctionDef]]:
    """``nodes`` with While and If in the place of Switch, Merge, Enter, Exit and NextIteration.

    Outputs of exits and merges keep their names; nodes inside loops and branches have none any
    more outside.

    Args:
        nodes: the nodes of a graph file, without references.
        functions: names of functions that the file has already.

    Returns:
        The nodes, and the functions they call beside those of the file.

    Raises:
        ValueError: if loops and conditionals do not have the form that `tf.while_loop` and
            `tf.cond` gave them.
    """
    if not has_tokens(nodes):
        return list(nodes), []
    by_name = {}
    for node in nodes:
        copied = by_name[node.name] = NodeDef()
        copied.CopyFrom(node)
        copied.op = _PLAIN.get(node.op, node.op)
        if copied.op == "ControlTrigger":
            copied.op = "NoOp"
        if copied.op in _UNKNOWN:
            raise ValueError(f"Node '{node.name}': control flow by {node.op} cannot be raised.")
        copied.attr.pop("_class", None)
    graph = Raised(by_name, [], UniqueNames(by_name), UniqueNames(functions))
    try:
        ask_predicates(graph.nodes)
        drop_known_switches(graph.nodes)
        split_merges(Rewriting(graph.nodes, graph.node_name))
        arrays_to_lists(graph.nodes, graph.node_name)
        raise_loops(graph)
        graph.nodes = raise_branches(graph, graph.nodes)
    except ValueError as error:
        raise ValueError(
            f"The graph has control flow of the old kind that cannot be raised to functions: "
            f"{error}."
        ) from None
    except (KeyError, IndexError) as error:  # a file that lacks nodes or inputs
        raise ValueError(
            f"The graph has control flow of the old kind and lacks a node or an input: {error}."
        ) from error
    return list(graph.nodes.values()), graph.functions
