"""Control flow of the old kind that a program builds by hand, raised before a step runs.

The operations are in `ops.control.tokens`; files with such control flow go the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from headrace.graph.graph import Graph
from headrace.graph.graph_def import (
    function_to_function_def,
    functions_of,
    graph_versions,
    operation_to_node_def,
)
from headrace.graph.proto import GraphDef
from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.import_graph import import_graph_def

__all__ = ["raised"]


def raised(
    fetches: Sequence[Tensor], feeds: Sequence[Tensor], targets: Sequence[Operation]
) -> tuple[list[Tensor], list[Tensor], list[Operation]] | None:
    """The same step in a graph whose loops and branches are functions; None if it has none by hand.

    Raises:
        ValueError: if they do not have the form that `tf.cond` and `tf.while_loop` once gave them,
            or something is fetched that has a value in a branch or loop only.
    """
    roots = [*[t.op for t in fetches], *targets]
    if not any(_has_by_hand(graph) for graph in {op.graph for op in roots}):
        return None
    ops = _needed(roots, feeds)
    if not any(op.op_def.traits.by_hand for op in ops):
        return None
    message = GraphDef(versions=graph_versions())
    message.node.extend(operation_to_node_def(op) for op in ops)
    message.library.function.extend(map(function_to_function_def, functions_of(ops)))
    graph = Graph()
    with graph.as_default():
        import_graph_def(message, name="")
    try:
        return (
            [graph.get_tensor_by_name(t.name) for t in fetches],
            [graph.get_tensor_by_name(t.name) for t in feeds],
            [graph.get_operation_by_name(op.name) for op in targets],
        )
    except KeyError as error:
        raise ValueError(
            f"What is fetched, fed or run must have a value outside of branches and loops: {error}"
        ) from None


#: For each graph how many of its operations have been looked at, and whether some are by hand.
_SEEN: WeakKeyDictionary[Graph, tuple[int, bool]] = WeakKeyDictionary()


def _has_by_hand(graph: Graph) -> bool:
    count, found = _SEEN.get(graph, (0, False))
    if count < len(graph._ops):
        found = found or any(op.op_def.traits.by_hand for op in graph._ops[count:])
        _SEEN[graph] = len(graph._ops), found
    return found


def _needed(roots: Iterable[Operation], feeds: Sequence[Tensor]) -> list[Operation]:
    """All that a step needs, in the order in which it was made; there may be cycles."""
    fed = set(feeds)
    found: set[Operation] = {t.op for t in feeds}
    stack = list(roots)
    while stack:
        op = stack.pop()
        if op in found and not any(t in fed for t in op.outputs):
            continue
        found.add(op)
        stack.extend(t.op for t in op.inputs if t not in fed and t.op not in found)
        stack.extend(c for c in op.control_inputs if c not in found)
    return sorted(found, key=lambda op: op._id)
