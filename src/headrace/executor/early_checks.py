"""Checks on data that are made before a program runs, so that it may change variables in place.

What a check looks at comes from outside the program, or is a view of what does: a few ops that cut
and reshape numbers, which NumPy runs in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.executor.evaluate import Values, prepared, with_op
from headrace.executor.interpreting import Interpreting
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.executor.touched import is_integer_view
from headrace.graph.dtypes import resource
from headrace.graph.tensor import Dims
from headrace.ops.core.registry import EarlyCheck
from headrace.passes.ir import Edge, Node

#: Stands for the shape of a variable, to see whether a limit depends on anything else.
_ANY_DIMS = (1,) * 8
#: A longer chain of views is left to a program.
_MOST_VIEWS = 16


class Check:
    """The early check of one node of a region.

    Args:
        handles: values of edges, the handles of variables among them.
        views: nodes of the region that make what is tested, in order, from what comes in.
        bound: where the way in which they are made tells it: what all indices are below.
    """

    def __init__(
        self,
        node: Node,
        handles: Mapping[Edge, Any],
        views: Sequence[Node],
        bound: int | None = None,
    ) -> None:
        found = node.op_def.early_check
        assert found is not None
        self.node = node
        self.rule: EarlyCheck = found
        self.views = list(views)
        self.bound = bound
        self.edges = [node.inputs[i] for i in found.inputs]
        self.dims: list[Any] = [n.dims[i] for n, i in node.inputs]
        known = {i: handles[e] for i, e in enumerate(node.inputs) if e in handles}
        self._handles = {i: h for i, h in known.items() if isinstance(h, ResourceHandle)}
        self._stated = {i: _declared(node.inputs[i]) for i in self._handles}
        #: Whether the limit is certain to be known once the variables have values.
        self.usable = self._limit(dict.fromkeys(self._handles, _ANY_DIMS)) is not None
        #: Whether nothing that it looks at changes: what holds once holds ever after.
        self.is_fixed = not (views or self._handles) and all(e in handles for e in self.edges)

    def _limit(self, variables: Mapping[int, Any]) -> Any:
        """What the shapes tell the test, given those of the variables among the inputs."""
        dims = list(self.dims)
        for i, shape in variables.items():
            dims[i] = shape
        try:
            return self.rule.limit(self.node.attrs, dims)
        except (TypeError, IndexError):  # a dimension that is needed is not known
            return None

    def limit(self, store: ResourceStore) -> Any:
        """The limit now.

        A variable without a value gets one in the region, of the shape that it states; else, as
        where None is returned, the region tells that there is none.
        """
        values = {i: store.get(h) for i, h in self._handles.items()}
        shapes = {i: self._stated[i] if v is None else v.shape for i, v in values.items()}
        return None if None in shapes.values() else self._limit(shapes)

    def lasts(self, changing: set[Any]) -> bool:
        """Whether the limit stays as it is while nodes assign these variables."""
        if changing.isdisjoint(self._handles.values()):
            return True
        return None not in self._stated.values() and self._limit(self._stated) is not None

    def is_within(self, shape: Dims) -> bool:
        """Whether indices below the bound are rows of a variable of this shape."""
        limit = None if shape is None else self._limit({0: shape})
        return limit is not None and self.bound is not None and self.bound <= limit

    def holds(self, limit: Any) -> bool:
        """Whether nothing has to be tested.

        Raises:
            InvalidArgumentError: if the variable has lost rows since the graph was built.
        """
        if self.bound is None:
            return False
        if self.bound > limit:
            text = f"Indices up to {self.bound - 1} may come, but there are only {limit} rows now."
            raise InvalidArgumentError(None, self.node.op, text)
        return True

    def test(self, limit: Any, values: Sequence[Any]) -> None:
        """Raise the op's error if the values do not hold."""
        try:
            self.rule.test(limit, self.node.attrs, *values)
        except OpError as error:
            raise with_op(error, self.node.op) from None


#: Elements that were found to be rows of a variable.
Covered = tuple[Edge, ResourceHandle]


def covered_by(node: Node, handles: Mapping[Edge, Any]) -> Covered | None:
    """What a check of a node says: where the elements come from, and whose rows they are.

    None if it does not test that integers are rows of a variable.
    """
    rule = node.op_def.early_check
    if rule is None or not rule.is_range:
        return None
    table = node.inputs[0]
    while table[0].op_def.traits.hands_on == "value" and table not in handles:
        table = table[0].inputs[0]
    handle = handles.get(table)
    # A trial with a number of rows that is no other size: if that is the limit, rows are meant.
    rows, others = (7, *_ANY_DIMS), [_ANY_DIMS] * (len(node.inputs) - 1)
    if not isinstance(handle, ResourceHandle) or rule.limit(node.attrs, [rows, *others]) != 7:
        return None
    return _root(node.inputs[rule.inputs[0]]), handle


def reshaped(nodes: Sequence[Node], handles: Mapping[Edge, Any]) -> set[Any]:
    """The variables whose shape the nodes may change."""
    changing = [n for n in nodes if n.type == "AssignVariableOp" or n.op_def.lower is not None]
    return {handles[e] for n in changing for e in n.inputs if e in handles and _is_handle(e)}


def _is_handle(edge: Edge) -> bool:
    return edge[0].dtypes[edge[1]] is resource


class EarlyChecks:
    """The early checks of one region.

    Args:
        nodes: those of the region.
        given: edges that come in.
        known: edges whose values are known, handles among them.
        follows: whether to follow views; else only values that come in are checked early.
        trusted: what has been found before the region runs.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        given: Iterable[Edge],
        known: Mapping[Edge, Any],
        follows: bool = False,
        trusted: Iterable[Covered] = (),
    ) -> None:
        self._inside = set(nodes)
        self._given = set(given)
        self._known = known
        self._follows = follows
        self._covered = set(trusted)
        self.checks: list[Check] = []
        #: Nodes whose own checks say nothing new.
        self.nodes: set[Node] = set()
        if any(n.op_def.early_check is not None for n in nodes):
            self._find(nodes)

    def _find(self, nodes: Sequence[Node]) -> None:
        changing = reshaped(nodes, self._known)
        for node in nodes:
            covered = covered_by(node, self._known)
            # What holds for the rows that there are may not hold for those after an assignment.
            if covered is not None and covered[1] in changing:
                covered = None
            # If an earlier check looks at the same elements and rows, that one is enough.
            if covered not in self._covered:
                check = self._proven(node) or self._of(node)
                if check is None or not check.lasts(changing):
                    continue
                self.checks.append(check)
                if covered is not None:
                    self._covered.add(covered)
            self.nodes.add(node)

    def _proven(self, node: Node) -> Check | None:
        """The check of a node whose indices are rows by the way they are made."""
        rule = node.op_def.early_check
        if rule is None or not (rule.is_range and self._follows):
            return None
        bound = _bound(node.inputs[rule.inputs[0]], self._known)
        if bound is None:
            return None
        check = Check(node, self._known, [], bound)
        return check if check.usable and check.is_within(_declared(node.inputs[0])) else None

    def _of(self, node: Node) -> Check | None:
        """The check of a node, if it can be made early."""
        rule = node.op_def.early_check
        if rule is None or not (rule.is_range or self._follows):
            return None
        views: dict[Node, None] = {}
        if not all(self._reaches(node.inputs[i], views) for i in rule.inputs):
            return None
        check = Check(node, self._known, list(views))
        return check if check.usable else None

    def _reaches(self, edge: Edge, views: dict[Node, None]) -> bool:
        """Whether an edge comes in or is a view of what does; adds the views, sources first."""
        if edge in self._given or edge in self._known:
            return not _is_handle(edge)
        node = edge[0]
        if node in views:
            return True
        if not self._follows or node not in self._inside:
            return False
        whole = is_integer_view(node) and not node.control
        if not whole or not all(self._reaches(e, views) for e in node.inputs):
            return False
        views[node] = None
        return len(views) <= _MOST_VIEWS and prepared(node).interpret is not None

    def make_checks(
        self, store: ResourceStore, host: Any, given: Iterable[tuple[Edge, Any]]
    ) -> None:
        """Make the checks.

        Args:
            given: the values of the edges that come in.

        Raises:
            InvalidArgumentError: of the first that does not hold.
        """
        values: Values = {}
        arrays = dict(given)
        # Variables that have as many rows are often looked up by the same indices.
        tested: set[tuple[Edge, Any]] = set()
        for check in self.checks:
            limit = check.limit(store)
            if limit is None or check.holds(limit):
                continue
            if check.rule.is_range:
                if (check.edges[0], limit) in tested:
                    continue
                tested.add((check.edges[0], limit))
            if check.views:
                self._evaluate(check.views, arrays, values, store, host)
            check.test(limit, [self._value(e, arrays, values) for e in check.edges])
            # It has held for good: later runs go without it.
            if check.is_fixed:
                self.checks = [c for c in self.checks if c is not check]

    def _value(self, edge: Edge, arrays: Mapping[Edge, Any], values: Values) -> Any:
        if edge in arrays:
            return np.asarray(arrays[edge])
        if edge in self._known:
            return np.asarray(self._known[edge])
        return values[edge[0]][edge[1]]

    def _evaluate(
        self,
        views: Sequence[Node],
        arrays: Mapping[Edge, Any],
        values: Values,
        store: ResourceStore,
        host: Any,
    ) -> None:
        for node in views:
            for source, i in node.inputs:
                if source not in self._inside:
                    row: Any = values.setdefault(source, [None] * max(1, len(source.dtypes)))
                    row[i] = self._value((source, i), arrays, values)
        Interpreting(store, host).evaluate_all(views, values)


def maker_of(node: Node) -> Node:
    """The node that makes the handle which ``node`` gives or hands on."""
    while not node.op_def.makes_handle and node.inputs:
        node = node.inputs[0][0]
    return node


def _declared(table: Edge) -> Dims:
    """The shape of a variable as its handle's maker states it."""
    shape = maker_of(table[0]).attrs.get("shape")
    return None if shape is None else shape.as_tuple


def _bound(edge: Edge, known: Mapping[Edge, Any], steps: int = _MOST_VIEWS) -> int | None:
    """A number that all elements of an edge are below, if none is negative and that is certain."""
    node, index = edge
    if edge in known:
        value = known[edge]
        if isinstance(value, ResourceHandle) or np.asarray(value).dtype.kind not in "iu":
            return None
        array = np.asarray(value)
        return int(array.max()) + 1 if array.size and array.min() >= 0 else None
    if steps == 0 or node.dtypes[index].np_dtype.kind not in "iu":
        return None
    if node.type == "RandomUniformInt":
        low, high = _bound(node.inputs[1], known, 0), _bound(node.inputs[2], known, 0)
        return None if low is None or high is None else high - 1
    if node.type == "FloorMod":
        divisor = _bound(node.inputs[1], known, 0)
        least = 0 if divisor is None else int(np.min(known[node.inputs[1]]))
        return divisor - 1 if divisor is not None and least > 0 else None
    parts = node.op_def.traits.elements_of
    if parts is None:
        return None
    found = [_bound(e, known, steps - 1) for e in node.inputs[parts]]
    return None if None in found else max(b for b in found if b is not None)


def _hands_on(node: Node) -> bool:
    """Whether a node gives the elements that it gets, all and unchanged."""
    d = node.op_def
    return d.traits.is_view and d.effects.pure and not node.control


def _root(edge: Edge) -> Edge:
    """Where the elements of an edge come from."""
    while _hands_on(edge[0]):
        edge = edge[0].inputs[0]
    return edge


__all__ = ["Check", "Covered", "EarlyChecks", "covered_by", "maker_of", "reshaped"]
