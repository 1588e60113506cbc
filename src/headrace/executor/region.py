"""Regions: maximal groups of nodes that XLA runs as one program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError, OpError
from headrace.executor.evaluate import (
    Interpreting,
    NeedsHost,
    Tracing,
    Values,
    initial_stream,
    with_op,
)
from headrace.executor.resources import (
    RandomStream,
    ResourceHandle,
    ResourceStore,
    StateKey,
    uninitialized,
)
from headrace.graph.dtypes import variant
from headrace.graph.func_graph import FuncGraph
from headrace.ops import checks
from headrace.ops.kernels import tensor_list as lists
from headrace.ops.registry import IndexCheck
from headrace.passes.ir import Edge, Node, function_step


class EarlyCheck:
    """An index check on a value that enters the region: made before the program runs."""

    def __init__(self, node: Node, check: IndexCheck, handles: dict[Edge, ResourceHandle]) -> None:
        self.node = node
        self.check = check
        self.edge = node.inputs[check.indices]
        self._dims: list[Any] = [n.dims[i] for n, i in node.inputs]
        known = {i: handles[e] for i, e in enumerate(node.inputs) if e in handles}
        self._handles = {i: h for i, h in known.items() if isinstance(h, ResourceHandle)}
        self.usable = bool(self._handles) or self._bound(None) is not None

    def _bound(self, store: ResourceStore | None) -> int | None:
        dims = list(self._dims)
        for i, handle in self._handles.items():
            value = store.get(handle) if store is not None else None
            dims[i] = None if value is None else value.shape
        try:
            return self.check.bound(self.node.attrs, dims)
        except (TypeError, IndexError):  # a dimension that the bound needs is not known
            return None

    def run(self, store: ResourceStore, indices: Any) -> None:
        """Raise InvalidArgumentError if an index is out of range."""
        array = np.asarray(indices)
        if array.size == 0:
            return
        bound = self._bound(store)
        if bound is None or (array.min() >= 0 and array.max() < bound):
            return
        flat = array.ravel()
        position = int(np.argmax((flat < 0) | (flat >= bound)))
        text = self.check.message.format(position, int(flat[position]), bound)
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
            self.reads[RandomStream(node.name)] = node
            self.writes[RandomStream(node.name)] = node
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
                self.may_fail |= effects.checks
                writes |= bool(effects.writes)
                if effects.random:
                    self.reads[RandomStream(body_node.name)] = body_node
                    self.writes[RandomStream(body_node.name)] = body_node
                inner.extend(functions_of(body_node))
        for handle in used:
            if handle not in self.reads and handle not in self._made:
                self.reads[handle] = node
                self.optional.add(handle)
            if writes:
                self.writes.setdefault(handle, node)


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


class CheckSink:
    """Collects the checks of a region while it is traced: code 0 means that all held."""

    KEY = Tracing.checks_key

    def __init__(self, tracing: Tracing, checked: set[Node]) -> None:
        self.tracing = tracing
        #: Nodes whose checks were made before the program runs.
        self.checked = checked
        self.messages: list[tuple[Node | None, str]] = []
        tracing.state[self.KEY] = jnp.zeros(1 + checks.DATA_SLOTS, jnp.int64)

    def __call__(self, ok: Any, message: str, data: tuple[Any, ...]) -> None:
        if self.tracing.current in self.checked:
            return
        self.messages.append((self.tracing.current, message))
        code = len(self.messages)
        entries = [jnp.int64(code), *[jnp.asarray(d).astype(jnp.int64) for d in data]]
        entries += [jnp.int64(0)] * (1 + checks.DATA_SLOTS - len(entries))
        state = self.tracing.state[self.KEY]
        failed_now = (state[0] == 0) & ~ok
        self.tracing.write(self.KEY, jnp.where(failed_now, jnp.stack(entries), state))


class Program:
    """One compiled form of a region: for given values of its static inputs."""

    def __init__(self, region: Region, static: dict[Edge, np.ndarray[Any, Any]]) -> None:
        self.region = region
        self.static = static
        self.sink: CheckSink | None = None
        keeps_old = region.may_fail or region.keeps_old
        donated = () if keeps_old else tuple(range(len(region.donated)))
        self.function: Callable[..., Any] = jax.jit(
            self._trace, donate_argnums=donated, compiler_options=region.compiler_options
        )

    def _trace(self, *args: Any) -> tuple[Any, ...]:
        region = self.region
        state_keys = (*region.donated, *region.kept)
        state: dict[StateKey, Any] = dict(zip(state_keys, args, strict=False))
        tracing = Tracing(state, region.platform)
        values: Values = {}
        _bind_edges(values, zip(region.dynamic, args[len(state_keys) :], strict=True))
        _bind_edges(values, self.static.items())
        _bind_edges(values, region.handles.items())
        self.sink = CheckSink(tracing, region.touched.checked)
        with checks.collecting(self.sink):
            tracing.run(region.nodes, values)
        outputs = [_result(values[n][i]) for n, i in region.outputs]
        new_state = [state[k] for k in region.written]
        failed = [state[CheckSink.KEY]] if self.sink.messages else []
        # Without outputs there must be something to wait for that no other step can take away.
        waits_for = [] if outputs or failed else [jnp.int32(0)]
        return (*outputs, *new_state, *failed, *waits_for)


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
        self.may_fail = touched.may_fail and bool(touched.writes)
        self.written: list[StateKey] = list(touched.writes)
        self.donated = [k for k in self.written if k in touched.reads]
        self.kept = [k for k in touched.reads if k not in touched.writes]
        #: Set by the plan when a later unit may fail: old values must survive until the step ends.
        self.keeps_old = False
        self.pending: Any = None
        self._programs: dict[Any, Program] = {}
        #: Programs by the shapes of their inputs; forgotten when a variable changes its shape.
        self._by_shapes: dict[Any, Program] = {}
        self._epoch = -1
        #: How often each signature has been interpreted.
        self._seen: dict[Any, int] = {}
        self.interpreted_runs = options.runs_before_compiling(nodes, outputs)

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
        if self.takes_lists:
            dynamic = [lists.to_program(a) for a in dynamic]
        with store.lock:
            if store.shape_epoch != self._epoch:
                self._epoch = store.shape_epoch
                self._by_shapes.clear()
            key = self._signature(dynamic, static)
            program = self._by_shapes.get(key)
            if program is None:
                seen = self._seen.get(key, 0)
                if seen < self.interpreted_runs:
                    self._seen[key] = seen + 1
                    return self._interpret(store, dynamic, static)
                program = self._by_shapes[key] = self._program(static)
            return self._execute(program, store, dynamic)

    def _signature(self, dynamic: Sequence[Any], static: Sequence[Any]) -> Any:
        shapes = tuple([a.shape for a in dynamic])
        return (shapes, tuple([_static_key(s) for s in static])) if static else shapes

    def _program(self, static: Sequence[Any]) -> Program:
        """The program for these static values; ``jax.jit`` tells shapes apart by itself."""
        key = tuple([_static_key(s) for s in static])
        program = self._programs.get(key)
        if program is None:
            program = Program(self, dict(zip(self.static, static, strict=True)))
            self._programs[key] = program
        return program

    def _execute(self, program: Program, store: ResourceStore, dynamic: Sequence[Any]) -> list[Any]:
        for early, position in self.early:
            early.run(store, dynamic[position])
        args = [self._state_value(store, k) for k in self.donated]
        args += [self._state_value(store, k) for k in self.kept]
        args += dynamic
        with self.options.scope():
            try:
                results = program.function(*args)
            except (OpError, NeedsHost):
                raise
            except Exception as error:
                raise self.options.explain(error) from error
        count = len(self.outputs)
        written = self.written
        if program.sink is not None and program.sink.messages:
            self._raise_failed(program.sink, np.asarray(results[-1]))
        for k, value in zip(written, results[count : count + len(written)], strict=True):
            store.put(k, value)
        if not count:
            self.pending = results[-1]
        return list(results[:count])

    def wait(self) -> None:
        """Wait until the last run is over, when nothing was fetched that would tell."""
        pending = self.pending
        if pending is not None:
            pending.block_until_ready()

    def _raise_failed(self, sink: CheckSink, codes: np.ndarray[Any, Any]) -> None:
        if codes[0] == 0:
            return
        node, message = sink.messages[int(codes[0]) - 1]
        op = node.op if node is not None else None
        raise InvalidArgumentError(None, op, message.format(*[int(c) for c in codes[1:]]))

    def _state_value(self, store: ResourceStore, key: StateKey) -> Any:
        value = store.get(key)
        if value is None:
            node = self.touched.reads[key]
            if isinstance(key, RandomStream):
                value = initial_stream(node)
                store.put(key, value)
            elif key in self.touched.optional:
                raise NeedsHost(node, f"{key.name} has no value yet")
            else:
                error = uninitialized(key)
                raise with_op(error, node.op)
        return value

    def _interpret(
        self, store: ResourceStore, dynamic: Sequence[Any], static: Sequence[Any]
    ) -> list[Any]:
        transaction = Transaction(store)
        evaluation = Interpreting(transaction, self.options.host)
        values: Values = {}
        _bind_edges(values, zip(self.dynamic, [lists.to_host(a) for a in dynamic], strict=True))
        _bind_edges(values, zip(self.static, static, strict=True))
        _bind_edges(values, self.handles.items())
        with np.errstate(all="ignore"):
            evaluation.run(self.nodes, values)
        transaction.commit()
        return [values[n][i] for n, i in self.outputs]


class Transaction(ResourceStore):
    """Writes of an interpreted region, which reach the store only when all of it has succeeded."""

    def __init__(self, base: ResourceStore) -> None:
        super().__init__()
        self.base = base
        self.shape_epoch = base.shape_epoch

    def get(self, key: StateKey) -> Any:
        own = self._values.get(key)
        return self.base.get(key) if own is None else own

    def put(self, key: StateKey, value: Any) -> None:
        old = self.get(key)
        if old is None or old.shape != value.shape:
            self.shape_epoch += 1
        self._values[key] = value

    def drop(self, key: StateKey) -> bool:
        return self.base.drop(key)

    def object(self, key: Hashable, make: Callable[[], Any]) -> Any:
        return self.base.object(key, make)

    def commit(self) -> None:
        for key, value in self._values.items():
            self.base.put(key, value)  # type: ignore[arg-type]


def _result(value: Any) -> Any:
    """An output of a program: an array, or a tensor list made of arrays."""
    if isinstance(value, lists.TensorList):
        return jax.tree.map(jnp.asarray, lists.to_program(value))
    return jnp.asarray(value)


def _static_key(value: Any) -> Any:
    array = np.asarray(value)
    return (array.dtype.str, array.shape, array.tobytes())


class RegionOptions:
    """What regions need from the session that runs them.

    Attributes:
        device: the JAX device, or None for JAX's default.
        host: runs host ops and single ops while interpreting.
        explain: turns an exception of JAX or XLA into an OpError.
    """

    def __init__(
        self,
        device: Any,
        host: Any,
        explain: Callable[[Exception], OpError],
        runs_before_compiling: Callable[[Sequence[Node], Sequence[Edge]], int],
        compiler_options: dict[str, Any] | None,
    ) -> None:
        self.device = device
        self.host = host
        self.explain = explain
        self.runs_before_compiling = runs_before_compiling
        self.compiler_options = compiler_options

    def scope(self) -> Any:
        """The JAX settings under which programs are traced and called."""
        if self.device is None:
            return jax.enable_x64(True)
        stack = contextlib.ExitStack()
        stack.enter_context(jax.enable_x64(True))
        stack.enter_context(jax.default_device(self.device))
        return stack


__all__ = ["Program", "Region", "RegionOptions", "functions_of"]
