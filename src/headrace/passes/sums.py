"""Sums of products: what an unrolled loop adds up step by step is computed in one go.

The gradient of a weight that is used n times is a sum of n products, each as large as the weight.
Joined along the axis that they contract, their operands give the same sum as one product, which
reads and writes the weight's size once: sum A_t' B_t = [A_1; A_2; ...]' [B_1; B_2; ...]. The sum
of their column sums, the gradient of a bias, is joined the same way.

Optimizers let each gradient of an operation wait for its others, by an Identity with control edges:
what a term waits for, the sum waits for instead.

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
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from headrace.graph.dtypes import int32
from headrace.graph.segments import segment_of
from headrace.graph.tensor import Dims
from headrace.graph.wire_precision import ATTRIBUTE, carry
from headrace.ops.core.registry import get_op_def
from headrace.passes.ir import Edge, Node, StepGraph

#: Where a term is on several devices.
_SEVERAL = object()
#: Column sums of more elements than this stay apart: they are worth more than the copy costs.
_SMALL = 1 << 16


def join_sums(step: StepGraph) -> int:
    """Join the products and column sums that AddN adds up; returns how many it joined."""
    uses = _Uses(step)
    mapping: dict[Edge, Edge] = {}
    joined = 0
    for node in list(step.nodes):
        if node.type != "AddN" or len(node.inputs) < 2:
            continue
        groups: dict[Any, list[_Term]] = {}
        for source, _ in node.inputs:
            term = uses.term_behind(source)
            key = _kind(term.node) if term is not None and term.device == node.device else None
            if term is not None and key is not None:
                own = (term.node.attrs.get(ATTRIBUTE), segment_of(term.node.attrs))
                groups.setdefault((*key, *own), []).append(term)
        for key, terms in groups.items():
            nodes = [term.node for term in terms]
            if len(terms) > 1 and _pays(key, nodes):
                joined += len(terms)
                _replace_terms(node, terms, _JOIN[key[0]](step, nodes))
        # All terms have become one: the sum is that.
        if len(node.inputs) == 1 and uses.is_plain(node):
            only = node.inputs[0][0]
            only.attrs = carry(node.attrs, only.attrs)
            mapping[(node, 0)] = node.inputs[0]
    if joined:
        step.replace(mapping)
        step.prune()
    return joined


class _Term(NamedTuple):
    """What a sum adds.

    Attributes:
        node: that computes it.
        gates: Identities with control edges between it and the sum, the last first.
    """

    node: Node
    gates: tuple[Node, ...]

    @property
    def device(self) -> Any:
        """Of all of it, if that is one."""
        devices = {n.device for n in (self.node, *self.gates)}
        return devices.pop() if len(devices) == 1 else _SEVERAL


class _Uses:
    """Who uses the nodes of a step."""

    def __init__(self, step: StepGraph) -> None:
        self._takers: Counter[Node] = Counter(n for node in step.nodes for n, _ in node.inputs)
        #: Fetches, targets, and what others wait for.
        self._known = {*step.roots(), *(n for node in step.nodes for n in node.control)}

    def is_plain(self, node: Node) -> bool:
        """Whether inputs of others are all that there is to a node."""
        return self._takers[node] > 0 and node not in self._known and not node.control

    def term_behind(self, source: Node) -> _Term | None:
        """The term that a sum takes from ``source``; None if somebody else uses it, too: it is
        computed anyway, and joining would do its work twice."""
        gates: list[Node] = []
        while self._takers[source] == 1 and source not in self._known:
            if not source.control:
                return _Term(source, tuple(gates))
            if source.type != "Identity":
                break
            gates.append(source)
            source = source.inputs[0][0]
        return None


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
    is_last = node.attrs.get("data_format") == "NHWC"
    if node.type == "BiasAddGrad" and is_last and dims[0] and None not in dims[0]:
        return ("BiasAddGrad", dims[0][1:], node.dtypes[0])
    return None


def _is_column_sum(dims: Dims, axes: Node) -> bool:
    """Whether the first axis is summed over, written as 0, of a shape that is known."""
    value = axes.attrs["value"].ravel()
    return bool(value.size and value.min() == 0 and dims and len(dims) > 1 and None not in dims)


def _pays(key: Any, terms: list[Node]) -> bool:
    """Whether joining the operands moves less memory than adding up the results."""
    if key[0] != "MatMul":
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
    return _like(step, first, [values, *first.inputs[1:]])


_JOIN = {"MatMul": _join_products, "Sum": _join_column_sums, "BiasAddGrad": _join_column_sums}


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


def _replace_terms(total: Node, terms: list[_Term], joined: Node) -> None:
    """Let ``joined`` stand for ``terms`` in the sum ``total``."""
    gone = {n for term in terms for n in (term.node, *term.gates)}
    waits = [n for term in terms for gate in term.gates for n in gate.control]
    total.control = list(dict.fromkeys([*total.control, *waits]))
    position = next(i for i, (n, _) in enumerate(total.inputs) if n in gone)
    kept = [e for e in total.inputs if e[0] not in gone]
    kept.insert(position, (joined, 0))
    total.inputs = kept
    total.attrs = {**total.attrs, "N": len(kept)}
