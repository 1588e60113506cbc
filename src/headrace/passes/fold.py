"""Constant folding: pure nodes whose inputs are known are computed once, when the plan is made.

In: a step graph. Out: constants in the place of nodes whose values it tells. Invariant: the values
are those that the node's own NumPy form gives; what may fail stays, so that it fails in the step.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     step = build_step([tf.add(tf.constant(1), tf.constant(2), name="y")], [], [])
    >>> fold_constants(step), step.nodes, step.nodes[0].attrs["value"]
    (1, [<y = Const()>], array(3, dtype=int32))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.dtypes import variant
from headrace.graph.wire_precision import carry
from headrace.ops.core.registry import get_op_def
from headrace.ops.core.static import fold_values
from headrace.passes.ir import Edge, Node, StepGraph

#: Results above this many elements are left to the program: constants cost memory in every plan.
MAX_ELEMENTS = 1 << 14


def fold_constants(step: StepGraph) -> int:
    """Replace nodes of known value by constants; returns how many."""
    mapping: dict[Edge, Edge] = {}
    known: dict[Edge, Any] = {}
    #: Nodes that may refuse what comes to them, or depend on one that does.
    uncertain: set[Node] = set()
    count = 0
    for node in step.nodes:
        if node.type == "Const" and not node.control:
            known[(node, 0)] = node.attrs["value"]
            continue
        values = _values(node, known)
        # The size of a value that may never come into being: folding it would hide the error.
        if values is not None and any(n in uncertain for n, _ in node.inputs):
            values = None  # the shape is known, but whether there is a value is not
        if values is None:
            if _may_fail(node) or any(n in uncertain for n, _ in node.inputs):
                uncertain.add(node)
            continue
        count += 1
        for i, value in enumerate(values):
            constant = _constant(node, i, value)
            mapping[(node, i)] = (constant, 0)
            known[(node, i)] = value
            step.nodes.append(constant)
    if mapping:
        step.replace(mapping)
        step.prune()
    return count


def _values(node: Node, known: dict[Edge, Any]) -> list[np.ndarray[Any, Any]] | None:
    d = node.op_def
    if not d.effects.pure or not node.dtypes or node.control or d.makes_handle:
        return None
    if d.interpret is None and not d.shape_only:
        return None
    if variant in node.dtypes:  # lists are no arrays
        return None
    if not d.shape_only and (not node.inputs or any(e not in known for e in node.inputs)):
        return None
    dims = [n.dims[i] for n, i in node.inputs]
    return fold_values(d, node.attrs, [known.get(e) for e in node.inputs], dims, MAX_ELEMENTS)


def _may_fail(node: Node) -> bool:
    """Whether a node may end the step: by a check, or for shapes that the graph does not know."""
    if not node.inputs:
        return False
    unknown = any(n.dims[i] is None or None in n.dims[i] for n, i in node.inputs)  # type: ignore[operator]
    return unknown or node.op_def.effects.checks or node.op_def.host is not None


def _constant(node: Node, index: int, value: Any) -> Node:
    dtype = node.dtypes[index]
    attrs = carry(node.attrs, {"value": value, "dtype": dtype})
    constant = Node(get_op_def("Const"), node.name, [], attrs, (dtype,), (value.shape,), node.op)
    constant.device = node.device
    return constant
