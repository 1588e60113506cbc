"""Sums of products: what an unrolled loop adds up step by step is computed in one go.

The gradient of a weight that is used n times is a sum of n products, each as large as the weight.
Joined along the axis that they contract, their operands give the same sum as one product, which
reads and writes the weight's size once: sum A_t' B_t = [A_1; A_2; ...]' [B_1; B_2; ...]. The sum
of their column sums, the gradient of a bias, is joined the same way.

In: a step graph. Out: one product for an AddN of products that contract the same way. Invariant:
the sum is the same up to the order of rounding; a product that anything else uses stays.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [4, 64], name="x")
    ...     terms = [tf.matmul(x, tf.exp(x, name="e"), True, name="p") for _ in "abcd"]
    ...     step = build_step([tf.add_n(terms, name="sum")], [x], [])
    >>> join_sums(step), [n.type for n in step.nodes][-4:]
    (4, ['Exp', 'ConcatV2', 'MatMul', 'AddN'])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.graph.dtypes import int32
from headrace.graph.segments import segment_of
from headrace.graph.tensor import Dims
from headrace.graph.wire_precision import ATTRIBUTE, carry
from headrace.ops.core.registry import get_op_def
from headrace.passes.ir import Edge, Node, StepGraph

#: Column sums of more elements than this stay apart: they are worth more than the copy costs.
_SMALL = 1 << 16


def join_sums(step: StepGraph) -> int:
    """Join the products and column sums that AddN adds up; returns how many it joined."""
    users, known = _users(step)
    # A term that somebody else uses is computed anyway: joining would do its work twice.
    private = {n for n, count in users.items() if count == 1 and n not in known}
    mapping: dict[Edge, Edge] = {}
    joined = 0
    for node in list(step.nodes):
        if node.type != "AddN" or len(node.inputs) < 2:
            continue
        groups: dict[Any, list[Node]] = {}
        for source, _ in node.inputs:
            key = _kind(source) if source in private and source.device == node.device else None
            if key is not None:
                own = (source.attrs.get(ATTRIBUTE), segment_of(source.attrs))
                groups.setdefault((*key, *own), []).append(source)
        for key, terms in groups.items():
            if len(terms) > 1 and _pays(key, terms):
                joined += len(terms)
                _replace_terms(node, terms, _JOIN[key[0]](step, terms))
        # All terms have become one: the sum is that.
        if len(node.inputs) == 1 and node in users and node not in known:
            only = node.inputs[0][0]
            only.attrs = carry(node.attrs, only.attrs)
            mapping[(node, 0)] = node.inputs[0]
    if joined:
        step.replace(mapping)
        step.prune()
    return joined


def _users(step: StepGraph) -> tuple[dict[Node, int], set[Node]]:
    """How many inputs take each node; and the nodes that are more than that: fetches, targets,
    and those with control edges."""
    users: dict[Node, int] = {}
    known: set[Node] = set(step.roots())
    for node in step.nodes:
        if node.control:
            known.update(node.control, (node,))
        for source, _ in node.inputs:
            users[source] = users.get(source, 0) + 1
    return users, known


def _kind(node: Node) -> Any:
    """What terms must have in common to be joined; None for terms that cannot be."""
    dims = [n.dims[i] for n, i in node.inputs]
    if node.type == "MatMul":
        flags = bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])
        if all(d is not None and len(d) == 2 and None not in d for d in dims):
            return ("MatMul", *flags, node.dtypes[0])
    if node.type == "Sum" and not node.attrs["keep_dims"]:
        axes = node.inputs[1][0]
        if axes.type == "Const" and not axes.control and _is_column_sum(dims[0], axes):
            summed = tuple(axes.attrs["value"].ravel().tolist())
            return ("Sum", dims[0][1:], node.dtypes[0], summed)  # type: ignore[index]
    return None


def _is_column_sum(dims: Dims, axes: Node) -> bool:
    """Whether the first axis is summed over, written as 0, of a shape that is known."""
    value = axes.attrs["value"].ravel()
    return bool(value.size and value.min() == 0 and dims and len(dims) > 1 and None not in dims)


def _pays(key: Any, terms: list[Node]) -> bool:
    """Whether joining the operands moves less memory than adding up the results."""
    if key[0] == "Sum":
        return sum(_size(t.inputs[0]) for t in terms) <= _SMALL * len(terms)
    operands = sum(_size(e) for t in terms for e in t.inputs)
    return operands <= sum(_size((t, 0)) for t in terms)


def _size(edge: Edge) -> int:
    node, index = edge
    return math.prod(node.dims[index])  # type: ignore[arg-type]


def _join_products(step: StepGraph, terms: list[Node]) -> Node:
    first = terms[0]
    axes = (0 if first.attrs["transpose_a"] else 1, 1 if first.attrs["transpose_b"] else 0)
    inputs = [_concat(step, [t.inputs[i] for t in terms], axes[i], first) for i in (0, 1)]
    return _like(step, first, inputs)


def _join_column_sums(step: StepGraph, terms: list[Node]) -> Node:
    first = terms[0]
    values = _concat(step, [t.inputs[0] for t in terms], 0, first)
    return _like(step, first, [values, first.inputs[1]])


_JOIN = {"MatMul": _join_products, "Sum": _join_column_sums}


def _like(step: StepGraph, node: Node, inputs: list[Edge]) -> Node:
    made = Node(node.op_def, node.name, inputs, node.attrs, node.dtypes, node.dims, node.op)
    made.device, made.colocation = node.device, node.colocation
    step.nodes.append(made)
    return made


def _concat(step: StepGraph, edges: list[Edge], axis: int, like: Node) -> Edge:
    source, index = edges[0]
    dims = list(source.dims[index])  # type: ignore[arg-type]
    dims[axis] = sum(n.dims[i][axis] for n, i in edges)  # type: ignore[index,misc]
    where = {"value": np.array(axis, np.int32), "dtype": int32}
    at = Node(get_op_def("Const"), like.name, [], where, (int32,), ((),), like.op)
    attrs = {"N": len(edges), "T": source.dtypes[index], "Tidx": int32}
    made = Node(
        get_op_def("ConcatV2"),
        like.name,
        [*edges, (at, 0)],
        attrs,
        (source.dtypes[index],),
        (tuple(dims),),
        like.op,
    )
    at.device = made.device = like.device
    step.nodes += (at, made)
    return (made, 0)


def _replace_terms(total: Node, terms: list[Node], joined: Node) -> None:
    """Let ``joined`` stand for ``terms`` in the sum ``total``."""
    gone = set(terms)
    position = next(i for i, (n, _) in enumerate(total.inputs) if n in gone)
    kept = [e for e in total.inputs if e[0] not in gone]
    kept.insert(position, (joined, 0))
    total.inputs = kept
    total.attrs = {**total.attrs, "N": len(kept)}
