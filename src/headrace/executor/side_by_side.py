"""Equal operations side by side become one: a thousand small products are one call on a stack.

What a step does a thousand times to as many small tensors (layers of an ensemble, slices of a
picture, members of a sum) costs a thousand calls where it is interpreted and a thousand kernels
where it is compiled. Nodes of one kind, with equal attributes and shapes, that do not depend on
each other are a group here, `EqualNodes`: it takes each input once for all (`shared`), or as a
stack along a new first axis, and gives a stack. What takes all its members takes that as it is.

The plan depends on the graph alone, and so do the bits of what it gives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from headrace.executor.evaluate import (
    Evaluation,
    Tracing,
    Values,
    as_outputs,
    bind_attrs,
    prepared,
)
from headrace.executor.resources import ResourceHandle
from headrace.executor.rounding import in_order, kind_of
from headrace.graph.shapes import num_elements_static
from headrace.passes.ir import Edge, Node

_log = logging.getLogger(__name__)

#: Fewer equal nodes stay single.
LEAST = 16
#: Members with more elements stay single: copying them would cost more than a call.
_MOST_ELEMENTS = 4096
#: A stack is joined of so many parts at most.
_MOST_PIECES = 8


class Input(NamedTuple):
    """Where a group gets one of its inputs.

    Attributes:
        edges: of each member; a single one that all share.
        group: whose members give them, if one group does.
        places: which members those are; None for all, in order.
        dims: of the input of one member.
    """

    edges: list[Edge]
    group: EqualNodes | None
    places: np.ndarray[Any, Any] | None
    dims: tuple[int, ...]

    @property
    def shared(self) -> bool:
        return len(self.edges) == 1


class EqualNodes:
    """Equal nodes that are evaluated in one call.

    Attributes:
        rank: how many dimensions the result of one has; None where ranks need not be equal.
    """

    def __init__(self, nodes: list[Node], inputs: list[Input], rank: int | None) -> None:
        self.nodes = nodes
        self.inputs = inputs
        self.rank = rank


class StackPart(NamedTuple):
    """A part of a stack: of a group's, or of single values."""

    group: EqualNodes | None
    places: np.ndarray[Any, Any] | None
    edges: list[Edge]


class Taking:
    """A node that takes the members of groups as one stack.

    Attributes:
        pieces: of the stack, in order: what stands at these places of a group's (None: all of
            it), or single values.
    """

    def __init__(self, node: Node, pieces: list[StackPart]) -> None:
        self.node = node
        self.pieces = pieces


Item = list[Node] | EqualNodes | Taking


class StackPlan(NamedTuple):
    """What is evaluated one after another.

    Attributes:
        items: single nodes in lists, groups, and nodes that take groups.
    """

    items: list[Item]

    @property
    def calls(self) -> int:
        """How many calls evaluating takes."""
        return sum(len(u) if isinstance(u, list) else 1 for u in self.items)

    def firsts(self) -> Iterator[Node]:
        """The nodes, of each group only one."""
        for item in self.items:
            if isinstance(item, list):
                yield from item
            else:
                yield item.nodes[0] if isinstance(item, EqualNodes) else item.node


class Member:
    """The outputs of one member of a group, cut out of the stack when somebody asks."""

    __slots__ = ("_place", "_stack")

    def __init__(self, stack: Any, place: int) -> None:
        self._stack = stack
        self._place = place

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        if index:
            raise IndexError(index)
        return self._stack[self._place]


def is_constant(edge: Edge) -> bool:
    """Whether the graph has the value: programs are compiled for it."""
    return edge[0].type == "Const" and not edge[0].control


def plan_of(nodes: Sequence[Node], known: Callable[[Edge], bool], copies: bool) -> StackPlan | None:
    """How to evaluate these nodes with equal ones together; None if none are equal.

    Args:
        nodes: in an order in which they could be evaluated.
        known: whether the value of an edge from outside is known before anything runs.
        copies: whether values that do not come from a group may be copied to a stack. XLA takes
            longer to compile that than it takes for the single nodes.
    """
    if len(nodes) < LEAST:
        return None
    levels = _levels(nodes)
    alike: dict[Any, list[Node]] = {}
    for node in nodes:
        if _may_join(node):
            alike.setdefault((levels[node], *_kind(node)), []).append(node)
    sets = [members for members in alike.values() if len(members) >= LEAST]
    if not sets:
        return None
    return _arranged(nodes, levels, sets, known, copies)


def _levels(nodes: Sequence[Node]) -> dict[Node, int]:
    """How many nodes lie one behind the other before each; what changes state is a wall."""
    levels: dict[Node, int] = {}
    wall = highest = 0
    for node in nodes:
        before = [levels[n] + 1 for n, _ in node.inputs if n in levels]
        before += [levels[n] + 1 for n in node.control if n in levels]
        effects = node.op_def.effects
        if effects.pure:
            level = max(before, default=0)
        elif not (effects.writes or effects.blocks or effects.external or effects.random):
            level = max([wall, *before])
            highest = max(highest, level + 1)
        else:
            level = max([wall, highest, *before])
            wall = highest = level + 1
        levels[node] = level
    return levels


def _may_join(node: Node) -> bool:
    d = node.op_def
    if not d.effects.pure or d.effects.checks or node.control or len(node.dtypes) != 1:
        return False
    if d.kernel is None or d.interpret is None or d.lower is not None or d.static:
        return False
    if d.traits.stacked is None and not (d.traits.elementwise and node.inputs):
        return False
    if d.group_sizes(node.attrs) is not None:
        return False
    dims = [node.dims[0], *(source.dims[i] for source, i in node.inputs)]
    sizes = [None if d is None else num_elements_static(d) for d in dims]
    return all(size is not None and 0 < size <= _MOST_ELEMENTS for size in sizes)


def _kind(node: Node) -> tuple[Any, ...]:
    """Equal for nodes that are computed in the same way."""
    inputs = tuple([(s.dtypes[i], s.dims[i]) for s, i in node.inputs])
    kinds: tuple[str, ...] = ()
    if node.op_def.traits.rounding:
        kinds = tuple([kind_of(source) for source, _ in node.inputs])
    attrs = tuple([(name, type(v), _comparable(v)) for name, v in node.attrs.items()])
    return node.op_def.name, node.device, attrs, inputs, kinds


def _comparable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _arranged(
    nodes: Sequence[Node],
    levels: dict[Node, int],
    sets: list[list[Node]],
    known: Callable[[Edge], bool],
    copies: bool,
) -> StackPlan | None:
    member_of: dict[Node, tuple[EqualNodes, int]] = {}
    places = {node: place for place, node in enumerate(nodes)}
    parts: list[tuple[int, int, Node | EqualNodes | Taking]] = []
    for members in sorted(sets, key=lambda m: levels[m[0]]):
        inputs = [_input(members, i, member_of) for i in range(len(members[0].inputs))]
        if all(given.shared for given in inputs):
            continue  # they are one and the same
        apart = [i for i in inputs if not i.shared and i.group is None]
        if not copies and not all(known(e) for given in apart for e in given.edges):
            continue
        rank = None if members[0].op_def.traits.stacked else len(members[0].dims[0] or ())
        group = EqualNodes(members, inputs, rank)
        member_of.update({node: (group, i) for i, node in enumerate(members)})
        parts.append((levels[members[0]], places[members[0]], group))
    if not parts:
        return None
    for node in nodes:
        if node not in member_of:
            taken = _taken(node, member_of)
            alone = node if taken is None else Taking(node, taken)
            parts.append((levels[node], places[node], alone))
    items: list[Item] = []
    for _, _, part in sorted(parts, key=lambda p: p[:2]):
        if not isinstance(part, Node):
            items.append(part)
        elif items and isinstance(items[-1], list):
            items[-1].append(part)
        else:
            items.append([part])
    return StackPlan(items)


def _input(members: list[Node], i: int, member_of: dict[Node, tuple[EqualNodes, int]]) -> Input:
    edges = [node.inputs[i] for node in members]
    source, index = edges[0]
    dims: Any = source.dims[index]
    if all(edge == edges[0] for edge in edges):
        return Input(edges[:1], None, None, dims)
    found = [member_of.get(n) for n, _ in edges]
    groups = {None if f is None else f[0] for f in found}
    if len(groups) > 1 or None in groups:
        return Input(edges, None, None, dims)
    (group,) = groups
    assert group is not None
    order = [f[1] for f in found if f is not None]
    in_order = order == list(range(len(group.nodes)))
    return Input(edges, group, None if in_order else np.array(order), dims)


def _taken(node: Node, member_of: dict[Node, tuple[EqualNodes, int]]) -> list[StackPart] | None:
    """The stack of what the node takes, if that are members of groups but for a few."""
    d = node.op_def
    if d.traits.takes_stack is None or not node.inputs or node.control:
        return None

    def group_of(edge: Edge) -> EqualNodes | None:
        found = member_of.get(edge[0])
        return None if found is None else found[0]

    pieces: list[StackPart] = []
    singles = 0
    for group, run in groupby(node.inputs, group_of):
        edges = list(run)
        places = None
        if group is None:
            singles += len(edges)
        elif [source for source, _ in edges] != group.nodes:
            places = np.array([member_of[source][1] for source, _ in edges])
        pieces.append(StackPart(group, places, edges))
        if len(pieces) > _MOST_PIECES:
            return None
    return pieces if singles < len(node.inputs) // 2 else None


class SideBySide:
    """The nodes of a region, with equal ones together."""

    def __init__(self, nodes: list[Node], known: dict[Edge, Any], ordered: frozenset[Any]) -> None:
        self._nodes = nodes
        self._known = known
        self._ordered = bool(ordered)

    @cached_property
    def _interpreted(self) -> StackPlan | None:
        return plan_of(self._nodes, self._is_constant, copies=True)

    @cached_property
    def _compiled(self) -> StackPlan | None:
        if self._ordered:  # what reads large variables keeps its place
            return None
        return plan_of(self._nodes, self._is_constant, copies=False)

    @property
    def is_worth_it(self) -> bool:
        """Whether some nodes are one call where they are interpreted."""
        return self._interpreted is not None

    def _is_constant(self, edge: Edge) -> bool:
        return not isinstance(self._known.get(edge), (ResourceHandle, type(None)))

    def evaluate(self, evaluation: Evaluation, values: Values) -> None:
        """Evaluate the nodes into ``values``, to compile or to interpret them."""
        plan = self._compiled if evaluation.tracing else self._interpreted
        if plan is None:
            evaluation.evaluate_all(self._nodes, values)
        else:
            evaluate_plan(evaluation, plan, values)


def evaluate_plan(evaluation: Evaluation, plan: StackPlan, values: Values) -> None:
    """Evaluate a plan into ``values``, as `Evaluation.evaluate_all` does single nodes."""
    stacks: dict[EqualNodes, Any] = {}
    for item in plan.items:
        if isinstance(item, list):
            evaluation.evaluate_all(item, values)
        elif isinstance(item, Taking):
            try:
                stack = _joined([_piece(piece, values, stacks) for piece in item.pieces])
                values[item.node] = (_take_stack(evaluation, item.node, stack),)
            except Exception as error:
                _evaluate_singly(evaluation, [item.node], values, error)
        else:
            try:
                stack = _evaluate_group(evaluation, item, values, stacks)
            except Exception as error:
                _evaluate_singly(evaluation, item.nodes, values, error)
                continue
            stacks[item] = stack
            for place, node in enumerate(item.nodes):
                values[node] = Member(stack, place)  # type: ignore[assignment]


def _evaluate_singly(
    evaluation: Evaluation, nodes: list[Node], values: Values, error: Exception
) -> None:
    """Evaluate nodes one by one after a call for all of them, or on their stack, has failed.

    It fails by whatever a kernel of NumPy, JAX or ours raises. Mostly one of the nodes is to blame:
    it fails again, as the graph has it, and its error names it. Where none does, the call was at
    fault, and only this line tells.
    """
    _log.debug("%s and others are evaluated one by one: %r", nodes[0].name, error)
    evaluation.evaluate_all(nodes, values)


def _piece(piece: StackPart, values: Values, stacks: dict[EqualNodes, Any]) -> Any:
    stack = None if piece.group is None else stacks.get(piece.group)
    if stack is None:
        return _stack([values[n][i] for n, i in piece.edges])
    return stack if piece.places is None else stack[piece.places]


def _joined(stacks: list[Any]) -> Any:
    if len(stacks) == 1:
        return stacks[0]
    return jnp.concatenate(stacks) if _has_tracer(stacks) else np.concatenate(stacks)


def _evaluate_group(
    evaluation: Evaluation, group: EqualNodes, values: Values, stacks: dict[EqualNodes, Any]
) -> Any:
    args = []
    for given in group.inputs:
        if given.shared:
            source, i = given.edges[0]
            args.append(values[source][i])
            continue
        stack = None if given.group is None else stacks.get(given.group)
        if stack is None:
            stack = _stack([values[n][i] for n, i in given.edges])
        elif given.places is not None:
            stack = stack[given.places]
        # A new axis in front of those of the result: what has fewer is spread behind it.
        if group.rank is not None and len(given.dims) < group.rank:
            ones = (1,) * (group.rank - len(given.dims))
            stack = stack.reshape((len(group.nodes), *ones, *given.dims))
        args.append(stack)
    first = group.nodes[0]
    result = _of_stacks(evaluation, first, args)
    if result.shape != (len(group.nodes), *(first.dims[0] or ())):
        raise ValueError(f"{first.name}: a stack of results has shape {result.shape}")
    return result


def _of_stacks(evaluation: Evaluation, node: Node, args: list[Any]) -> Any:
    """The results of many nodes that are equal to ``node``, of stacked or shared inputs."""
    p = prepared(node)
    stacked, d = p.op_def.traits.stacked, p.op_def
    if not isinstance(evaluation, Tracing) or not _has_tracer(args):
        form = p.interpret
        if stacked is not None:
            form = bind_attrs(stacked.interpret, d.interpret_params, node.attrs)
        with np.errstate(all="ignore"):
            return as_outputs(form(*args), 1)[0]  # type: ignore[misc]
    form = p.kernel
    if stacked is not None:
        form = bind_attrs(stacked.kernel, d.kernel_params, node.attrs)
    outputs = as_outputs(form(*in_order(node, args)), 1)  # type: ignore[misc]
    evaluation.count(node, outputs, args)
    return outputs[0]


def _take_stack(evaluation: Evaluation, node: Node, stack: Any) -> Any:
    """What ``node`` gives for the elements of a stack."""
    d = node.op_def
    assert d.traits.takes_stack is not None
    if not isinstance(evaluation, Tracing):
        return bind_attrs(d.traits.takes_stack.interpret, d.interpret_params, node.attrs)(stack)  # type: ignore[misc]
    result = bind_attrs(d.traits.takes_stack.kernel, d.kernel_params, node.attrs)(stack)  # type: ignore[misc]
    evaluation.count(node, (result,), (stack,))
    return result


def _has_tracer(values: list[Any]) -> bool:
    return any(isinstance(v, jax.Array) for v in values)


def _stack(values: list[Any]) -> Any:
    if _has_tracer(values):
        return jnp.stack(values)
    arrays = [np.asarray(v) for v in values]
    # Several times as fast as `np.stack`, which looks at each by itself.
    joined = np.concatenate([a.reshape(-1) if a.ndim != 1 else a for a in arrays])
    return joined.reshape((len(arrays), *arrays[0].shape))


__all__ = [
    "LEAST",
    "EqualNodes",
    "SideBySide",
    "StackPlan",
    "Taking",
    "evaluate_plan",
    "is_constant",
    "plan_of",
]
