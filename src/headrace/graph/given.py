"""A graph that a function was given, or the default one."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import Graph, get_default_graph

__all__ = ["given_graph"]


def given_graph(graph: Any) -> Graph:
    """The graph; for None the default one.

    Raises:
        TypeError: if it is no graph.

    >>> with tf.Graph().as_default() as graph:
    ...     given_graph(None) is graph
    True
    """
    if graph is None:
        return get_default_graph()
    if not isinstance(graph, Graph):
        hint = ""
        if isinstance(getattr(graph, "graph", None), Graph):
            hint = " That of a session, tensor or operation is its attribute graph."
        raise TypeError(
            f"graph must be a tf.Graph, or None for the default one; got {graph!r:.100} of type "
            f"{type(graph).__name__}.{hint}"
        )
    return graph
