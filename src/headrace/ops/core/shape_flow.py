"""Shapes through a function body: what its outputs have when its inputs have given shapes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph.value_graph import ValueGraph


def output_dims(body: FuncGraph, inputs: Sequence[Dims]) -> list[Dims]:
    """The shapes of the outputs of ``body``, as far as the shape rules of its operations tell.

    Args:
        inputs: the shape of each input and capture, in order.
    """
    graph = ValueGraph()
    known: dict[Tensor, Tensor] = {}
    for tensor, dims in zip(body.all_inputs, inputs, strict=True):
        known[tensor] = _stand_in(graph, tensor, dims)
    for op in body._ops:
        if any(t in known for t in op.outputs):
            continue
        values = tuple([known[t] for t in op.inputs])
        copy = Operation(graph, op.name, op.op_def, values, op.attrs)
        try:
            dims_of = op.op_def.infer_shapes(copy, [t.dtype for t in op.outputs])
        except Exception:  # the rule cannot tell: what the graph says has to do
            dims_of = [t.dims for t in op.outputs]
        copy.outputs = tuple(
            Tensor(copy, i, t.dtype, dims)
            for i, (t, dims) in enumerate(zip(op.outputs, dims_of, strict=True))
        )
        known.update(zip(op.outputs, copy.outputs, strict=True))
    return [known[t].dims if t in known else t.dims for t in body.outputs]


def _stand_in(graph: ValueGraph, tensor: Tensor, dims: Dims) -> Tensor:
    op = Operation(graph, tensor.op.name, tensor.op.op_def, (), tensor.op.attrs)
    op.outputs = (Tensor(op, 0, tensor.dtype, dims),)
    return op.outputs[0]
