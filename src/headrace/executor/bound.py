"""Regions bound to the table of a step's values: what stays the same is looked up once.

Of a small step most of the time went into that: how an op is called, where its inputs lie, which
program is meant, whether something is to be compiled. `BoundRegion` is a small region that is
interpreted for ever, as a list of calls; `BoundProgram` calls what is compiled. Both leave a run to
`Region.run` wherever that has to wait, to compile or to tell of an error. `NodeCall` does the same
for a node that is no part of a region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.bodies import bound, only, taking
from headrace.executor.borrowed import is_given_away
from headrace.executor.evaluate import Prepared, prepared
from headrace.executor.interrupts import is_ready
from headrace.executor.policy import NEVER
from headrace.executor.program import MOVED, Program, moved
from headrace.executor.region import MAX_PROGRAMS, Region
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.executor.runnable import Runnable
from headrace.graph.dtypes import resource, variant
from headrace.ops.core.registry import grouped
from headrace.passes.ir import Edge, Node

#: What is called, how to take its inputs, and where its outputs go: one place, or several.
_Call = tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], int | range]


class BoundRegion:
    """A region that is always interpreted and takes a moment; or only reads.

    It may change variables that nothing else in it looks at: all of them, or none if an op fails.

    Args:
        region: one of those that `bound_call` binds so.
        inputs, outputs: slots of the table of the step's values.
    """

    __slots__ = (
        "_calls",
        "_changed_rows",
        "_handed_on",
        "_inputs",
        "_options",
        "_outputs",
        "_reads",
        "_store",
        "_values",
        "_writes",
    )

    def __init__(
        self,
        region: Region,
        store: ResourceStore,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._store = store
        self._options = region.options
        self._changed_rows = region.changed_rows
        places: dict[Edge, int] = {}
        for edge in region.dynamic:
            places.setdefault(edge, len(places))
        self._inputs = [*zip(inputs, map(places.__getitem__, region.dynamic), strict=True)]
        known: dict[int, Any] = {}
        for edge, value in region.handles.items():
            if not isinstance(value, ResourceHandle):
                known[places.setdefault(edge, len(places))] = value
        #: The places where the values of variables stand for their handles.
        self._reads: dict[int, ResourceHandle] = {}
        #: The places that have the new values of variables in the end.
        self._writes: dict[int, ResourceHandle] = {}
        self._calls: list[_Call] = []
        for node in region.nodes:
            for position in node.op_def.effects.reads:
                edge = node.inputs[position]
                self._reads[places.setdefault(edge, len(places))] = region.handles[edge]
            if node.op_def.effects.writes:
                edge = node.inputs[node.op_def.effects.writes[0]]
                place = places.setdefault(edge, len(places))
                self._writes[place] = region.handles[edge]
                take = taking([places[edge] for edge in node.inputs])
                self._calls.append((partial(_updated, prepared(node)), take, place))
            elif node.op_def.name == "ReadVariableOp":
                places[node, 0] = places[node.inputs[0]]
            elif not node.op_def.makes_handle:
                first = len(places)
                made = range(first, first + len(node.dtypes))
                places.update(((node, i), place) for i, place in enumerate(made))
                take = taking([places[edge] for edge in node.inputs])
                self._calls.append((bound(node), take, first if len(made) == 1 else made))
        self._outputs = [*zip(outputs, map(places.__getitem__, region.outputs), strict=True)]
        given = {place for _, place in self._outputs}
        #: Variables whose values others get as they are: programs, perhaps, for which `moved` is.
        self._handed_on = {p: h for p, h in self._reads.items() if p in given}
        self._values = [known.get(i) for i in range(1 + max(places.values(), default=0))]

    def run(self, table: list[Any]) -> bool:
        """Run once, from the table to the table.

        Returns:
            Whether it could. If not, nothing has happened: state is being changed or computed, or
            an op has failed, of which the region itself knows what to say.
        """
        values = self._values.copy()
        for slot, place in self._inputs:
            if not _put(values, place, table[slot]):
                return False
        store = self._store
        # The lock keeps others from changing in place what is read.
        with store.lock:
            if store.claims.writers or (self._writes and store.claims.replaced):
                return False
            for place, handle in self._reads.items():
                if not _put(values, place, store.get(handle)):
                    return False
            for place, handle in self._handed_on.items():
                value: Any = values[place]
                if value.nbytes >= MOVED and store.get(handle) is value:
                    with self._options.scope():
                        values[place] = np.asarray(moved(store, handle, value))
            try:
                for function, take, made in self._calls:
                    result = function(*take(values))
                    if type(made) is int:
                        values[made] = result if type(result) is np.ndarray else only(result)
                    else:
                        assert isinstance(made, range)
                        for place, value in zip(made, result, strict=True):
                            values[place] = value
            except Exception:  # the region meets it again, and tells
                return False
            if self._writes:
                rows = self._changed_rows.of([values[place] for _, place in self._inputs])
                for place, handle in self._writes.items():
                    store.put(handle, values[place], rows.get(handle))
        for slot, place in self._outputs:
            table[slot] = values[place]
        return True

    #: As `host.HostCall` has it, for steps without arrays on devices: here they make no difference.
    run_direct = run


class _Ready(NamedTuple):
    """A program that is called without more ado.

    Attributes:
        shapes: of what comes in.
        function: takes state, then what comes in.
    """

    shapes: list[tuple[int, ...]]
    program: Program
    function: Callable[..., Any]


class BoundProgram:
    """A region that may run as a program which is compiled and calls for no wait.

    Args:
        region: one of those that `bound_call` binds so.
        inputs, outputs: slots of the table of the step's values.
    """

    __slots__ = ("_inputs", "_outputs", "_ready", "_region", "_small", "_small_for", "_store")

    def __init__(
        self,
        region: Region,
        store: ResourceStore,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._region = region
        #: What runs in place of programs where these would be slower.
        self._small: BoundRegion | None = None
        #: The shapes of what comes in for which that is so; None if the region is no list of calls.
        self._small_for: set[tuple[tuple[int, ...], ...]] | None = set()
        self._store = store
        self._inputs = inputs
        self._outputs = outputs
        #: The last program that has run, if nothing else belongs to a call of it.
        self._ready: _Ready | None = None

    def run(self, table: list[Any]) -> bool:
        """Run once, from the table to the table; returns whether there is such a program."""
        values = [table[slot] for slot in self._inputs]
        if self._small_for and tuple([v.shape for v in values]) in self._small_for:
            assert self._small is not None
            return self._small.run(table)
        with self._store.lock:
            outputs = self._called(values)
        if outputs is None:
            self._find_small(values)
            return False
        for slot, value in zip(self._outputs, outputs, strict=True):
            table[slot] = value
        return True

    run_direct = run

    def _called(self, values: list[Any]) -> list[Any] | None:
        """What the program gives, None if there is none; `Region.run_quickly` without its ifs."""
        store, region, ready = self._store, self._region, self._ready
        claims = store.claims
        is_free = not (claims.writers or claims.replaced or claims.lent)
        if ready is None or not is_free or ready.shapes != [v.shape for v in values]:
            return self._called_first(values)
        args = [*store.get_all(region.read_keys), *values]
        for value in args:
            if value is None:  # a variable has lost its value
                return None
        program = ready.program
        region.waiting.runs = program.last_run = region.waiting.runs + 1
        with region.options.scope():
            try:
                outputs: list[Any]
                outputs, new_state, _, region.pending = ready.function(*args)
            except Exception as error:
                region.raise_explained(error, program, store, values, args, [])
        if new_state:
            store.put_all(region.written, new_state, region.changed_rows.of(values))
        return outputs

    def _called_first(self, values: list[Any]) -> list[Any] | None:
        """A run of a program that was not the last one, or of which more is to be seen to."""
        region = self._region
        program = region.quick_program(values)
        if program is None:
            return None
        outputs = region.run_quickly(program, self._store, values, None)
        more = region.early.checks or region.spare or region.has_loops
        if not (more or program.recycled.positions):
            self._ready = _Ready([v.shape for v in values], program, program.function)
        return outputs

    def _find_small(self, values: Sequence[Any]) -> None:
        """See whether an earlier run has shown that NumPy is faster at such shapes."""
        region = self._region
        if self._small_for is None or not region.is_left_to_numpy(values):
            return
        if self._small is None:
            if not (region.touched.is_empty and _is_list_of_calls(region)):
                self._small_for = None
                return
            self._small = BoundRegion(region, self._store, self._inputs, self._outputs)
        if len(self._small_for) == MAX_PROGRAMS:
            self._small_for.clear()
        self._small_for.add(tuple([v.shape for v in values]))


class NodeCall:
    """A node that NumPy computes by itself: it is faster, or the values tell the result's size.

    Args:
        inputs, outputs: slots of the table of the step's values.
    """

    __slots__ = ("_function", "_inputs", "_outputs")

    def __init__(self, node: Node, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self._function = bound(node)
        self._inputs = inputs
        self._outputs = outputs

    def run(self, table: list[Any]) -> bool:
        """Run once; False if it could not, as `BoundRegion.run`."""
        values: list[Any] = [None] * len(self._inputs)
        for place, slot in enumerate(self._inputs):
            if not _put(values, place, table[slot]):
                return False
        try:
            result = self._function(*values)
        except Exception:  # `HostRunner.run_node` meets it again, and tells
            return False
        if len(self._outputs) == 1:
            table[self._outputs[0]] = only(result)
        else:
            for slot, value in zip(self._outputs, result, strict=True):
                table[slot] = value
        return True

    run_direct = run


def node_call(node: Node, inputs: Sequence[int], outputs: Sequence[int]) -> NodeCall | None:
    """What runs a node that is a unit of its own; None if it takes more than a call of NumPy."""
    d = node.op_def
    if d.host is not None or d.makes_handle or d.traits.device_arrays or not d.effects.pure:
        return None
    ends = {*node.dtypes, *(source.dtypes[i] for source, i in node.inputs)}
    if ends & {resource, variant} or prepared(node).interpret is None:
        return None
    return NodeCall(node, inputs, outputs)


def _put(values: list[Any], place: int, value: Any) -> bool:
    """Give an array its place as NumPy's; False if it is not there yet."""
    if type(value) is np.ndarray:
        values[place] = value
        return True
    if value is None or not is_ready(value):
        return False
    values[place] = np.asarray(value)
    return True


def bound_call(
    region: Runnable, store: ResourceStore, inputs: Sequence[int], outputs: Sequence[int]
) -> BoundRegion | BoundProgram | None:
    """What runs a region in a step that nobody watches, wherever it can; None if it never can.

    Args:
        inputs, outputs: slots of the table of the step's values.
    """
    if type(region) is not Region or region.null is not None:
        return None
    if region.options.device is not None or region.takes_lists or region.static:
        return None
    if region.reads_only is not None or _stays_small(region):
        return BoundRegion(region, store, inputs, outputs)
    return None if region.waiting.first >= NEVER else BoundProgram(region, store, inputs, outputs)


def _stays_small(region: Region) -> bool:
    """Whether the region is always interpreted, in a moment, and computes with what it reads."""
    return region.waiting.first >= NEVER and region.is_brief and _is_list_of_calls(region)


def _is_list_of_calls(region: Region) -> bool:
    """Whether the region can run as one, one node after another: `BoundRegion`."""
    return (
        not region.together.is_worth_it
        and all(node.dtypes[i] is not variant for node, i in region.outputs)
        and all(_is_bindable(node, region) for node in region.nodes)
    )


def _is_bindable(node: Node, region: Region) -> bool:
    d, effects = node.op_def, node.op_def.effects
    if d.makes_handle:
        return d.provide is None
    for position, edge in enumerate(node.inputs):
        if edge[0].dtypes[edge[1]] is resource and not (
            position in (*effects.reads, *effects.writes)
            and isinstance(region.handles.get(edge), ResourceHandle)
        ):
            return False
    if effects.random or (effects.writes and not _updates_only(node, region)):
        return False
    return prepared(node).interpret is not None


def _updates_only(node: Node, region: Region) -> bool:
    """Whether the node changes one variable, gives nothing, and no other node has to do with it."""
    writes = node.op_def.effects.writes
    if len(writes) != 1 or node.dtypes:
        return False
    handle = region.handles[node.inputs[writes[0]]]
    used = [region.handles.get(edge) for other in region.nodes for edge in other.inputs]
    return sum(isinstance(one, ResourceHandle) and one == handle for one in used) == 1


def _updated(p: Prepared, *args: Any) -> np.ndarray[Any, Any]:
    """The new value of the variable that an op changes, in memory that only this has."""
    assert p.interpret is not None
    result = p.interpret(*(args if p.groups is None else grouped(args, p.groups)))
    value = result[0] if isinstance(result, (tuple, list)) else result
    return value if is_given_away(value) else np.array(value)


__all__ = ["BoundProgram", "BoundRegion", "NodeCall", "bound_call", "node_call"]
