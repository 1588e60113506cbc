"""Dead control edges: waiting for a node that has no effects is waiting for nothing.

A node that may fail has an effect: the step that waits for it fails with it. To wait for what a
value is made of anyway is to wait for nothing, too: optimizers let each gradient of an operation
wait for its others, and all of them are made of the same reads of variables.

In: a step graph. Out: control edges only from nodes that have effects, or may fail, and that are
not behind the inputs. Invariant: whatever could be noticed still happens before what waits for it.

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
#: Of a step with more effects, times nodes, control edges stay as they are.
_MOST_BITS = 1 << 30
#: Shape rules of ops that have, with one input, nothing to refuse.
_TAKE_ANY_SHAPE = (array_util.like_first,)


def drop_dead_control(step: StepGraph) -> int:
    """Move control edges from pure nodes to the effects behind them; returns how many changed.

    A node that waits for a pure node waits, in truth, for whatever effects that node depends on.
    """
    if not any(node.control for node in step.nodes):
        return 0
    effects = [n for n in step.nodes if has_effect(n) or may_refuse_shapes(n)]
    if len(effects) * len(step.nodes) > _MOST_BITS:
        return 0
    changed = _Behind(effects).move(step)
    if changed:
        step.prune()
    return changed


class _Behind:
    """Which effects lie behind each node: sets of them, a bit for each."""

    def __init__(self, effects: list[Node]) -> None:
        self._effects = effects
        self._own = {node: 1 << i for i, node in enumerate(effects)}
        #: Itself, or the nearest on all ways to it: they wait for what lies behind them.
        self._nearest: dict[Node, int] = {}
        #: All that have run before it has its value, whatever is folded later.
        self._made_of: dict[Node, int] = {}

    def move(self, step: StepGraph) -> int:
        """Let each node wait for effects alone; returns how many nodes have changed."""
        changed = 0
        for node in step.nodes:
            nearest = made_of = 0
            for source, _ in node.inputs:
                nearest |= self._nearest[source]
                made_of |= self._made_of[source]
            if _may_lose_inputs(node):
                made_of = 0
            if node.control:
                kept = self._waits(node, made_of)
                changed += kept != node.control
                node.control = kept
                for source in kept:
                    nearest |= self._nearest[source]
            own = self._own.get(node, 0)
            self._nearest[node] = own or nearest
            self._made_of[node] = made_of if node.op_def.lower is not None else made_of | own
        return changed

    def _waits(self, node: Node, made_of: int) -> list[Node]:
        """What a node has to wait for that its inputs are not made of."""
        wanted = 0
        for source in node.control:
            wanted |= self._nearest[source]
        wanted &= ~made_of
        if wanted.bit_count() > _MANY:
            return [n for n in node.control if self._nearest[n] & ~made_of]
        kept = []
        while wanted:
            lowest = wanted & -wanted
            kept.append(self._effects[lowest.bit_length() - 1])
            wanted ^= lowest
        return kept


def _may_lose_inputs(node: Node) -> bool:
    """Whether the value may turn out to be made without the inputs."""
    return node.op_def.shape_only or node.op_def.lower is not None


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
    return [node.inputs[i] for i in node.op_def.static_inputs(node.attrs)]


def has_effect(node: Node) -> bool:
    """Whether running the node at another time could be noticed."""
    effects = node.op_def.effects
    return not effects.pure or effects.checks or node.op_def.lower is not None
