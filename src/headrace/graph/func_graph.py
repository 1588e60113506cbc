"""Graph functions: the bodies of loops, branches and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.graph import Graph, default_graph_stack
from headrace.graph.recursion import room_for
from headrace.graph.scopes import ControlStack
from headrace.graph.tensor import Dims, Operation, Tensor


class FuncGraph(Graph):
    """The body of a function: a graph with inputs, outputs and captured outer tensors.

    A tensor of an enclosing graph that is used inside becomes an extra input ("capture"): the op
    that calls the function passes it after the declared inputs.
    """

    def __init__(self, name: str, outer: Graph, placeholder: Callable[..., Tensor]) -> None:
        super().__init__()
        self.name = name
        self.outer_graph = outer
        #: How many functions this one lies in, itself counted.
        self.level: int = outer.level + 1 if isinstance(outer, FuncGraph) else 1
        self._placeholder = placeholder
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        #: Outer tensor -> the inner placeholder that stands for it, in order of capture.
        self.captures: dict[Tensor, Tensor] = {}
        #: Outer ops that ops inside wait for: the calling op waits for them in their place.
        self.outer_control: dict[Operation, None] = {}
        # State of the enclosing graph that programs expect to see inside.
        self._collections = outer._collections
        self._seed = outer._seed
        self._container = outer._container
        self._gradient_overrides = list(outer._gradient_overrides)
        self._attr_scopes = list(outer._attr_scopes)
        # Copies: blocks that are opened inside end inside.
        self._devices.entries = list(outer._devices.entries)
        self._devices._merged = outer._devices._merged

    @property
    def building_function(self) -> bool:
        return True

    @property
    def outermost(self) -> Graph:
        return self.outer_graph.outermost

    def add_input(self, dtype: Any, dims: Dims, name: str = "arg") -> Tensor:
        """Declare one more input."""
        tensor = self._placeholder(self, dtype, dims, name)
        self.inputs.append(tensor)
        return tensor

    def capture(self, tensor: Tensor) -> Tensor:
        """The inner stand-in of an outer tensor; made on first use."""
        inner = self.captures.get(tensor)
        if inner is None:
            # Captures go inwards only: a tensor of a sibling or inner body has no value here.
            if not self._encloses(tensor.graph):
                return super().capture(tensor)
            # An argument waits for nothing: not for what surrounds its first use, either, or its
            # users would seem to have waited for that.
            control, self._control = self._control, ControlStack()
            try:
                inner = self._placeholder(self, tensor.dtype, tensor.dims, tensor.op.name)
            finally:
                self._control = control
            self.captures[tensor] = inner
        return inner

    def _encloses(self, graph: Graph) -> bool:
        outer: Graph | None = self.outer_graph
        while outer is not None:
            if outer is graph:
                return True
            outer = outer.outer_graph if isinstance(outer, FuncGraph) else None
        return False

    def _local_control(self, op: Operation) -> Operation | None:
        if op.graph is self:
            return op
        if not self._encloses(op.graph):
            return super()._local_control(op)
        self.outer_control[op] = None
        return None

    @property
    def capture_inputs(self) -> list[Tensor]:
        """The outer tensors to pass after the declared inputs."""
        return list(self.captures)

    @property
    def all_inputs(self) -> list[Tensor]:
        """Inner placeholders: declared inputs, then captures."""
        return [*self.inputs, *self.captures.values()]

    def __repr__(self) -> str:
        return f"<FuncGraph {self.name!r}: {len(self.all_inputs)} in, {len(self.outputs)} out>"


def trace(
    name: str,
    function: Callable[..., Any],
    signature: Sequence[tuple[Any, Dims]],
    placeholder: Callable[..., Tensor],
) -> tuple[FuncGraph, Any]:
    """Build a function's body by calling ``function`` on placeholders of ``signature``.

    Returns the body and what ``function`` returned; the caller sets ``body.outputs``.
    """
    outer = default_graph_stack.current()
    # Unique among all functions of the outermost graph: random streams are told apart by it.
    with outer._lock:
        unique = f"{name}_{len(outer.outermost._functions)}"
    body = FuncGraph(unique, outer, placeholder)
    outer.outermost._functions[unique] = body
    with body.as_default(), room_for(body.level):
        result = function(*[body.add_input(dtype, dims) for dtype, dims in signature])
    return body, result
