"""The ops of control flow of the old kind, for programs that build it by hand.

A graph may have them; before a step runs, loops and branches are raised to functions as those of
files are (`ops.import_control`). Source: the 2015 white paper, section 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from headrace.errors import InvalidArgumentError
from headrace.graph.graph import Graph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.registry import NotDifferentiable, define_op

__all__: list[str] = []

#: A Switch that nothing merges runs as it is (see `ops.control_flow`).
_BY_HAND = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration"})
_NO_GRADIENT = NotDifferentiable("control flow by hand has none; use tf.cond and tf.while_loop")


def _same(count: int) -> Any:
    return lambda op: [op.inputs[0].dims] * count


def _merge_shape(op: Operation) -> list[Dims]:
    first, *others = (t.dims for t in op.inputs)
    if all(o == first for o in others):
        return [first, ()]
    known = [d for d in (first, *others) if d is not None]
    if len(known) < len(op.inputs) or len({len(d) for d in known}) > 1:
        return [None, ()]
    columns = zip(*known, strict=True)
    return [tuple([c[0] if len(set(c)) == 1 else None for c in columns]), ()]


def _unraised(context: Any, *_: Any) -> Any:
    raise InvalidArgumentError(
        None,
        None,
        "Control flow by hand runs in the graph of a local session only, not in functions or on "
        "clusters. Use tf.cond or tf.while_loop.",
    )


def _define(signature: str, attrs: str, shape: Any) -> None:
    define_op(signature, attrs=attrs, shape=shape, host=_unraised, gradient=_NO_GRADIENT)


_define(
    "Merge(inputs: N * T) -> (output: T, value_index: int32)", "T: type, N: int >= 1", _merge_shape
)
_define(
    "Enter(data: T) -> output: T",
    "T: type, frame_name: string, is_constant: bool = False, parallel_iterations: int = 10",
    _same(1),
)
_define("Exit(data: T) -> output: T", "T: type", _same(1))
_define("NextIteration(data: T) -> output: T", "T: type", _same(1))
_define("LoopCond(input: bool) -> output: bool", "", _same(1))


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
    if not any(op.type in _BY_HAND for op in ops):
        return None
    from headrace.graph.graph_def import (
        function_to_function_def,
        functions_of,
        graph_versions,
        operation_to_node_def,
    )
    from headrace.graph.proto import GraphDef
    from headrace.ops.import_graph import import_graph_def

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
        found = found or any(op.type in _BY_HAND for op in graph._ops[count:])
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
