"""Sums that a program makes once.

The gradient of what several take is a sum. XLA makes elementwise values anew in each loop that
takes them, and all that they are made of: in a network of residual connections each layer's
gradient has those of all layers behind it in it, and each of its reductions read them all. Of a
step of a Transformer with six layers, half went into that, and two thirds of its compiling. Behind
a barrier a sum is written once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.ops.core.barrier import barrier
from headrace.passes.ir import Edge, Node

#: Smaller values cost nothing in any form.
LEAST_ELEMENTS = 1 << 12


def made_once(nodes: Sequence[Node], outputs: Iterable[Edge]) -> frozenset[Node]:
    """Those of the nodes whose output is such a sum and is taken more than once.

    Args:
        nodes: those of a program; what the bodies of its loops and functions have is left to XLA.
        outputs: what others than the nodes take.
    """
    users = Counter(edge for node in nodes for edge in set(node.inputs))
    users.update(set(outputs))
    return frozenset(n for n in nodes if n.op_def.traits.made_once and users[n, 0] > 1)


def held(outputs: Sequence[Any]) -> Sequence[Any]:
    """The output of such a node, written down before anything is made of it."""
    return outputs if outputs[0].size < LEAST_ELEMENTS else barrier(list(outputs))


__all__ = ["LEAST_ELEMENTS", "held", "made_once"]
