"""Regions: maximal groups of nodes that XLA runs as one program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError, OpError
from headrace.executor.compiling import Compilation, first_call
from headrace.executor.evaluate import (
    Interpreting,
    NeedsHost,
    Tracing,
    Values,
    initial_stream,
    prepared,
    random_stream,
    with_op,
)
from headrace.executor.null import NullProgram, is_null
from headrace.executor.policy import NEVER, costs_less_as_run
from headrace.executor.recycling import Recycled
from headrace.executor.region_checks import CheckSink, raise_failed, rerun
from headrace.executor.resources import (
    RandomStream,
    ResourceHandle,
    ResourceStore,
    StateKey,
    Transaction,
    uninitialized,
)
from headrace.executor.waiting import TookTooLong, Waiting
from headrace.graph.dtypes import variant
from headrace.graph.func_graph import FuncGraph
from headrace.ops import checks
from headrace.ops.kernels import tensor_list as lists
from headrace.ops.registry import HostResource, IndexCheck
from headrace.passes.ir import Edge, Node, function_step

#: Bytes of all values of a program from which on it is watched for a lack of memory.
_LARGE = 16 << 20

#: Stands for the shape of a variable, to see whether a bound depends on anything else.
_ANY_DIMS = (1,) * 8

#: A region keeps the programs of this many combinations of shapes and static values.
MAX_PROGRAMS = 256


class EarlyCheck:
    """An index check on a value that enters the region: made before the program runs."""

    def __init__(self, node: Node, check: IndexCheck, handles: dict[Edge, ResourceHandle]) -> None:
        self.node = node
        self.check = check
        self.edge = node.inputs[check.indices]
        self._dims: list[Any] = [n.dims[i] for n, i in node.inputs]
        known = {i: handles[e] for i, e in enumerate(node.inputs) if e in handles}
        self._handles = {i: h for i, h in known.items() if isinstance(h, ResourceHandle)}
        #: Whether the bound is certain to be known once the variables have values.
        self.usable = self._bound(dict.fromkeys(self._handles, _ANY_DIMS)) is not None

    def _bound(self, variables: dict[int, Any]) -> int | None:
        """The bound, given the shapes of the variables among the inputs."""
        dims = list(self._dims)
        for i, shape in variables.items():
            dims[i] = shape
        try:
            return self.check.bound(self.node.attrs, dims)
        except (TypeError, IndexError):  # a dimension that the bound needs is not known
            return None

    def run(self, store: ResourceStore, indices: Any) -> None:
        """Raise InvalidArgumentError if an index is out of range."""
        array = np.asarray(indices)
        if array.size == 0:
            return
        values = {i: store.get(h) for i, h in self._handles.items()}
        if any(v is None for v in values.values()):
            return  # the region will say which variable has no value
        bound = self._bound({i: v.shape for i, v in values.items()})
        if bound is None or (array.min() >= 0 and array.max() < bound):
            return
        flat = array.ravel()
        position = int(np.argmax((flat < 0) | (flat >= bound)))
        message = checks.AtIndex(self.check.message, array.shape)
        text = message.format(position, int(flat[position]), bound)
        raise InvalidArgumentError(None, self.node.op, text)


class RegionState:
    """Which state a set of nodes touches, worked out from the graph alone."""

    def __init__(
        self, nodes: Sequence[Node], handles: dict[Edge, ResourceHandle], checked: set[Node]
    ) -> None:
        self.checked = checked
        self.reads: dict[StateKey, Node] = {}
        self.writes: dict[StateKey, Node] = {}
        #: Read inside a function body only, perhaps in a branch that is not taken.
        self.optional: set[StateKey] = set()
        self.may_fail = False
        #: Given a value by the nodes seen so far: reads of it need none from outside.
        self._made: set[StateKey] = set()
        for node in nodes:
            self._add(node, handles)

    def _add(self, node: Node, handles: dict[Edge, ResourceHandle]) -> None:
        effects = node.op_def.effects
        self.may_fail |= effects.checks and node not in self.checked
        if effects.random:
            self.reads[random_stream(node)] = node
            self.writes[random_stream(node)] = node
        for i in effects.reads:
            if handles[node.inputs[i]] not in self._made:
                self.reads.setdefault(handles[node.inputs[i]], node)
                self.optional.discard(handles[node.inputs[i]])
        for i in effects.writes:
            self.writes.setdefault(handles[node.inputs[i]], node)
            self._made.add(handles[node.inputs[i]])
        if node.op_def.lower is not None:
            bodies = functions_of(node)
            known = [handles[e] for e in node.inputs if e in handles]
            used = [h for h in known if isinstance(h, ResourceHandle)]
            self._add_bodies(node, bodies, used)

    def _add_bodies(self, node: Node, bodies: list[FuncGraph], used: list[ResourceHandle]) -> None:
        """Bodies may read whatever handles they are given, and write them if they write at all."""
        inner = list(bodies)
        writes = False
        while inner:
            for body_node in function_step(inner.pop()).nodes:
                effects = body_node.op_def.effects
                self.may_fail |= effects.checks or body_node.op_def.host is not None
                writes |= bool(effects.writes)
                if effects.random:
                    self.reads[random_stream(body_node)] = body_node
                    self.writes[random_stream(body_node)] = body_node
                inner.extend(functions_of(body_node))
        for handle in used:
            if handle not in self.reads and handle not in self._made:
                self.reads[handle] = node
                self.optional.add(handle)
            if writes:
                self.writes.setdefault(handle, node)


def may_block(node: Node) -> bool:
    """Whether a node, or a node of its function bodies, may wait for another op."""
    if node.op_def.lower is None:
        return node.op_def.effects.blocks
    p = prepared(node)
    if p.may_block is None:
        inner = (n for body in functions_of(node) for n in function_step(body).nodes)
        p.may_block = any(map(may_block, inner))
    return p.may_block


def functions_of(node: Node) -> list[FuncGraph]:
    """The function bodies among a node's attributes, nested attribute lists included."""
    found: list[FuncGraph] = []

    def visit(value: Any) -> None:
        if isinstance(value, FuncGraph):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                visit(item)
        elif hasattr(value, "attrs") and hasattr(value, "name"):
            visit(list(value.attrs.values()))

    for value in node.attrs.values():
        visit(value)
    return found


class _HasChecks(Exception):
    """A program that was to reuse the buffers of old state may fail, and then needs them."""


class Program:
    """A region for given shapes of its inputs and values of its static inputs.

    Attributes:
        turn: how it waits to be compiled.
        last_run: when the region ran it last, counted in runs of the region.
    """

    def __init__(self, region: Region, static: Sequence[Any]) -> None:
        self.region = region
        self.static = dict(zip(region.static, static, strict=True))
        self.turn = region.waiting.new_turn()
        self.last_run = 0
        #: Whether it has run to its end: what fails for lack of memory mostly does at once.
        self.proven = False
        #: For a program with much data: the node that makes the largest piece of it.
        self.largest: Node | None = None
        #: Whether XLA may reuse the buffers of state that is replaced.
        self.donates = not region.keeps_old
        #: Code of each check.
        self.messages: dict[tuple[Node | None, str], int] = {}
        #: Where outputs only pass through: the large ones.
        self.recycled = Recycled(region.outputs if region.options.passes_on else ())

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The compiled program; XLA reuses the buffers of state that nobody may need again."""
        region = self.region
        donated = list(range(len(region.donated))) if self.donates else []
        spare = len(self.recycled.positions)
        count = len(region.donated) + len(region.kept) + len(region.dynamic)
        donated += range(count, count + spare)

        # A function of its own: bound methods are equal, so JAX would file what it compiles under
        # the method of a program that is given up, forget it with that, and compile once more.
        def program(*args: Any) -> Any:
            return self._trace(*args[:count])

        return jax.jit(
            program,
            donate_argnums=tuple(donated),
            keep_unused=spare > 0,
            compiler_options=region.compiler_options,
        )

    def call(self, args: Sequence[Any]) -> Any:
        """Run the program. One that turns out to have checks is built again to keep old state."""
        if self.recycled.positions:
            args = [*args, *self.recycled.take()]
        try:
            results = self.function(*args) if self.proven else first_call(self, args)
        except _HasChecks:
            self.donates = False
            del self.function
            results = first_call(self, args)
        if self.recycled.positions:
            self.recycled.keep(results[0])
        return results

    def _trace(self, *args: Any) -> tuple[list[Any], list[Any], Any, Any]:
        """Outputs, new state, outcome of the checks (or None), something to wait for (or None)."""
        region = self.region
        state_keys = (*region.donated, *region.kept)
        state: dict[StateKey, Any] = dict(zip(state_keys, args, strict=False))
        tracing = Tracing(state, region.platform)
        values: Values = {}
        _bind_edges(values, zip(region.dynamic, args[len(state_keys) :], strict=True))
        _bind_edges(values, self.static.items())
        _bind_edges(values, region.handles.items())
        sink = CheckSink(tracing, region.touched.checked, self.messages)
        with checks.collecting(sink):
            tracing.run(region.nodes, values)
        if sink.used and self.donates and region.donated:
            raise _HasChecks
        if tracing.bytes > _LARGE:
            self.largest = tracing.largest[1]
        outputs = [_result(values[n][i]) for n, i in region.outputs]
        new_state = [state[k] for k in region.written]
        failed = state[CheckSink.KEY] if sink.used else None
        # Without outputs there must be something to wait for that no other step can take away.
        waits_for = None if outputs or sink.used else jnp.int32(0)
        return outputs, new_state, failed, waits_for


def _bind_edges(values: Values, pairs: Any) -> None:
    """Give known values to outputs of nodes outside the region."""
    for (node, index), value in pairs:
        outputs = values.get(node)
        if outputs is None:
            outputs = values[node] = [None] * max(1, len(node.dtypes))
        outputs[index] = value  # type: ignore[index]


class Region:
    """Nodes that run as one XLA program, with what crosses its border.

    Attributes:
        dynamic: edges that come in as arrays; ``static``: edges whose values the program is
            compiled for; ``outputs``: edges that others need.
        donated: state that the region replaces, whose buffers XLA reuses; ``kept``: state that it
            only reads; ``written``: all state that it returns.
    """

    def __init__(
        self,
        nodes: list[Node],
        dynamic: list[Edge],
        static: list[Edge],
        outputs: list[Edge],
        handles: dict[Edge, ResourceHandle],
        options: RegionOptions,
    ) -> None:
        self.nodes = nodes
        self.dynamic = dynamic
        self.static = static
        self.outputs = outputs
        self.handles = handles
        self.options = options
        self.platform = options.device.platform if options.device is not None else "cpu"
        self.compiler_options = options.compiler_options
        self.takes_lists = any(n.dtypes[i] is variant for n, i in dynamic)
        self.early = self._early_checks()
        touched = RegionState(nodes, handles, {c.node for c, _ in self.early})
        self.touched = touched
        self.written: list[StateKey] = list(touched.writes)
        self.donated = [k for k in self.written if k in touched.reads]
        self.kept = [k for k in touched.reads if k not in touched.writes]
        self._read_keys: list[StateKey] = [*self.donated, *self.kept]
        self.keeps_old = False
        self.pending: Any = None
        #: The last time that one of its programs was compiled.
        self.compiled: Compilation | None = None
        self._programs: dict[Any, Program] = {}
        #: What runs in place of programs on a NULL device.
        self.null = NullProgram(self) if is_null(nodes[0].device) else None
        if self.null is None:
            self.waiting = Waiting(self)

    def _early_checks(self) -> list[tuple[EarlyCheck, int]]:
        """Checks on values that come in as arrays, each with the position of its value."""
        position = {e: i for i, e in enumerate(self.dynamic)}
        found = []
        for node in self.nodes:
            check = node.op_def.index_check
            if check is not None and node.inputs[check.indices] in position:
                early = EarlyCheck(node, check, self.handles)
                if early.usable:
                    found.append((early, position[early.edge]))
        return found

    @property
    def can_fail(self) -> bool:
        """Whether a run may end in an error: of a check, or of a variable without a value."""
        touched = self.touched
        reads = any(isinstance(k, ResourceHandle) for k in touched.reads)
        return touched.may_fail or bool(self.early) or reads

    @property
    def is_idle(self) -> bool:
        """Nothing comes of running it (no-ops that only order others); reads may still fail."""
        touched = self.touched
        return not (self.outputs or self.written or touched.reads or touched.may_fail)

    def run(self, store: ResourceStore, dynamic: Sequence[Any], static: Sequence[Any]) -> list[Any]:
        """Run once. ``dynamic`` and ``static`` are arrays for the edges of the same names.

        Raises:
            OpError: when an op fails; no variable has changed then.
            NeedsHost: when a node turns out to need the host; nothing has run then.
        """
        if self.null is not None:
            return self.null.run(store)
        if self.reads_only is not None:
            return self._read(store, self.reads_only)
        if self.takes_lists:
            dynamic = [lists.to_program(a) for a in dynamic]
        with store.lock:
            program = self._program(dynamic, static)
            if self.waiting.interprets(program.turn, dynamic):
                try:
                    return self.interpret(store, dynamic, static, program)
                except TookTooLong:
                    self.waiting.give_up(program.turn)
            return self._execute(program, store, dynamic)

    @property
    def label(self) -> str:
        """How the region is called in traces and messages."""
        count = len(self.nodes)
        return f"region of {count} op{'s' * (count > 1)} to {self.nodes[-1].name}"

    @cached_property
    def between_hosts(self) -> bool:
        """Whether it makes something of what host ops give, without any state."""
        touched = self.touched
        from_host = all(n.op_def.host is not None for n, _ in self.dynamic)
        return bool(self.dynamic) and from_host and not (touched.reads or touched.writes)

    @cached_property
    def reads_only(self) -> list[ResourceHandle] | None:
        """The variable of each output, if all that the nodes do is to read variables."""
        if any(n.op_def.name != "ReadVariableOp" for n in self.nodes):
            return None
        read = [self.handles.get(n.inputs[0]) for n, _ in self.outputs]
        found = [h for h in read if isinstance(h, ResourceHandle)]
        return found if len(found) == len(read) else None

    def _read(self, store: ResourceStore, handles: Sequence[ResourceHandle]) -> list[Any]:
        """The values of variables. XLA reuses no buffer of which such a view is alive."""
        with store.lock:
            values = store.get_all(handles)
            for position, value in enumerate(values):
                if value is None:
                    values[position] = self._first_value(store, handles[position])
            return [np.asarray(v) for v in values]

    def keep_old(self, keeps_old: bool) -> None:
        """Say whether a later unit may fail: old values must then survive until the step ends."""
        if keeps_old != self.keeps_old:
            self.keeps_old = keeps_old
            self._programs.clear()  # those made so far may give their state away

    def _program(self, dynamic: Sequence[Any], static: Sequence[Any]) -> Program:
        key: Any = tuple([a.shape for a in dynamic])
        if static:
            key = (key, tuple([_static_key(s) for s in static]))
        program = self._programs.get(key)
        if program is None:
            if len(self._programs) >= MAX_PROGRAMS:
                del self._programs[min(self._programs, key=lambda k: self._programs[k].last_run)]
            program = self._programs[key] = Program(self, static)
        program.last_run = self.waiting.runs
        return program

    def _execute(self, program: Program, store: ResourceStore, dynamic: Sequence[Any]) -> list[Any]:
        for early, position in self.early:
            early.run(store, dynamic[position])
        args = store.get_all(self._read_keys)
        for position, value in enumerate(args):
            if value is None:
                args[position] = self._first_value(store, self._read_keys[position])
        args += dynamic
        saved = [] if program.proven else [np.array(a) for a in args[: len(self.donated)]]
        with self.options.scope():
            try:
                outputs, new_state, outcome, self.pending = program.call(args)
                if program.largest is not None:
                    # XLA may run out of memory after the call: nothing may rest on its results.
                    for array in jax.tree.leaves((outputs, new_state)):
                        array.block_until_ready()
            except OpError:
                # What cannot be traced may be what an assertion before it was to find.
                for node, message in program.messages:
                    if message == checks.SHOWS_TENSORS and node is not None:
                        self._explain(program, store, dynamic, node)
                raise
            except NeedsHost:
                raise
            except Exception as error:
                self._check_arrays(args)
                raise self._failed(program, store, saved, error) from error
        program.proven = True
        if outcome is not None:
            raise_failed(outcome, program.messages, partial(self._explain, program, store, dynamic))
        store.put_all(self.written, new_state)
        return outputs  # type: ignore[no-any-return]

    def _explain(
        self, program: Program, store: ResourceStore, dynamic: Sequence[Any], failed: Node
    ) -> None:
        """Raise the error of a failed op that shows tensors: it is run again, on NumPy."""
        if self.options.host is None:
            return
        evaluation: Interpreting = self.options.host.interpreter(Transaction(store))
        evaluation.compiles_loops = False
        rerun(evaluation, self.nodes, failed, self._values(dynamic, program.static.values()))

    def _failed(
        self, program: Program, store: ResourceStore, saved: Sequence[Any], error: Exception
    ) -> OpError:
        """What to raise when XLA fails. Variables whose memory it has taken get their old values.

        These are at hand in the first run of a program only; later they are lost.
        """
        explained = self.options.explain(error)
        lost = []
        for i, key in enumerate(self.donated):
            value = store.get(key)
            if isinstance(value, jax.Array) and value.is_deleted():
                if saved:
                    store.put(key, saved[i])
                else:
                    store.drop(key)
                    lost.append(key.name if isinstance(key, ResourceHandle) else key.op_name)
        if lost:
            names = ", ".join(sorted(lost))
            text = f"{explained.message} These variables have lost their values: {names}."
            explained = type(explained)(None, None, text)  # type: ignore[call-arg]
        node = program.largest
        return explained if node is None or node.op is None else with_op(explained, node.op)

    def wait(self) -> None:
        """Wait until the last run is over, when nothing was fetched that would tell."""
        pending = self.pending
        if pending is not None:
            pending.block_until_ready()

    def _check_arrays(self, args: list[Any]) -> None:
        """A body that uses a table or another object, through its handle, runs on the host."""
        for key, value in zip(self._read_keys, args, strict=False):
            if isinstance(value, HostResource):
                raise NeedsHost(self.touched.reads[key], "it uses what is no array")

    def _first_value(self, store: ResourceStore, key: StateKey) -> Any:
        """The value of state that has none yet, if it can start with one of its own."""
        node = self.touched.reads[key]
        if isinstance(key, RandomStream):
            value = initial_stream(node)
            store.put(key, value)
            return value
        if key in self.touched.optional:
            raise NeedsHost(node, f"{key.name} has no value yet")
        raise with_op(uninitialized(key), node.op)

    def interpret(
        self,
        store: ResourceStore,
        dynamic: Sequence[Any],
        static: Sequence[Any],
        program: Program | None = None,
    ) -> list[Any]:
        """Run the nodes one by one on NumPy; all their writes happen, or none. ``program`` is told
        when that is the fastest way."""
        transaction = Transaction(store)
        evaluation: Interpreting = self.options.host.interpreter(transaction)
        evaluation.compiles_loops = False
        values = self._values(dynamic, static)
        if program is not None:
            self.waiting.begin(program.turn, evaluation)
        with np.errstate(all="ignore"):
            evaluation.run(self.nodes, values)
        transaction.commit()
        if program is not None:
            self.waiting.end(program.turn, evaluation)
            is_open = program.turn.is_open and self.between_hosts
            if is_open and costs_less_as_run(self.nodes, values):
                program.turn.interpretations = NEVER
        return [values[n][i] for n, i in self.outputs]

    def _values(self, dynamic: Sequence[Any], static: Iterable[Any]) -> Values:
        """What the nodes start from when they are interpreted."""
        values: Values = {}
        _bind_edges(values, zip(self.dynamic, map(lists.to_host, dynamic), strict=True))
        _bind_edges(values, zip(self.static, static, strict=True))
        _bind_edges(values, self.handles.items())
        return values


def _result(value: Any) -> Any:
    """An output of a program: an array, or a tensor list made of arrays."""
    if isinstance(value, lists.TensorList):
        return jax.tree.map(jnp.asarray, lists.to_program(value))
    return jnp.asarray(value)


def _static_key(value: Any) -> Any:
    if isinstance(value, lists.TensorList):
        return tuple([None if item is None else _static_key(item) for item in value.items or ()])
    array = np.asarray(value)
    return (array.dtype.str, array.shape, array.tobytes())


class RegionOptions:
    """What regions need from the session that runs them.

    Attributes:
        device: the JAX device, or None for JAX's default.
        host: the HostRunner, which runs host ops and single ops while interpreting; None for
            regions that can only be compiled.
        explain: turns an exception of JAX or XLA into an OpError.
        passes_on: whether outputs go to other tasks, and are of no use here afterwards.
        programs: how many programs were compiled under these options.
    """

    def __init__(
        self,
        device: Any,
        host: Any,
        explain: Callable[[Exception], OpError],
        runs_before_compiling: Callable[[Sequence[Node], Sequence[Edge]], int],
        compiler_options: dict[str, Any] | None,
        passes_on: bool = False,
    ) -> None:
        self.device = device
        self.host = host
        self.explain = explain
        self.runs_before_compiling = runs_before_compiling
        self.compiler_options = compiler_options
        self.passes_on = passes_on
        self.programs = 0

    def scope(self) -> Any:
        """The JAX settings under which programs are traced and called."""
        if self.device is None:
            return jax.enable_x64(True)
        stack = contextlib.ExitStack()
        stack.enter_context(jax.enable_x64(True))
        stack.enter_context(jax.default_device(self.device))
        return stack


__all__ = ["Program", "Region", "RegionOptions", "functions_of"]
