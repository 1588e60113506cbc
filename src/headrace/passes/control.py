"""Dead control edges: waiting for a node that has no effects is waiting for nothing.

A node that may fail has an effect: the step that waits for it fails with it.

In: a step graph. Out: control edges only from nodes that have effects, or may fail. Invariant:
whatever could be noticed still happens before what waits for it.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     with tf.control_dependencies([tf.exp(x, name="idle")]):
    ...         step = build_step([tf.sin(x, name="y")], [x], [])
    >>> drop_dead_control(step), step.nodes
    (1, [<x:0 = _Feed()>, <y = Sin(x:0:0)>])
"""

from __future__ import annotations

from headrace.ops.core import array_util
from headrace.ops.core.array_util import fully_known
from headrace.passes.ir import Edge, Node, StepGraph

#: A node behind which more effects lie keeps its control edges: they are fewer.
_MANY = 16
#: Shape rules of ops that have, with one input, nothing to refuse.
_TAKE_ANY_SHAPE = (array_util.like_first,)


def drop_dead_control(step: StepGraph) -> int:
    """Move control edges from pure nodes to the effects behind them; returns how many changed.

    A node that waits for a pure node waits, in truth, for whatever effects that node depends on.
    """
    behind: dict[Node, list[Node]] = {}
    changed = 0
    for node in step.nodes:
        if not node.control:
            continue
        wanted: dict[Node, None] = {}
        for source in node.control:
            # Found once for each source: many nodes wait for the same.
            if source not in behind:
                behind[source] = _effects_behind(source)
            wanted.update(dict.fromkeys(behind[source]))
        if list(wanted) != node.control:
            node.control = list(wanted)
            changed += 1
    if changed:
        step.prune()
    return changed


def _effects_behind(node: Node) -> list[Node]:
    """The nearest nodes that matter, of a node and all it depends on; itself if many."""
    found: dict[Node, None] = {}
    seen = {node}
    stack = [node]
    while stack:
        current = stack.pop()
        if has_effect(current) or may_refuse_shapes(current):
            # What lies behind it need not be found: it waits for that itself.
            found[current] = None
            if len(found) > _MANY:
                return [node]
            continue
        for source in (*[n for n, _ in current.inputs], *current.control):
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return list(found)


def may_refuse_shapes(node: Node) -> bool:
    """Whether the shapes, or the sizes that an input gives, may turn out wrong when the step runs.

    They cannot where the graph knows them, and where an op of one input takes any shape.
    """
    d = node.op_def
    if not node.inputs or d.shape is None or d.shape_only:
        return False
    if all(fully_known(source.dims[i]) for source, i in node.inputs):
        return any(n.type != "Const" for n, _ in _static_inputs(node))
    return d.shape not in _TAKE_ANY_SHAPE or len(node.inputs) > 1


def _static_inputs(node: Node) -> list[Edge]:
    static = node.op_def.static
    positions = static(node.attrs) if callable(static) else static
    return [node.inputs[i] for i in positions if i < len(node.inputs)]


def has_effect(node: Node) -> bool:
    """Whether running the node at another time could be noticed."""
    effects = node.op_def.effects
    return not effects.pure or effects.checks or node.op_def.lower is not None
