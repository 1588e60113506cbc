"""Common subexpressions: pure nodes of equal type, inputs and attributes become one.

Source: the 2015 white paper, section 5.1.

In: a step graph. Out: one of each group of equal nodes. Invariant: only pure nodes of one device
merge, and only where their control inputs are the same.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.add(tf.exp(x, "a"), tf.exp(x, "b"), name="y")], [x], [])
    >>> merge_common(step), step.nodes
    (1, [<x:0 = _Feed()>, <a = Exp(x:0:0)>, <y = Add(a:0, a:0)>])
"""

from __future__ import annotations

from typing import Any

from headrace.graph.attrs import attr_key
from headrace.graph.segments import ATTRIBUTE as SEGMENT
from headrace.graph.wire_precision import ATTRIBUTE as WIRE_PRECISION
from headrace.passes.ir import Edge, Node, StepGraph

#: Constants above this size are not compared.
_MAX_CONSTANT = 1 << 12


def merge_common(step: StepGraph) -> int:
    """Merge equal pure nodes; returns how many went."""
    first: dict[Any, Node] = {}
    mapping: dict[Edge, Edge] = {}
    for node in step.nodes:
        # Nodes come in order, so that users of merged nodes can be equal in turn.
        node.inputs = [mapping.get(e, e) for e in node.inputs]
        key = _key(node)
        if key is None:
            continue
        kept = first.setdefault(key, node)
        if kept is not node:
            for i in range(len(node.dtypes)):
                mapping[(node, i)] = (kept, i)
    if mapping:
        step.replace(mapping)
        step.prune()
    return len({n for n, _ in mapping})


def _key(node: Node) -> Any:
    d = node.op_def
    # Feeds and handles have no kernel: equal attributes do not make them the same.
    if not d.effects.pure or not node.dtypes or d.kernel is None:
        return None
    if node.type == "Const" and node.attrs["value"].size > _MAX_CONSTANT:
        return None
    # Private attributes say nothing of the value, but how it travels does: it may lose digits. And
    # what another segment computes again, it computes on purpose: it is not to be kept.
    attrs = tuple(
        [
            (k, attr_key(v))
            for k, v in sorted(node.attrs.items())
            if not k.startswith("_") or k in (WIRE_PRECISION, SEGMENT)
        ]
    )
    return (d.name, tuple(node.inputs), attrs, node.device, frozenset(node.control))
