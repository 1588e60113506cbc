"""Building graph functions for control flow: tracing bodies, and making captures agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph import func_graph, nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import add_node, convert_to_tensor, function_placeholder
from headrace.ops.core.registry import get_op_def


def build_body(
    name: str,
    function: Callable[..., Any],
    signature: Sequence[tuple[DType, Dims, str]],
) -> tuple[FuncGraph, Any]:
    """Trace ``function`` on placeholders; names of its ops start with the current scope and name.

    So the ops of all bodies of a graph have different names, and errors tell where they belong.
    """
    outer = get_default_graph()
    prefix = outer.get_name_scope()
    scope = f"{prefix}/{name}" if prefix else name

    def add_body() -> Any:
        body = get_default_graph()
        assert isinstance(body, FuncGraph)
        body._names.scope = scope
        inputs = [body.add_input(dtype, dims, hint) for dtype, dims, hint in signature]
        return function(*inputs)

    return func_graph.trace(scope.replace("/", "_"), add_body, (), function_placeholder)


def unify_captures(bodies: Sequence[FuncGraph]) -> list[Tensor]:
    """Give all ``bodies`` the same captures in the same order; returns the outer tensors."""
    outer = list(dict.fromkeys(t for body in bodies for t in body.captures))
    for body in bodies:
        body.captures = {t: body.capture(t) for t in outer}
    return outer


def is_stateful(bodies: Sequence[FuncGraph]) -> bool:
    """Whether running the bodies can do anything but compute outputs from inputs."""
    return any(not op.op_def.effects.pure for body in bodies for op in body._ops)


def call_op(
    stateful: str,
    stateless: str,
    bodies: Sequence[FuncGraph],
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    name: str,
) -> Operation:
    """Add the op that runs ``bodies``; it waits for whatever ops in the bodies wait for."""
    graph = get_default_graph()
    waits = list(dict.fromkeys(op for body in bodies for op in body.outer_control))
    definition = get_op_def(stateful if is_stateful(bodies) else stateless)
    with graph.control_dependencies(waits):
        return add_node(definition, inputs, {**attrs, "name": name})


def inline(body: FuncGraph, inputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[Tensor]:
    """Copy the operations of ``body`` into the current graph; returns what ``wanted`` become."""
    graph = get_default_graph()
    values: dict[Tensor, Tensor] = dict(zip(body.all_inputs, inputs, strict=True))
    copies: dict[Operation, Operation] = {}
    arguments = {t.op for t in values}
    for op in body._ops:
        if op in arguments:
            continue
        waits = [copies[c] for c in op.control_inputs if c in copies]
        copy = graph.add_op(
            op.op_def,
            [values[t] for t in op.inputs],
            op.attrs,
            [t.dtype for t in op.outputs],
            op.name,
            waits,
            op.device,
        )
        copies[op] = copy
        for old, new in zip(op.outputs, copy.outputs, strict=True):
            new.set_shape(old.shape)
            values[old] = new
    return [values[t] for t in wanted]


#: Set by `autodiff`: adds to the current graph the gradients of ``xs``, zeros where there are none.
gradients_of: list[
    Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], list[Tensor]]
] = []


def differentiate(forward: FuncGraph, name: str) -> FuncGraph:
    """The function that takes the arguments of ``forward`` and gradients of its results.

    Its results are the gradients of the arguments.
    """
    body = FuncGraph(name, forward.outer_graph, function_placeholder)
    xs = [body.add_input(t.dtype, t.dims, t.op.name) for t in forward.all_inputs]
    grads = [body.add_input(t.dtype, t.dims, "grad") for t in forward.outputs]
    with body.as_default():
        ys = inline(forward, xs, forward.outputs)
        found = gradients_of[0](ys, xs, grads)
        body.outputs = [g if g.graph is body else body.capture(g) for g in found]
    return body


class Leaf:
    """One leaf of a nested structure as plain tensors, with the way back.

    A composite consists of several tensors; all else is converted to one.
    """

    def __init__(self, value: Any, dtype: Any = None) -> None:
        self.rebuild: Callable[[list[Tensor]], Any]
        if isinstance(value, CompositeTensor):
            self.tensors: list[Tensor] = value._parts()
            self.rebuild = value._from_parts
        else:
            self.tensors = [convert_to_tensor(value, dtype)]
            self.rebuild = lambda tensors: tensors[0]


class Structure:
    """A nested structure of leaves, flattened to tensors."""

    def __init__(self, structure: Any) -> None:
        self.form = structure
        self.leaves = [Leaf(v) for v in nest.flatten(structure)]
        self.tensors = [t for leaf in self.leaves for t in leaf.tensors]

    def pack(self, tensors: Sequence[Tensor]) -> Any:
        """The same structure with other tensors."""
        rebuilt = []
        position = 0
        for leaf in self.leaves:
            count = len(leaf.tensors)
            rebuilt.append(leaf.rebuild(list(tensors[position : position + count])))
            position += count
        return nest.pack_sequence_as(self.form, rebuilt)


__all__: list[str] = []
