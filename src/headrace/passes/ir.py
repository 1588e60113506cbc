"""The step graph: the pruned part of a graph that one step needs, in a form passes may change.

In: fetches, feeds and targets of a graph. Out: a `StepGraph` of nodes of its own. Invariant: each
node stands after all that it depends on, nothing else is there, and what leads to a feed is cut
off.

    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     h, unused = tf.exp(x, name="h"), tf.sin(x, name="unused")
    ...     y = tf.negative(h, name="y")
    >>> build_step([y], [x], []).nodes
    [<x:0 = _Feed()>, <h = Exp(x:0:0)>, <y = Neg(h:0)>]
    >>> build_step([y], [h], []).nodes
    [<h:0 = _Feed()>, <y = Neg(h:0:0)>]
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph.wire_precision import carry
from headrace.ops.control import tensor_array_checks, tensor_array_uses
from headrace.ops.core.registry import OpDef, get_op_def

#: Stands for a fed tensor; not an op that programs can make.
FEED = OpDef("_Feed", (), (), {})


class Node:
    """One operation of a step. Passes rewire and replace nodes; the user's graph stays as it is.

    Attributes:
        device: what the graph asks for; after placement the full name of one device.
        colocation: names of operations that it must share a device with.
    """

    __slots__ = (
        "__weakref__",
        "attrs",
        "colocation",
        "control",
        "device",
        "dims",
        "dtypes",
        "inputs",
        "name",
        "op",
        "op_def",
    )

    def __init__(
        self,
        op_def: OpDef,
        name: str,
        inputs: list[Edge],
        attrs: dict[str, Any],
        dtypes: tuple[DType, ...],
        dims: tuple[Dims, ...],
        op: Operation | None,
    ) -> None:
        self.op_def = op_def
        self.name = name
        self.inputs = inputs
        self.control: list[Node] = []
        self.attrs = attrs
        self.dtypes = dtypes
        self.dims = dims
        self.device = op.device if op is not None else ""
        self.colocation: tuple[str, ...] = op.colocation if op is not None else ()
        #: The user's operation this node stems from, for messages.
        self.op = op

    @property
    def type(self) -> str:
        return self.op_def.name

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n.name}:{i}" for n, i in self.inputs)
        return f"<{self.name} = {self.type}({inputs})>"


#: An output of a node.
Edge = tuple[Node, int]


class StepGraph:
    """What one step computes.

    Attributes:
        nodes: every node needed, each after those it depends on.
        feeds: placeholder nodes whose values the caller gives, in the order of the feeds.
        fetches: the values to hand back.
        targets: nodes to run though nothing of theirs is fetched.
    """

    def __init__(
        self, nodes: list[Node], feeds: list[Node], fetches: list[Edge], targets: list[Node]
    ) -> None:
        self.nodes = nodes
        self.feeds = feeds
        self.fetches = fetches
        self.targets = targets

    def roots(self) -> list[Node]:
        """Nodes that must survive every pass: behind fetches, targets and feeds."""
        return list(dict.fromkeys([n for n, _ in self.fetches] + self.targets + self.feeds))

    def consumers(self) -> dict[Node, list[Node]]:
        """For each node, the nodes that take its data."""
        found: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for source in dict.fromkeys(n for n, _ in node.inputs):
                found[source].append(node)
        return found

    def replace(self, mapping: dict[Edge, Edge]) -> None:
        """Make every user of the edges in ``mapping`` use their substitutes."""
        if not mapping:
            return

        # A substitute may be replaced itself by the same pass.
        def final(edge: Edge) -> Edge:
            while edge in mapping:
                edge = mapping[edge]
            return edge

        for node in self.nodes:
            if any(e in mapping for e in node.inputs):
                node.inputs = [final(e) for e in node.inputs]
        self.fetches = [final(e) for e in self.fetches]

    def prune(self) -> None:
        """Drop nodes that no fetch or target needs, and put the rest in order."""
        self.nodes = order(self.roots())


def order(roots: Iterable[Node]) -> list[Node]:
    """``roots`` and all they depend on, dependencies first; else in order of creation."""
    seen: dict[Node, None] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        stack.extend(n for n, _ in node.inputs)
        stack.extend(node.control)
    nodes = list(seen)
    # Kahn's algorithm (1962); the heap makes the order that of creation wherever there is a choice,
    # so that the same program gives the same plan.
    serial: dict[Node, int] = {n: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    pending = []
    for i, node in enumerate(nodes):
        sources = {m for m, _ in node.inputs}
        if node.control:
            sources.update(node.control)
        pending.append(len(sources))
        for source in sources:
            users[serial[source]].append(i)
    rank = [n.op._id if n.op is not None else -1 for n in nodes]
    ready = [(rank[i], i) for i, count in enumerate(pending) if count == 0]
    heapq.heapify(ready)
    result = []
    while ready:
        i = heapq.heappop(ready)[1]
        result.append(nodes[i])
        for user in users[i]:
            pending[user] -= 1
            if pending[user] == 0:
                heapq.heappush(ready, (rank[user], user))
    if len(result) != len(nodes):
        stuck = next(n for n, count in zip(nodes, pending, strict=True) if count)
        raise ValueError(f"The graph has a cycle through operation '{stuck.name}'.")
    return result


def build_step(
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    targets: Sequence[Operation],
    last: Iterable[int] = (),
) -> StepGraph:
    """The step graph for ``fetches`` and ``targets``, cut at ``feeds``.

    ``last``: positions among the fetches of variables that are read when the step has changed them.
    """
    feed_nodes = {t: feed_node(t) for t in feeds}
    # Waiting for a placeholder that is fed is waiting for nothing.
    fed_ops = {t.op for t in feeds if t.op.type == "Placeholder"}
    # Filled further down, when it is known what is needed.
    nodes: dict[Operation, Node] = {}
    taken: dict[Tensor, Node] = {}

    def edge(tensor: Tensor) -> Edge:
        fed = feed_nodes.get(tensor)
        if fed is not None:
            return fed, 0
        node = nodes[tensor.op]
        if node.type == "Switch":  # only one of its outputs has a value: each is a node
            node = taken.get(tensor) or taken.setdefault(tensor, _taken(tensor))
        return node, tensor.value_index

    # What lies behind a feed is not looked at: its value comes from the caller.
    needed: list[Operation] = [t.op for t in fetches if t not in feed_nodes]
    needed += targets
    found: dict[Operation, None] = {}
    while needed:
        op = needed.pop()
        if op in found:
            continue
        found[op] = None
        needed.extend(t.op for t in op.inputs if t not in feed_nodes)
        needed.extend(c for c in op.control_inputs if c not in fed_ops)
    wanted = _array_checks(found)
    nodes.update((op, make_node(op)) for op in found)
    for op, node in nodes.items():
        node.inputs = [edge(t) for t in op.inputs]
        node.control = [nodes[c] for c in op.control_inputs if c not in fed_ops]
    fetched = [edge(t) for t in fetches]
    # They take what the Switch takes, which has been wired by now.
    for tensor, node in taken.items():
        whole = nodes[tensor.op]
        node.inputs, node.control = list(whole.inputs), list(whole.control)
    roots = [nodes[op] for op in targets] + [_check_node(w, edge) for w in wanted]
    result = StepGraph([], list(feed_nodes.values()), fetched, roots)
    result.prune()
    late = [_read_last(result, position) for position in last]
    if any(late):
        result.prune()
    return result


def _taken(tensor: Tensor) -> Node:
    """A node for one output of a Switch, which fails if the other one has the value."""
    node = make_node(tensor.op)
    node.name = tensor.name.replace(":", "/output_")
    node.attrs = {**node.attrs, "_taken": tensor.value_index}
    return node


def _read_last(step: StepGraph, position: int) -> bool:
    """Fetch a variable by a read that waits for all nodes of the step that may change it.

    Returns:
        Whether there are any; else the step stays as it is.
    """
    read = step.fetches[position][0]
    if read.op_def is FEED or read.op is None or read.type != "ReadVariableOp":
        return False
    (handle,) = read.inputs
    changes = [
        node
        for node in step.nodes
        if handle in node.inputs and (node.op_def.effects.writes or node.op_def.lower is not None)
    ]
    if changes:
        late = make_node(read.op)
        late.name = f"{read.name}/last"
        late.inputs, late.control = [handle], changes
        step.fetches[position] = (late, 0)
    return bool(changes)


def _array_checks(ops: Collection[Operation]) -> list[tensor_array_checks.Wanted]:
    """What of the use of TensorArrays has to be checked as the step runs.

    Raises:
        InvalidArgumentError: if an element is certain to be used twice.
    """
    tensor_array_uses.check(ops)
    graph = next(iter(ops)).graph if ops else None
    if graph is None or not tensor_array_uses.is_home(graph):
        return []

    def live(body: FuncGraph, saved: tuple[str, ...]) -> list[Operation]:
        return [n.op for n in function_step(body, saved).nodes if n.op is not None]

    return tensor_array_checks.wanted_checks(graph, ops, live)


def _check_node(wanted: tensor_array_checks.Wanted, edge: Callable[[Tensor], Edge]) -> Node:
    sources = [wanted.own, *wanted.others]
    attrs = {
        "T": tuple(s.tensor.dtype for s in sources),
        "kinds": tuple(s.kind for s in sources),
        "array": wanted.array,
        "writes": wanted.writes,
    }
    definition = get_op_def("TensorArrayUses")
    name = f"{wanted.op.name}/uses"
    node = Node(definition, name, [edge(s.tensor) for s in sources], attrs, (), (), wanted.op)
    node.device = sources[0].tensor.op.device
    return node


def make_node(op: Operation) -> Node:
    """A node for ``op``, not wired yet."""
    outputs = op.outputs
    return Node(
        op.op_def,
        op.name,
        [],
        op.attrs,
        tuple([t.dtype for t in outputs]),
        tuple([t.dims for t in outputs]),
        op,
    )


def feed_node(tensor: Tensor) -> Node:
    """The node that stands for a fed tensor."""
    attrs = carry(tensor.op.attrs, {})
    node = Node(FEED, tensor.name, [], attrs, (tensor.dtype,), (tensor.dims,), tensor.op)
    node.device = ""
    return node


def function_step(function: FuncGraph, extra: tuple[str, ...] = ()) -> StepGraph:
    """The body of a graph function as a step whose feeds are its inputs and captures.

    Its fetches are the outputs, then the inner tensors named in ``extra``. Kept until the function
    changes. Ops with side effects run though nothing uses them.
    """
    steps = _steps(function)
    step = steps.get(extra)
    if step is None:
        step = steps[extra] = make_function_step(function, extra)
    return step


def make_function_step(function: FuncGraph, extra: tuple[str, ...] = ()) -> StepGraph:
    """The same as `function_step`, made anew: for passes that change it."""
    more = [function.get_tensor_by_name(name) for name in extra]
    return build_step([*function.outputs, *more], function.all_inputs, effects_of(function))


def effects_of(function: FuncGraph) -> list[Operation]:
    """The ops of a function that run though nothing uses them."""
    return [
        op
        for op in function._ops
        if op.op_def.effects.writes or op.op_def.effects.external or op.op_def.effects.blocks
    ]


def partial_step(function: FuncGraph, tensors: Sequence[Tensor]) -> StepGraph:
    """Only what some inner tensors of a function need, as a step with the function's feeds."""
    steps = _steps(function)
    key = ("part", *tensors)
    step = steps.get(key)
    if step is None:
        step = steps[key] = build_step(tensors, function.all_inputs, [])
    return step


def version_of(function: FuncGraph) -> tuple[int, int, int]:
    """What changes when the function does; not with the functions that it calls."""
    return len(function._ops), function._mutations, len(function.outputs)


def _steps(function: FuncGraph) -> dict[Any, Any]:
    """The steps made from a function as it is now."""
    version = version_of(function)
    cached = getattr(function, "_step", None)
    if cached is None or cached[0] != version:
        cached = (version, {})
        function._step = cached  # type: ignore[attr-defined]
    return cached[1]
