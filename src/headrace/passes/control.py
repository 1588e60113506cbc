"""Dead control edges: waiting for a node that has no effects is waiting for nothing."""

from __future__ import annotations

from headrace.passes.ir import Node, StepGraph

#: A node behind which more effects lie keeps its control edges: they are fewer.
_MANY = 16


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
    """The nearest nodes with effects among a node and all it depends on; itself if many."""
    found: dict[Node, None] = {}
    seen = {node}
    stack = [node]
    while stack:
        current = stack.pop()
        if has_effect(current):
            found[current] = None
            if len(found) > _MANY:
                return [node]
            continue
        for source in (*[n for n, _ in current.inputs], *current.control):
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return list(found)


def has_effect(node: Node) -> bool:
    """Whether running the node at another time could be noticed."""
    effects = node.op_def.effects
    return not effects.pure or effects.checks or node.op_def.lower is not None
