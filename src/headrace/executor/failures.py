"""What to say when a kernel fails: the errors of users' ops out of those of NumPy, JAX and XLA."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    OpSummary,
    ResourceExhaustedError,
)
from headrace.graph.shape_errors import internal_text, is_foreign, is_own, raised_by_us
from headrace.graph.tensor import Operation, Tensor
from headrace.graph.value_graph import ValueGraph
from headrace.ops.control.tensor_list_kernels import TensorList
from headrace.ops.core.build import CONST, PLACEHOLDER
from headrace.passes.ir import Edge, Node

#: What no shape of an input explains.
_MISTAKES = (KeyError, AttributeError, AssertionError, NameError)
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "array is too big")


def physical_memory(unknown: int = 1 << 62) -> int:
    """Bytes of memory of this machine; ``unknown`` where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not on this system
        return unknown


MEMORY = physical_memory()


def is_out_of_memory(error: Exception) -> bool:
    """Whether NumPy or XLA could not get the memory it needed."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY)


def kernel_error(node: Node | None, error: Exception, args: Sequence[Any] = ()) -> OpError:
    """What a kernel raised (a shape or type it cannot take), as an error of the user's op.

    The shape rule of the op explains best: it gets the shapes that came and says what the same
    mistake gets when the graph is built. Otherwise the reason is the kernel's own, with the inputs.
    """
    op = node.op if node is not None else None
    if is_out_of_memory(error):
        return out_of_memory(op, args)
    if node is None:
        return InvalidArgumentError(None, None, _reason(error))
    reason = shape_problem(node, args)
    if reason is None and isinstance(error, _MISTAKES) and is_own(error):
        text = internal_text(f"The kernel of {node.type}", error)
        return InternalError(None, op, text + came(node, args))
    if reason is None:
        # What NumPy or JAX says differs between them, and stays with the error as its cause.
        host = node.op_def.host is not None and not is_foreign(error)
        is_ours = host or raised_by_us(error)
        reason = _reason(error) if is_ours else f"{node.type} cannot take inputs of these shapes"
    return InvalidArgumentError(None, op, reason.rstrip(".") + came(node, args))


def out_of_memory(op: Any, args: Sequence[Any] = ()) -> ResourceExhaustedError:
    """The error for a value that no memory can hold."""
    given = ", ".join(_describe(a) for a in args)
    return ResourceExhaustedError(
        None,
        op,
        f"Out of memory: a tensor does not fit into what is left of the {MEMORY / 2**30:.3g} GiB "
        f"of this machine{f' (inputs of the op: {given})' if given else ''}. Use a smaller batch "
        "or shape.",
    )


def static_inputs(node: Node) -> frozenset[int]:
    """Positions of the inputs whose values make the program: shapes, axes, sizes."""
    return frozenset(node.op_def.static_inputs(node.attrs))


def count_bytes(op: Any, outputs: Sequence[Any], args: Sequence[Any]) -> int:
    """The size of traced values.

    Raises:
        ResourceExhaustedError: naming the op, if one is larger than all memory: XLA would end the
            process.
        InvalidArgumentError: if one has no elements, but sizes beside the 0 that XLA cannot count:
            that would end the process, too.
    """
    total = 0
    for value in outputs:
        dtype = getattr(value, "dtype", None)
        if dtype is not None:
            total += value.size * dtype.itemsize
            if 0 in value.shape:
                _check_extent(op, value.shape, dtype.itemsize)
    if total > MEMORY:
        raise out_of_memory(op, args)
    return total


def _check_extent(op: Any, shape: Sequence[Any], itemsize: int) -> None:
    extent = math.prod(size for size in shape if isinstance(size, int) and size > 0)
    if extent * itemsize >= 1 << 63:
        raise InvalidArgumentError(
            None,
            op,
            f"A tensor of shape {list(shape)} has no elements, but its other sizes are more than "
            "64 bits can count. Use smaller sizes beside the 0.",
        )


def came(node: Node, args: Sequence[Any]) -> str:
    """The inputs of a node as they came, for the end of a message."""
    if len(args) != len(node.inputs):
        return ""
    shown = static_inputs(node)
    inputs = [
        f"{_edge_name(edge)} {_describe(a, i in shown)}"
        for i, (edge, a) in enumerate(zip(node.inputs, args, strict=True))
    ]
    return f" (inputs: {', '.join(inputs)})" + _origins(node) if inputs else ""


def _origins(node: Node) -> str:
    """The stages of datasets whose elements are inputs of a node, and where they were made."""
    texts: dict[str, None] = {}
    for source, _ in node.inputs:
        origin = source.op_def.traits.origin
        found = origin(source.op) if origin is not None and source.op is not None else None
        if found is not None:
            name, kind, _, site = OpSummary.of(found)
            text = f"\n  {source.name} gives elements of dataset stage '{name}' (type {kind})"
            if site is not None:
                text += f', made by: File "{site.filename}", line {site.lineno}, in {site.function}'
            texts[text] = None
    return "".join(texts)


def _edge_name(edge: Edge) -> str:
    """A tensor's name; nodes of fed tensors carry it already."""
    node, index = edge
    return node.name if ":" in node.name else f"{node.name}:{index}"


def _describe(value: Any, with_value: bool = False) -> str:
    """An input in short: ``float32[2, 3]``, on demand with its contents."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return "a list of tensors" if isinstance(value, TensorList) else str(value)
    name = "string" if value.dtype == object else np.dtype(value.dtype).name
    text = f"{name}{list(value.shape)}"
    if with_value and isinstance(value, (np.ndarray, np.generic)) and value.size <= 8:
        text += f" = {value.tolist()}"
    return text


def _reason(error: Exception) -> str:
    """The first sentence of an error's text: what JAX adds after it concerns JAX's users."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text.split("\n\n")[0].split("\n---")[0].strip().rstrip(".") or type(error).__name__


def shape_problem(node: Node, args: Sequence[Any]) -> str | None:
    """What the shape rule of the node's op says against inputs of these shapes, None if nothing."""
    definition = node.op_def
    if definition.shape is None or len(args) != len(node.inputs):
        return None
    graph = ValueGraph()
    static = static_inputs(node)
    try:
        inputs = [_stand_in(graph, node, i, a, i in static) for i, a in enumerate(args)]
        definition.infer_shapes(
            Operation(graph, node.name, definition, tuple(inputs), node.attrs), node.dtypes
        )
    except ValueError as error:
        return None if is_foreign(error) else str(error)
    except Exception:
        # The rule is not made for such inputs: the kernel's own error has to do.
        return None
    return None


def _stand_in(graph: ValueGraph, node: Node, position: int, value: Any, is_static: bool) -> Tensor:
    """A tensor with the shape of a value; with its contents if kernels need these to compile."""
    source, index = node.inputs[position]
    dtype = source.dtypes[index]
    shape = getattr(value, "shape", None)
    if is_static and isinstance(value, (np.ndarray, np.generic)):
        op = Operation(graph, "value", CONST, (), {"value": np.asarray(value), "dtype": dtype})
    else:
        op = Operation(graph, "value", PLACEHOLDER, (), {"dtype": dtype, "shape": None})
    op.outputs = (Tensor(op, 0, dtype, None if shape is None else tuple(shape)),)
    return op.outputs[0]


__all__ = [
    "came",
    "count_bytes",
    "is_out_of_memory",
    "kernel_error",
    "out_of_memory",
    "shape_problem",
]
