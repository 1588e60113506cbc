"""Algebra: identities that save work and change no value.

They change no error either: what an operation that goes would have refused when it runs must be
impossible, or refused by what takes its place. So the rules ask for shapes that the graph knows.

In: a step graph. Out: one in which identities of arithmetic leave less to do. Invariant: dtype and
shape of a result stay, and its value, also for NaN and infinities.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.multiply(x, 1.0, name="y")], [x], [])
    >>> Rewriter(step).apply(RULES), step.nodes
    (1, [<x:0 = _Feed()>])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims
from headrace.passes.ir import Edge, Node
from headrace.passes.rewrite import (
    Bindings,
    Rewriter,
    Rule,
    RuleSet,
    Scalar,
    Var,
    is_constant,
    keeps_shape,
    op,
)

_x = Var("x")


def _the_operand(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    return found["x"] if keeps_shape(node, found["x"]) else None


def _pass_through(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    # An identity with control inputs is what its users wait by; one on another device is how the
    # program asks for a transfer.
    source, _ = found["x"]
    return None if node.control or source.device != node.device else found["x"]


def _same_type(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    source, index = found["x"]
    return found["x"] if source.dtypes[index] is node.dtypes[0] else None


def _same_shape(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    fits = is_constant(found["shape"]) and keeps_shape(node, found["x"])
    return found["x"] if fits else None


def _reshape_once(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not is_constant(found["inner"]) or not _inner_fits(found):
        return None
    return rewriter.make("Reshape", [found["x"], found["shape"]], node)


def _inner_fits(found: Bindings) -> bool:
    """Whether the inner of two reshapes takes all that comes, or all that the outer one takes."""
    dims = _dims_of(found["x"])
    if dims is not None and None not in dims:
        return True  # looked at while the graph was built
    if not is_constant(found["shape"]):
        return False
    inner, outer = found["inner"][0].attrs["value"], found["shape"][0].attrs["value"]
    if (outer < 0).any():
        return False
    elements: int = math.prod(outer.tolist())
    fixed: int = math.prod(inner[inner >= 0].tolist())
    if (inner >= 0).all():
        return elements == fixed
    return fixed > 0 and elements % fixed == 0


def _dims_of(edge: Edge) -> Dims:
    return edge[0].dims[edge[1]]


def _takes(edge: Edge, order: Any) -> bool:
    """Whether the transposition by ``order`` certainly takes this value."""
    dims = _dims_of(edge)
    return dims is not None and sorted(order.tolist()) == list(range(len(dims)))


def _transpose_once(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    outer, inner = found["outer"][0], found["inner"][0]
    if not is_constant(found["outer"]) or not is_constant(found["inner"]):
        return None
    first, then = inner.attrs["value"], outer.attrs["value"]
    if not _takes(found["x"], first) or not np.array_equal(np.sort(then), np.arange(first.size)):
        return None
    # Axis i of the result is axis then[i] of the inner one, and that is axis first[then[i]] of x.
    order = first[then]
    if np.array_equal(order, np.arange(order.size)):
        return found["x"]
    perm = rewriter.make("Const", [], outer, {"value": order})
    return rewriter.make("Transpose", [found["x"], perm], node)


def _no_transpose(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not is_constant(found["perm"]):
        return None
    value = found["perm"][0].attrs["value"]
    in_order = np.array_equal(value, np.arange(value.size))
    return found["x"] if in_order and _takes(found["x"], value) else None


def _square(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not keeps_shape(node, found["x"]):
        return None
    return rewriter.make("Square", [found["x"]], node)


def _subtract(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    return rewriter.make("Sub", [found["x"], found["y"]], node)


# x * 0 = 0, x - x = 0 and x / x = 1 are not here: they are wrong for NaN and infinities.
RULES = RuleSet(
    (
        Rule("x + 0 = x", op("Add|AddV2", _x, Scalar(0), commutes=True), _the_operand),
        Rule("x - 0 = x", op("Sub", _x, Scalar(0)), _the_operand),
        Rule("x * 1 = x", op("Mul", _x, Scalar(1), commutes=True), _the_operand),
        Rule("x / 1 = x", op("RealDiv|Div", _x, Scalar(1)), _the_operand),
        Rule("x ^ 1 = x", op("Pow", _x, Scalar(1)), _the_operand),
        Rule("x ^ 2 = x * x", op("Pow", _x, Scalar(2)), _square),
        Rule("-(-x) = x", op("Neg", op("Neg", _x)), _the_operand),
        Rule("x + (-y) = x - y", op("Add|AddV2", _x, op("Neg", Var("y"))), _subtract),
        Rule("sum of one = itself", op("AddN", _x), _pass_through),
        Rule(
            "identity(x) = x",
            op("Identity|StopGradient|PreventGradient|Snapshot", _x),
            _pass_through,
        ),
        Rule("cast to its own type = x", op("Cast", _x), _same_type),
        Rule("reshape to its own shape = x", op("Reshape", _x, Var("shape")), _same_shape),
        Rule(
            "reshape(reshape(x, a), b) = reshape(x, b)",
            op("Reshape", op("Reshape", _x, Var("inner")), Var("shape")),
            _reshape_once,
        ),
        Rule(
            "transpose(transpose(x, p), q) = transpose(x, p[q])",
            op("Transpose", op("Transpose", _x, Var("inner")), Var("outer")),
            _transpose_once,
        ),
        Rule("transpose in order = x", op("Transpose", _x, Var("perm")), _no_transpose),
    )
)
