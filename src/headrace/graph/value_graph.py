"""The graph in which shape rules are asked about the shapes that came in a step."""

from __future__ import annotations

from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation


class ValueGraph(Graph):
    """Its tensors stand for values. Nobody builds in it."""


def is_built(op: Operation) -> bool:
    """Whether a shape rule is asked while a program builds ``op``, and not about values.

    As in TensorFlow, some rules are stricter then: what is certainly a mistake in a program may be
    an extreme case of its data.
    """
    return not isinstance(op.graph, ValueGraph)
