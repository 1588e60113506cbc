"""Dead control edges: waiting for a node that has no effects is waiting for nothing."""

from __future__ import annotations

from headrace.passes.ir import Node, StepGraph


def drop_dead_control(step: StepGraph) -> int:
    """Move control edges from pure nodes to the effects behind them; returns how many changed.

    A node that waits for a pure node waits, in truth, for whatever effects that node depends on.
    """
    behind: dict[Node, tuple[Node, ...]] = {}
    changed = 0
    for node in step.nodes:
        if node.control:
            wanted: dict[Node, None] = {}
            for source in node.control:
                wanted.update(dict.fromkeys(behind[source]))
            wanted.pop(node, None)
            if list(wanted) != node.control:
                node.control = list(wanted)
                changed += 1
        if has_effect(node):
            behind[node] = (node,)
            continue
        sources: dict[Node, None] = {}
        for source in (*[n for n, _ in node.inputs], *node.control):
            sources.update(dict.fromkeys(behind[source]))
        behind[node] = tuple(sources)
    if changed:
        step.prune()
    return changed


def has_effect(node: Node) -> bool:
    """Whether running the node at another time could be noticed."""
    effects = node.op_def.effects
    return not effects.pure or effects.checks or node.op_def.lower is not None
