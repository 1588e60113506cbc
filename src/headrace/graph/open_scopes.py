"""The scopes that are open in a graph, taken as one value, and opened again."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.graph.graph import Graph
from headrace.graph.scopes import ControlScope
from headrace.graph.tensor import Operation

__all__ = ["OpenScopes", "put", "take"]


class OpenScopes(NamedTuple):
    """What a graph applies to each new operation.

    >>> from headrace.graph import open_scopes
    >>> graph = tf.get_default_graph()
    >>> with tf.name_scope("model"):
    ...     inside = open_scopes.take(graph)
    >>> outside = open_scopes.take(graph)
    >>> open_scopes.put(graph, inside)
    >>> tf.constant(1.0).name
    'model/Const:0'
    >>> open_scopes.put(graph, outside)
    """

    name: str
    control: tuple[ControlScope, ...]
    devices: tuple[Any, ...]
    colocation: tuple[Operation | None, ...]
    gradient_overrides: tuple[dict[str, str], ...]
    attrs: tuple[dict[str, Any], ...]
    container: str

    def waiting_for(self, ops: list[Operation]) -> OpenScopes:
        """The same, in which new operations wait for more."""
        return self._replace(control=(*self.control, ControlScope(ops, False))) if ops else self


def take(graph: Graph) -> OpenScopes:
    """What is open."""
    return OpenScopes(
        graph._names.scope,
        tuple(graph._control.scopes),
        tuple(graph._devices.entries),
        tuple(graph._colocation),
        tuple(graph._gradient_overrides),
        tuple(graph._attr_scopes),
        graph._container,
    )


def put(graph: Graph, scopes: OpenScopes) -> None:
    """Open scopes, and leave all others."""
    graph._names.scope = scopes.name
    graph._control.scopes[:] = scopes.control
    graph._devices.entries[:] = scopes.devices
    graph._devices._merge()
    graph._colocation = list(scopes.colocation)
    graph._gradient_overrides[:] = scopes.gradient_overrides
    graph._attr_scopes[:] = scopes.attrs
    graph._container = scopes.container
