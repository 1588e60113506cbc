"""What a layer was called on and what it gave; and which ops depend on which tensors."""

from __future__ import annotations

import functools
from typing import Any

from headrace.graph import nest
from headrace.graph.tensor import Operation, Tensor


class Connected:
    """The inputs and outputs of each call of a layer."""

    name: Any

    @functools.cached_property
    def _nodes(self) -> list[tuple[Any, Any]]:
        """Inputs and outputs of every call."""
        return []

    def _node(self, index: int, part: int, what: str) -> Any:
        if not self._nodes:
            raise RuntimeError(f"The layer has never been called and thus has no defined {what}.")
        if index >= len(self._nodes):
            raise ValueError(
                f"Asked to get {what} at node {index}, but the layer has only {len(self._nodes)} "
                "inbound nodes."
            )
        return self._nodes[index][part]

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call, by its number: RuntimeError or ValueError if there is none."""
        return self._node(node_index, 0, "input")

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call, by its number."""
        return self._node(node_index, 1, "output")

    def get_input_shape_at(self, node_index: int) -> Any:
        """The static shapes of the inputs of a call."""
        return _shapes(self._node(node_index, 0, "input shape"))

    def get_output_shape_at(self, node_index: int) -> Any:
        """The static shapes of the outputs of a call."""
        return _shapes(self._node(node_index, 1, "output shape"))

    def _only(self, part: int, what: str) -> Any:
        if not self._nodes:
            raise AttributeError(f"Layer {self.name} is not connected: it has no {what}.")
        if len(self._nodes) > 1:
            raise AttributeError(
                f"Layer {self.name} has multiple inbound nodes, hence the notion of layer {what} "
                f"is ill-defined. Use `get_{what}_at(node_index)` instead."
            )
        return self._nodes[0][part]

    @property
    def input(self) -> Any:
        """The inputs, if the layer has been called once; else AttributeError."""
        return self._only(0, "input")

    @property
    def output(self) -> Any:
        """The outputs, if the layer has been called once; else AttributeError."""
        return self._only(1, "output")

    @property
    def input_shape(self) -> Any:
        """The static shape of the inputs, equal in all calls; else AttributeError."""
        return self._common_shape(0, "input")

    @property
    def output_shape(self) -> Any:
        """The static shape of the outputs, equal in all calls; else AttributeError."""
        return self._common_shape(1, "output")

    def _common_shape(self, part: int, what: str) -> Any:
        if not self._nodes:
            raise AttributeError(
                f"The layer {self.name} has never been called and thus has no defined {what} shape."
            )
        shapes = [_shapes(node[part]) for node in self._nodes]
        if any(str(s) != str(shapes[0]) for s in shapes):
            raise AttributeError(
                f"The layer {self.name} has multiple inbound nodes with different {what} shapes: "
                f"use `get_{what}_shape_at(node_index)` instead."
            )
        return shapes[0]


def _shapes(structure: Any) -> Any:
    return nest.map_structure(lambda x: getattr(x, "shape", None), structure)


def reachable(inputs: Any, targets: list[Any]) -> list[Any]:
    """Those of ``targets`` (tensors and ops) that depend on a tensor of ``inputs``."""
    sources = {id(x.op) if isinstance(x, Tensor) else id(x) for x in nest.flatten(inputs)}
    known: dict[int, bool] = {}

    def depends(op: Operation) -> bool:
        pending = [op]
        seen: set[int] = set()
        while pending:
            current = pending.pop()
            if id(current) in sources or known.get(id(current)):
                return True
            if id(current) in seen:
                continue
            seen.add(id(current))
            pending.extend(x.op for x in current.inputs)
            pending.extend(current.control_inputs)
        return False

    found = []
    for target in targets:
        op = target.op if isinstance(target, Tensor) else target
        known[id(op)] = depends(op)
        if known[id(op)]:
            found.append(target)
    return found
