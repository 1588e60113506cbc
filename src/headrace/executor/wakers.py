"""Which nodes must not wait for a queue that they may have to fill themselves.

The nodes of a region wait together. Where one of them leads to an enqueue, and another takes what
a dequeue gives, the region would wait for a dequeue that waits for the region. TensorFlow's nodes
wait each for itself, so such a step ends there; here these nodes are in regions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from headrace.executor.touched import may_block
from headrace.passes.ir import Node

#: Order of nodes without a set of their own: behind all others of their stage.
LAST = 1 << 30


def waits_apart(
    nodes: Sequence[Node], is_host: Callable[[Node], bool], asks: Container[Node] = ()
) -> dict[Node, int]:
    """For nodes that lead to an op that may end somebody's waiting: what they may wait for.

    That are the waiting ops (as bits) which all that such a node leads to waits for anyway. Nodes
    with equal bits may share a region, and so may all nodes without any: nobody's waiting ends by
    them. If one node leads to another, its bits are among those of the other.

    Args:
        nodes: of one step, each behind its inputs.
        is_host: whether a node runs outside of programs.
        asks: nodes with bodies that other tasks run.
    """
    waiting = [n for n in nodes if may_block(n)]
    if len(waiting) < 2:
        return {}
    bit = {n: 1 << i for i, n in enumerate(waiting)}
    before: dict[Node, int] = {}
    users: dict[Node, dict[Node, None]] = {n: {} for n in nodes}
    for node in nodes:
        bits = 0
        for source in {*(n for n, _ in node.inputs), *node.control}:
            if source in users:
                bits |= before[source] | bit.get(source, 0)
                users[source][node] = None
        before[node] = bits
    found: dict[Node, int] = {}
    for node in reversed(nodes):
        bits = before[node] if is_host(node) and (node in asks or _may_wake(node)) else -1
        for user in users[node]:
            bits &= found.get(user, -1)
        if bits != -1:
            found[node] = bits
    return found


def _may_wake(node: Node) -> bool:
    """Whether a node that runs outside of programs may end the waiting of another."""
    effects = node.op_def.effects
    return bool(effects.external or effects.writes or may_block(node))


def rank(bits: int | None) -> int:
    """A number that is smaller for nodes that lead to others, within a stage."""
    return LAST if bits is None else bits.bit_count()
