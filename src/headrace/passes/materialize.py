"""Values that are computed once: where fusion would compute a long chain again for each user.

XLA's CPU compiler copies cheap arithmetic into every kernel that uses it. Along a recurrence (the
gradient of an LSTM's cell, say) each step then repeats all the steps before it: code that grows
with the square of the number of steps, and compile time with it. A barrier after a value that has
several users, and more than a few operations behind it, keeps it in memory for all of them.

In: a step graph. Out: the same with barriers, which hand on what they get.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = y = tf.placeholder(tf.float32, [2], name="x")
    ...     for _ in "ten of them":
    ...         y = tf.add(y, x, name="y")
    ...     step = build_step([tf.exp(y, name="a"), tf.sin(y, name="b")], [x], [])
    >>> materialize(step), step.nodes[-3:]
    (1, [<y_10 = _Materialize(y_10:0)>, <a = Exp(y_10:0)>, <b = Sin(y_10:0)>])
"""

from __future__ import annotations

from jax import lax

from headrace.graph.wire_precision import carry
from headrace.ops.core.registry import ArgDef, OpDef
from headrace.passes.ir import Edge, Node, StepGraph

#: So many operations may be repeated for each user.
LIMIT = 8

#: Its value, kept in memory; not an op that programs can make.
MATERIALIZE = OpDef(
    "_Materialize",
    (ArgDef("x"),),
    (ArgDef("y"),),
    {},
    kernel=lax.optimization_barrier,
    interpret=lambda x: x,
)


def materialize(step: StepGraph) -> int:
    """Put barriers where cheap arithmetic would be repeated; returns how many."""
    users: dict[Node, int] = {}
    for node in step.nodes:
        for source in {n for n, _ in node.inputs}:
            users[source] = users.get(source, 0) + 1
    # A fetch is a user as well.
    for node in {n for n, _ in step.fetches}:
        users[node] = users.get(node, 0) + 1
    #: Operations that one more user of a value repeats.
    repeated: dict[Node, int] = {}
    kept: dict[Edge, Node] = {}
    for node in step.nodes:
        if not node.op_def.traits.cheap:
            continue
        # The op itself, and all the cheap ones before it up to the last barrier.
        size = 1 + sum(repeated.get(n, 0) for n in {n for n, _ in node.inputs})
        if size > LIMIT and users.get(node, 0) > 1:
            kept[(node, 0)] = _barrier(node)
            size = 0
        repeated[node] = size
    if kept:
        step.replace({edge: (barrier, 0) for edge, barrier in kept.items()})
        for edge, barrier in kept.items():
            barrier.inputs = [edge]
        step.nodes.extend(kept.values())
        step.prune()
    return len(kept)


def _barrier(node: Node) -> Node:
    attrs = carry(node.attrs, {})
    made = Node(MATERIALIZE, node.name, [], attrs, node.dtypes, node.dims, node.op)
    made.device, made.colocation = node.device, node.colocation
    return made
