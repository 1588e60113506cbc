"""Large variables change in place: what may fail runs before the program that changes them.

XLA changes a variable in place when it may reuse the memory of the old value. A program with checks
needs that value, in case one does not hold. So a region that changes large variables is parted:
*first* what may fail, with all that it needs, then *the rest*, which cannot fail any more. Both
belong to one unit; nothing is written unless both have run. A check of indices alone needs no
program (`early_checks`), and what a gather has checked holds for the scatter of its gradient.

Left over are checks of what the region itself makes of a variable it has changed, and those inside
loops and branches that write. They are made by a program of their own (`Program.checker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.executor.claims import held
from headrace.executor.compiling import Compilation
from headrace.executor.early_checks import (
    Covered,
    EarlyChecks,
    covered_by,
    maker_of,
    reshaped,
)
from headrace.executor.evaluate import flat_static
from headrace.executor.interrupts import Watch
from headrace.executor.null import is_null
from headrace.executor.program import InPlace
from headrace.executor.region import Region
from headrace.executor.region_options import RegionOptions, label_of
from headrace.executor.resources import ResourceHandle, ResourceStore, StateKey, Transaction
from headrace.executor.runnable import Runnable
from headrace.executor.step_context import StepContext
from headrace.executor.touched import RegionState, functions_in, has_loops
from headrace.passes.ir import Edge, Node, function_step
from headrace.placement.cost import state_bytes

#: Bytes of the variables that a region changes from which on they are large: copying them takes
#: longer than to call a second program.
LARGE_STATE = 1 << 20
#: Smaller variables among them may be changed wherever it suits.
_LARGE_VARIABLE = 64 << 10


class Access:
    """What each node of a list does to state, and what it has to run after.

    Attributes:
        large: large variables that the nodes change and use the old values of.
        changed_in_part: those of them of which a node changes a part only, rows as a rule.
        changed_whole: the others.
    """

    def __init__(self, nodes: Sequence[Node], handles: Mapping[Edge, Any]) -> None:
        self.nodes = list(nodes)
        self._handles = dict(handles)
        self._of: dict[Node, RegionState] = {}
        self._before: dict[Node, set[Node]] | None = None
        self.large = self.changed_in_part = self.changed_whole = frozenset[StateKey]()
        writers = [n for n in nodes if n.op_def.effects.writes or n.op_def.lower is not None]
        written = {k for n in writers for k in self.of(n).writes}
        if not written:
            return
        sizes = _sizes(handles)
        large = {k for k in written if sizes.get(k, 0.0) >= _LARGE_VARIABLE}
        # What is overwritten whole, without a look at the old value, is no change in place.
        large &= {k for n in nodes for k in self.of(n).reads}
        if sum(sizes[k] for k in large) >= LARGE_STATE:
            self.large = frozenset(large)
            in_part = {k for n in writers if _changes_in_part(n) for k in self.of(n).writes}
            self.changed_in_part = self.large & in_part
            self.changed_whole = self.large - in_part

    def of(self, node: Node) -> RegionState:
        """What one node does."""
        state = self._of.get(node)
        if state is None:
            effects = node.op_def.effects
            plain = effects.pure and not effects.checks and node.op_def.lower is None
            state = _NOTHING if plain else RegionState([node], self._handles, set())
            self._of[node] = state
        return state

    @property
    def before(self) -> dict[Node, set[Node]]:
        """For each node the nodes of the list that it takes something from, waits for, or follows
        in the use of a variable."""
        if self._before is None:
            self._before = self._order()
        return self._before

    def _order(self) -> dict[Node, set[Node]]:
        inside = set(self.nodes)
        last_write: dict[StateKey, Node] = {}
        readers: dict[StateKey, list[Node]] = {}
        found = {}
        for node in self.nodes:
            sources = {source for source, _ in node.inputs} | set(node.control)
            state = self.of(node)
            # Whoever uses a variable follows the last change of it ...
            for key in (*state.reads, *state.writes):
                if key in last_write:
                    sources.add(last_write[key])
            # ... and a change follows all that reads the value before it.
            for key in state.writes:
                sources.update(readers.pop(key, ()))
                last_write[key] = node
            for key in state.reads:
                if key not in state.writes:
                    readers.setdefault(key, []).append(node)
            found[node] = (sources & inside) - {node}
        return found

    def after_changes(self) -> set[Node]:
        """The nodes that change large variables, and all that depends on them."""
        found: set[Node] = set()
        for node in self.nodes:
            changes = not self.large.isdisjoint(self.of(node).writes)
            if changes or not found.isdisjoint(self.before[node]):
                found.add(node)
        return found

    def put_changes_last(self) -> None:
        """Order the nodes such that what may read large variables before their change does."""
        after = self.after_changes()
        self.nodes = sorted(self.nodes, key=after.__contains__)

    def needed_by(self, wanted: Iterable[Node]) -> set[Node]:
        """The wanted nodes and all that they depend on."""
        found: set[Node] = set()
        stack = list(wanted)
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack += self.before[node]
        return found


#: What most nodes do.
_NOTHING = RegionState([], {}, set())


def _sizes(handles: Mapping[Edge, Any]) -> dict[StateKey, float]:
    """The bytes of each variable; of those whose shape is not known, infinity."""
    found: dict[StateKey, float] = {}
    for (node, _), handle in handles.items():
        if isinstance(handle, ResourceHandle):
            maker = maker_of(node)
            shape = maker.attrs.get("shape")
            known = shape is not None and shape.as_tuple is not None
            found[handle] = state_bytes(maker) if known else float("inf")
    return found


def _changes_in_part(node: Node) -> bool:
    """Whether a node changes a part of a variable, rather than all of it: such updates check."""
    effects = node.op_def.effects
    if effects.writes and effects.checks:
        return True
    if node.op_def.lower is None:
        return False
    inner = (n for body in functions_in(node) for n in function_step(body).nodes)
    return any(map(_changes_in_part, inner))


def waiting_changes(
    nodes: Sequence[Node],
    known: Mapping[Edge, Any],
    stage: Mapping[Node, int],
    is_host: Callable[[Node], bool],
) -> tuple[set[Node], int]:
    """Nodes that had better wait for a later stage, and that stage.

    What may fail after a change in place would need the old value. So changes of large variables,
    and what depends on them, come after host ops, and after other devices.

    Args:
        stage: that of each node so far.
    """
    access = Access(nodes, known)
    if not access.large:
        return set(), 0
    after = access.after_changes()
    changes = [n for n in after if not access.large.isdisjoint(access.of(n).writes)]
    devices = {n.device for n in changes}
    least = 0
    for node in nodes:
        if node in after:
            continue  # it moves with the changes
        apart = is_host(node) or devices != {node.device}
        state = access.of(node)
        reads = any(isinstance(k, ResourceHandle) for k in state.reads)
        # A read fails where the variable has no value. What may fail within a region of the same
        # device can share the stage of the changes: `make_region` parts it there.
        if is_host(node) or state.may_fail or reads:
            least = max(least, stage[node] + apart)
    return (after, least) if any(stage[n] < least for n in changes) else (set(), 0)


def _settled(nodes: Sequence[Node], given: Iterable[Edge]) -> set[Edge]:
    """The edges whose values are known while a program is traced: shapes, and what follows."""
    # Nodes come in order: what a node takes has been looked at before it.
    found = set(given)
    for node in nodes:
        d = node.op_def
        folds = d.interpret is not None and d.effects.pure and found.issuperset(node.inputs)
        if d.shape_only or folds:
            found.update((node, i) for i in range(len(node.dtypes)))
    return found


class _Parting:
    """How to part the nodes of a region: ``first`` and ``rest``, and nodes that both have."""

    def __init__(
        self,
        access: Access,
        dynamic: Sequence[Edge],
        static: Sequence[Edge],
        handles: Mapping[Edge, Any],
    ) -> None:
        self.nodes = access.nodes
        self._access = access
        after = access.after_changes()
        early = EarlyChecks(self.nodes, [*dynamic, *static], handles, follows=True).nodes
        settled = _settled(self.nodes, [*static, *handles])
        wanted: set[Node] = set()
        inside = set(self.nodes)
        for node in self.nodes:
            state = access.of(node)
            # Loops count as well: a step may be given up while they run.
            if not (has_loops([node]) or (state.may_fail and node not in early)):
                continue
            looks_at = node.op_def.checked_inputs(node.attrs)
            edges = node.inputs if looks_at is None else [node.inputs[i] for i in looks_at]
            if settled.issuperset(edges) and not functions_in(node):
                continue  # found out while the program is traced
            if node not in after:
                wanted.add(node)
            elif node.op_def.early_check is not None:
                # The change itself checks, early: what it looks at must be there by then.
                sources = (node.inputs[i][0] for i in node.op_def.early_check.inputs)
                wanted.update(s for s in sources if s in inside and s not in after)
        self.first_nodes = access.needed_by(wanted)
        rest = set(self.nodes) - self.first_nodes
        self.both = self._in_both(rest) if self.first_nodes else set()
        self.first = [n for n in self.nodes if n in self.first_nodes]
        self.rest = [n for n in self.nodes if n in rest or n in self.both]

    def _in_both(self, rest: set[Node]) -> set[Node]:
        """Nodes of the first part that the rest computes again: what XLA would copy to hand it
        over, and what has to be known before compiling."""
        found: set[Node] = set()
        # From the rest backwards, with the inputs of each node whose values it is compiled for.
        stack = [(n, self._static(n)) for n in rest]
        visited = set()
        while stack:
            node, static = stack.pop()
            for edge in node.inputs:
                source = edge[0]
                if source not in self.first_nodes or (source, edge in static) in visited:
                    continue
                if edge in static:
                    # Known while the rest is traced: by its shape, or from inputs known then.
                    if source.op_def.shape_only:
                        needs: set[Edge] = set()
                    elif source.op_def.interpret is not None and source.op_def.effects.pure:
                        needs = set(source.inputs)
                    else:
                        continue
                elif self._hands_on(source):
                    needs = set()
                else:
                    continue
                visited.add((source, edge in static))
                found.add(source)
                stack.append((source, needs | self._static(source)))
        return found

    def _static(self, node: Node) -> set[Edge]:
        return {node.inputs[i] for i in flat_static(node)}

    def _hands_on(self, node: Node) -> bool:
        """Whether a node gives a large variable as it is."""
        while node.op_def.traits.is_view and not node.control:
            if node.op_def.effects.reads:
                return not self._access.large.isdisjoint(self._access.of(node).reads)
            node = node.inputs[0][0]
        return False

    def trusted(self, handles: Mapping[Edge, Any]) -> frozenset[Covered]:
        """What the first part has checked once it has run."""
        found = {covered_by(n, handles) for n in self.first}
        changing = reshaped(self.nodes, handles)
        return frozenset(c for c in found if c is not None and c[1] not in changing)


Inputs = Callable[[Sequence[Node], set[Node]], tuple[list[Edge], list[Edge], dict[Edge, Any]]]


def make_region(
    nodes: list[Node], outputs: list[Edge], inputs: Inputs, options: RegionOptions
) -> Runnable:
    """A region, in two parts if it may fail and changes large variables.

    Args:
        inputs: ``inputs(nodes, own)``: the dynamic, static and known edges that come into them.
    """
    dynamic, static, handles = inputs(nodes, set(nodes))
    if is_null(nodes[0].device):
        return Region(nodes, dynamic, static, outputs, handles, options)
    access = Access(nodes, handles)
    if not access.large:
        return Region(nodes, dynamic, static, outputs, handles, options, may_part=True)
    access.put_changes_last()
    nodes = access.nodes
    parting = _Parting(access, dynamic, static, handles)
    if not parting.first:
        in_place = InPlace(
            is_large=True,
            changed_in_part=access.changed_in_part,
            changed_whole=access.changed_whole,
        )
        return Region(nodes, dynamic, static, outputs, handles, options, in_place, may_part=True)
    # What crosses from the first to the rest are further outputs of the first.
    rest_dynamic, rest_static, rest_handles = inputs(parting.rest, set(parting.rest))
    wanted = {*outputs, *rest_dynamic, *rest_static}
    rest_own = set(parting.rest) - parting.both
    first_dynamic, first_static, first_handles = inputs(parting.first, parting.first_nodes)
    first = Region(
        parting.first,
        first_dynamic,
        first_static,
        [(n, i) for n in parting.first for i in range(len(n.dtypes)) if (n, i) in wanted],
        first_handles,
        options,
        may_part=True,
    )
    rest = Region(
        parting.rest,
        rest_dynamic,
        rest_static,
        [e for e in outputs if e[0] in rest_own],
        rest_handles,
        options,
        InPlace(True, parting.trusted(handles), access.changed_in_part, access.changed_whole),
        may_part=True,
    )
    return PartedRegion(nodes, dynamic, static, outputs, first, rest)


class PartedRegion:
    """Two regions that run one after another; what they write reaches the store together."""

    def __init__(
        self,
        nodes: list[Node],
        dynamic: list[Edge],
        static: list[Edge],
        outputs: list[Edge],
        first: Region,
        rest: Region,
    ) -> None:
        self.nodes = nodes
        self.dynamic = dynamic
        self.static = static
        self.outputs = outputs
        self.first = first
        self.rest = rest
        self.written = [*first.written, *rest.written]
        self._edges = [*dynamic, *static]
        self.keep_old(False)

    #: It changes variables.
    is_idle = False
    #: A check may not hold.
    can_fail = True

    def keep_old(self, keeps_old: bool) -> None:
        """As for a region. What the first part writes is not final before the rest has run."""
        self.first.keep_old(keeps_old or bool(self.first.written))
        self.rest.keep_old(keeps_old)

    def run(
        self,
        store: ResourceStore,
        dynamic: Sequence[Any],
        static: Sequence[Any],
        context: StepContext | None = None,
    ) -> list[Any]:
        """Run once, as a region does."""
        values = dict(zip(self._edges, (*dynamic, *static), strict=True))
        with held(store, (), self.written, Watch(store, context).check):
            # What the first writes must not be seen if the rest fails: a transaction holds it back.
            if not self.first.written:
                self._run_parts(store, values, context)
            else:
                transaction = Transaction(store)
                self._run_parts(transaction, values, context)
                transaction.commit()
        return [values[e] for e in self.outputs]

    def _run_parts(
        self, store: ResourceStore, values: dict[Edge, Any], context: StepContext | None
    ) -> None:
        for part in (self.first, self.rest):
            dynamic = [values[e] for e in part.dynamic]
            static = [values[e] for e in part.static]
            outputs = part.run(store, dynamic, static, context)
            values.update(zip(part.outputs, outputs, strict=True))

    @property
    def is_proven(self) -> bool:
        """As for a region."""
        return self.first.is_proven and self.rest.is_proven

    @property
    def label(self) -> str:
        """As for a region."""
        return label_of(self.nodes, self.outputs)

    @property
    def compiled(self) -> Compilation | None:
        """The last time that programs of it were compiled."""
        found = [part.compiled for part in (self.first, self.rest) if part.compiled is not None]
        return Compilation(found[0].began, sum(c.seconds for c in found)) if found else None

    @compiled.setter
    def compiled(self, value: Compilation | None) -> None:
        self.first.compiled = self.rest.compiled = value

    @property
    def pending(self) -> Any:
        """As for a region."""
        return self.rest.pending

    def wait(self) -> None:
        """As for a region."""
        self.rest.wait()


__all__ = ["LARGE_STATE", "PartedRegion", "make_region", "waiting_changes"]
