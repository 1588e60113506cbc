"""``tf.contrib.util``: tensors as messages, and the operations that a graph uses."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph_def import called_functions, op_def_to_proto
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_proto import MakeNdarray as make_ndarray
from headrace.graph.tensor_proto import make_tensor_proto
from headrace.ops.core.registry import get_op_def
from headrace.ops.core.static import static_value

__all__ = [
    "constant_value",
    "make_ndarray",
    "make_tensor_proto",
    "ops_used_by_graph_def",
    "stripped_op_list_for_graph",
]


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as an array of its shape; None if it depends on what is fed.

    Of a TensorShape it is the list of the sizes, if all are known.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(tensor, TensorShape):
        return tensor.as_list() if tensor.is_fully_defined() else None
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Expected a tensor or a TensorShape, got {tensor!r:.100}.")
    return static_value(tensor)


def ops_used_by_graph_def(graph_def: Any) -> set[str]:
    """The types of the operations of a GraphDef, those in its functions too.

    Raises:
        TypeError: if it is no GraphDef.
    """
    if not hasattr(graph_def, "library"):
        raise TypeError(
            f"Expected a GraphDef, got {graph_def!r:.100}. Of a graph, graph.as_graph_def() gives "
            "one."
        )
    functions = {f.signature.name: f for f in graph_def.library.function}
    used: set[str] = set()
    seen: set[str] = set()
    pending = [*graph_def.node]
    while pending:
        node = pending.pop()
        if node.op in functions:
            called = {node.op}
        else:
            used.add(node.op)
            called = set()
        called.update(called_functions(node))
        for name in called - seen:
            seen.add(name)
            if name in functions:
                pending.extend(functions[name].node_def)
    return used


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """An OpList of the definitions of all operations that a GraphDef uses, by name.

    Raises:
        ValueError: if there is an operation that Headrace does not have.
    """
    from headrace.graph.proto import OpList  # loaded on first use

    return OpList(
        op=[op_def_to_proto(get_op_def(n)) for n in sorted(ops_used_by_graph_def(graph_def))]
    )
