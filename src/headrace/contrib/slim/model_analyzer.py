"""How large a model is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.graph.graph import Graph


def _require_shape(var: Any) -> None:
    if not (hasattr(var, "shape") and hasattr(var, "dtype")):
        raise TypeError(f"Expected a tensor or a variable, got {var!r:.100}.")


def tensor_description(var: Any) -> str:
    """Type and sizes, such as ``(float32 3x4)``.

    The rank must be known.

    Raises:
        TypeError: if it has no shape and type.
        ValueError: if its rank is not known.
    """
    _require_shape(var)
    return f"({var.dtype.name} {'x'.join(str(size) for size in var.shape)})"


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of elements of all outputs of known shape; prints each op if asked to.

    Raises:
        TypeError: if ``graph`` is none.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a tf.Graph, got {graph!r:.100}.")
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
    total = 0
    for op in graph.get_operations():
        size = sum(output.shape.num_elements() or 0 for output in op.outputs)
        if print_info:
            shapes = ", ".join(tensor_description(x) for x in op.outputs if x.shape.rank)
            print(op.name, "\t->", shapes, f"[{size}]")
        total += size
    return total


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """Elements and bytes of all variables; prints each if asked to.

    Variables of a shape that is not fully known count as empty.

    Raises:
        TypeError: if one of them has no shape.
    """
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    total = total_bytes = 0
    for var in variables:
        _require_shape(var)
        size = var.shape.num_elements() or 0
        total += size
        total_bytes += size * var.dtype.size
        if print_info:
            text = f"[{size}, bytes: {size * var.dtype.size}]"
            print(var.name, tensor_description(var), text)
    if print_info:
        print(f"Total size of variables: {total}")
        print(f"Total bytes of variables: {total_bytes}")
    return total, total_bytes


__all__ = ["analyze_ops", "analyze_vars", "tensor_description"]
