"""Running single nodes outside XLA programs: host ops, and ops that are interpreted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from headrace.errors import InvalidArgumentError, UnimplementedError
from headrace.executor.batches import filled
from headrace.executor.claims import held
from headrace.executor.evaluate import (
    NeedsHost,
    as_outputs,
    flat_static,
    initial_stream,
    prepared,
    raise_as,
    random_stream,
)
from headrace.executor.failures import count_bytes
from headrace.executor.interpreting import Interpreting, Watched
from headrace.executor.interrupts import Watch
from headrace.executor.loops import BoundedLoops
from headrace.executor.region import Region
from headrace.executor.region_options import CPU_OPTIONS, RegionOptions, scope_on
from headrace.executor.resources import ResourceHandle, ResourceStore, StateKey, owned
from headrace.executor.touched import RegionState, may_block
from headrace.graph.attrs import attrs_key
from headrace.graph.dtypes import resource, variant
from headrace.graph.func_graph import FuncGraph
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.core import checks
from headrace.ops.core.registry import grouped
from headrace.ops.random import philox
from headrace.passes.ir import Node, function_step

#: So many programs of single ops are kept.
_MOST_ALONE = 1024


class HostContext:
    """What a host op gets beside its inputs.

    Attributes:
        node: the node being run; ``store``: the session's state; ``step``: what the caller of the
            step passed along (cancellation, deadlines, traces), or None.
    """

    __slots__ = ("node", "runner", "step", "store")

    def __init__(self, runner: HostRunner, node: Node, store: ResourceStore, step: Any) -> None:
        self.runner = runner
        self.node = node
        self.store = store
        self.step = step

    @property
    def memo(self) -> dict[Any, Any]:
        """What earlier runs of the node have worked out from its attributes."""
        return prepared(self.node).memo

    def missing_feed(self) -> Any:
        """The error for a placeholder without a value."""
        node = self.node
        dtype = node.attrs["dtype"].name
        shape = node.op.outputs[0].shape if node.op is not None else "<unknown>"
        raise InvalidArgumentError(
            None,
            node.op,
            f"You must feed a value for placeholder tensor '{node.name}' with dtype {dtype} and "
            f"shape {shape}: sess.run(..., feed_dict={{{node.name}: value}}).",
        )

    def random_state(self, groups: int) -> Any:
        """The Philox state that this run draws from; the op's state moves ``groups`` blocks on."""
        # Read and moved on under the lock: two runs at once must not draw the same numbers.
        stream = random_stream(self.node)
        with self.store.lock:
            state = self.store.get(stream)
            state = initial_stream(self.node) if state is None else np.asarray(state)
            self.store.put(stream, philox.advance(state, groups))
        return state

    def owned(self, value: Any) -> Any:
        """An array that may be kept after the step: a copy unless nobody else can change it."""
        return owned(value)

    def call(self, function: Any, args: Sequence[Any]) -> list[Any]:
        """Run a function body on arrays."""
        return self.runner.interpreter(self.store).call(function, args)

    def planned(self, function: FuncGraph) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """What runs a function body on arrays, again and again; several threads may call it."""
        return self.runner.planned(function, self.store)

    def handle(self, kind: str, container: str, name: str) -> ResourceHandle:
        """The handle of a resource of this process."""
        return ResourceHandle(kind, container, name)


def is_plain_host_op(node: Node) -> bool:
    """Whether to run a node is no more than to call a function of this process."""
    return node.op_def.host is not None


class HostCall:
    """A plain host op in a step that nobody watches, with all that stays the same.

    It always can run: `run` and `run_direct` are those of `bound.BoundRegion`.

    Args:
        inputs, outputs: slots of the table of the step's values.
    """

    __slots__ = (
        "_context",
        "_count",
        "_function",
        "_groups",
        "_inputs",
        "_node",
        "_on_devices",
        "_outputs",
    )

    def __init__(
        self,
        runner: HostRunner,
        node: Node,
        store: ResourceStore,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        p = prepared(node)
        self._node = node
        self._function = p.host
        self._groups = p.groups
        self._count = p.outputs
        #: Whether it takes arrays where they lie; else they come to the host first.
        self._on_devices = node.op_def.traits.device_arrays
        self._context = HostContext(runner, node, store, None)
        self._inputs = inputs
        self._outputs = outputs

    def run(self, table: list[Any]) -> bool:
        """Run the op on values of the table that may lie on a device; its outputs go there."""
        args = [table[slot] for slot in self._inputs]
        return self._run(table, args if self._on_devices else list(map(lists.to_host, args)))

    def run_direct(self, table: list[Any]) -> bool:
        """The same in a step whose values are all NumPy arrays."""
        return self._run(table, [table[slot] for slot in self._inputs])

    def _run(self, table: list[Any], args: list[Any]) -> bool:
        try:
            inputs = args if self._groups is None else grouped(args, self._groups)
            result = self._function(self._context, *inputs)  # type: ignore[misc]
            values = as_outputs(result, self._count)
        except Exception as error:
            raise_as(self._node, error, args)
        for slot, value in zip(self._outputs, values, strict=True):
            table[slot] = value
        return True


class HostRunner:
    """Runs nodes on arrays. One per session."""

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}
        self._regions: dict[Node, Region] = {}
        self.loops = BoundedLoops(self)
        #: Makes a plan for a function body; set by who can.
        self.plan_function: Callable[[FuncGraph], Callable[[Sequence[Any]], Any]] | None = None
        self._planned: WeakKeyDictionary[FuncGraph, Callable[[Sequence[Any]], Any]] = (
            WeakKeyDictionary()
        )

    def planned(
        self, function: FuncGraph, store: ResourceStore
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """What runs a function body on arrays, for whoever runs it many times.

        A plan of its own; a body that takes handles of resources, or takes or makes datasets, is
        interpreted: programs know no such values.
        """
        is_for_host = any(t.dtype in (resource, variant) for t in function.all_inputs) or any(
            t.dtype is variant for t in function.outputs
        )
        if self.plan_function is None or is_for_host:
            return partial(self.interpreter(store).call, function)
        plan = self._planned.get(function)
        if plan is None:
            plan = self._planned[function] = self.plan_function(function)

        def run(args: Sequence[Any]) -> Sequence[Any]:
            return [lists.to_host(value) for value in plan(args)]

        return run

    def interpreter(self, store: ResourceStore, step: Any = None) -> Interpreting:
        """An evaluation of single nodes; ``step`` (a StepContext) watches it."""
        made = self.unwatched(store, step)
        made.interrupt = Watch(store, step).interrupt
        return made

    def unwatched(self, store: ResourceStore, step: Any = None) -> Interpreting:
        """The same; function bodies do not ask whether the step goes on."""
        bound = _BoundRunner(self, store, step)
        return Interpreting(store, bound) if step is None else Watched(store, bound, step)

    def to_device(self, value: Any) -> Any:
        """A large constant as a device array, so that programs share it."""
        with jax.enable_x64(True):
            return jax.device_put(value)

    def run_node(
        self, node: Node, inputs: Sequence[Any], store: ResourceStore, step: Any
    ) -> Sequence[Any]:
        """Run one node; inputs and outputs are NumPy arrays (or host objects)."""
        on_devices = node.op_def.traits.device_arrays
        args = list(inputs) if on_devices else [lists.to_host(a) for a in inputs]
        if is_plain_host_op(node):
            # Steps of queue runners consist of little else: the rest would cost more than the op.
            try:
                with np.errstate(all="ignore"):
                    return self.run_host_op(node, args, store, step)
            except Exception as error:
                raise_as(node, error, args)
        bound = _BoundRunner(self, store, step)
        bodies = step.bodies.get(node) if step is not None else None
        if bodies is not None:
            with np.errstate(all="ignore"):
                return _Calling(node, bodies, store, bound).guarded(node, args)
        d = node.op_def
        # What waits must not hold state: it may wait for a step that needs it.
        touches_state = (d.lower is not None and not may_block(node)) or (
            d.host is None and d.lower is None and not d.effects.pure
        )
        watch = Watch(store, step)
        holding: Any = contextlib.nullcontext()
        if touches_state:
            holding = held(store, *_touched(node, args), watch.check)
        with holding, np.errstate(all="ignore"):
            evaluation = Interpreting(store, bound)
            evaluation.interrupt = watch.interrupt
            return evaluation.guarded(node, args)

    def run_host_op(
        self, node: Node, args: list[Any], store: ResourceStore, step: Any
    ) -> Sequence[Any]:
        p = prepared(node)
        assert p.host is not None
        context = HostContext(self, node, store, step)
        inputs = args if p.groups is None else grouped(args, p.groups)
        if step is not None and step.deadline is not None and p.effects.external:
            result = step.call_in_time(partial(p.host, context, *inputs), node)
        else:
            result = p.host(context, *inputs)
        return as_outputs(result, p.outputs)

    def run_compiled_op(
        self, node: Node, args: list[Any], evaluation: Interpreting
    ) -> Sequence[Any]:
        """Run a kernel that has no NumPy form: compiled alone, and kept by type and attributes."""
        p = prepared(node)
        # Batches are filled up, so that one program serves several sizes; see `executor.batches`.
        args, size = filled(node, args)
        static = flat_static(node)
        key = (
            node.type,
            attrs_key(node.attrs),
            tuple([np.asarray(args[i]).tobytes() for i in static]),
            # Checks depend on shapes: each program belongs to one set of them.
            tuple([getattr(a, "shape", None) for a in args]),
        )
        entry = self._compiled.get(key)
        if entry is None:
            if len(self._compiled) >= _MOST_ALONE:
                # The oldest one goes: dictionaries keep the order of insertion.
                del self._compiled[next(iter(self._compiled))]
            entry = self._compiled[key] = _SingleOp(node, {i: args[i] for i in static})
        if p.pure:
            outputs = entry.call(args)
            return outputs if size is None else [o[:size] for o in outputs]
        return evaluation.stateful_call(node, lambda *a, **k: entry.call_state(a, k), args, p)

    def run_traced(
        self, node: Node, args: Sequence[Any], store: ResourceStore, step: Any = None
    ) -> Sequence[Any]:
        """Run a node that only exists in traced form: as a program of its own.

        Raises:
            UnimplementedError: if the node cannot be traced even alone.
        """
        edges = node.inputs
        # A region of one node: what comes in is sorted as `UnitBuilder` does it.
        fixed = {i for i in flat_static(node)}
        handles = {e: a for e, a in zip(edges, args, strict=True) if isinstance(a, ResourceHandle)}
        dynamic = [(i, e) for i, e in enumerate(edges) if i not in fixed and e not in handles]
        static = [(i, e) for i, e in enumerate(edges) if i in fixed]
        outputs = [(node, i) for i in range(len(node.dtypes))]
        region = self._regions.get(node)
        if region is None:
            region = self._regions[node] = Region(
                [node],
                [e for _, e in dynamic],
                [e for _, e in static],
                outputs,
                handles,
                RegionOptions.at_once(),
            )
        try:
            given = [args[i] for i, _ in dynamic]
            results = region.run(store, given, [args[i] for i, _ in static], step)
        except NeedsHost as signal:
            raise UnimplementedError(
                None,
                node.op,
                f"The gradient of {node.attrs['f'].name} cannot be computed: {signal.why}.",
            ) from None
        return [np.asarray(r) for r in results]


def _touched(node: Node, args: Sequence[Any]) -> tuple[list[StateKey], list[StateKey]]:
    """The state that a node reads, and what it writes."""
    memo = prepared(node).memo
    handles = {e: a for e, a in zip(node.inputs, args, strict=True) if _is_handle(a)}
    key = ("touched", *handles.values())
    if key not in memo:
        touched = RegionState([node], handles, set())
        memo[key] = list(touched.reads), list(touched.writes)
    result: tuple[list[StateKey], list[StateKey]] = memo[key]
    return result


def _is_handle(value: Any) -> bool:
    return isinstance(value, ResourceHandle)


class _SingleOp:
    """One kernel compiled by itself."""

    def __init__(self, node: Node, static: dict[int, Any]) -> None:
        self.node = node
        self.static = static
        self.messages: list[str] = []
        options = CPU_OPTIONS if jax.default_backend() == "cpu" else None
        self.function = jax.jit(self._trace, compiler_options=options)
        self.state_function = jax.jit(self._trace_state, compiler_options=options)

    def _trace(self, dynamic: dict[int, Any]) -> Any:
        p = prepared(self.node)
        args = [
            dynamic[i] if i in dynamic else self.static[i]
            for i in range(len(dynamic) + len(self.static))
        ]
        out, codes = self._checked(*grouped(args, p.groups))
        outputs = list(as_outputs(out, p.outputs))
        count_bytes(self.node.op, outputs, args)
        return outputs, codes

    def _trace_state(self, args: Any, kwargs: Any) -> Any:
        return self._checked(*args, **kwargs)

    def _checked(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        """What the kernel returns, and the conditions it states."""
        codes: list[Any] = []
        self.messages.clear()

        def sink(ok: Any, message: str, data: tuple[Any, ...]) -> None:
            self.messages.append(message)
            codes.append((ok, data))

        with checks.collecting(sink):
            return prepared(self.node).kernel(*args, **kwargs), codes  # type: ignore[misc]

    def call(self, args: list[Any]) -> list[Any]:
        dynamic = {i: a for i, a in enumerate(args) if i not in self.static}
        with scope_on(None):
            outputs, codes = self.function(dynamic)
        self._raise_failed(codes)
        return [np.asarray(o) for o in outputs]

    def call_state(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        groups = prepared(self.node).groups
        if groups is not None or self.static:
            # Static inputs keep their NumPy values: trace without compiling.
            with scope_on(None):
                result, codes = self._trace_state(args, kwargs)
        else:
            with scope_on(None):
                result, codes = self.state_function(args, kwargs)
        self._raise_failed(codes)
        if isinstance(result, (tuple, list)):
            return [np.asarray(r) for r in result]
        return np.asarray(result)

    def _raise_failed(self, codes: list[Any]) -> None:
        for (ok, data), message in zip(codes, self.messages, strict=True):
            if not ok:
                text = message.format(*[int(d) for d in data])
                raise InvalidArgumentError(None, self.node.op, text)


class _BoundRunner:
    """The runner together with the store and step of one evaluation."""

    def __init__(self, runner: HostRunner, store: ResourceStore, step: Any) -> None:
        self.runner = runner
        self.store = store
        self.step = step

    def run_host_op(self, node: Node, args: list[Any]) -> Sequence[Any]:
        return self.runner.run_host_op(node, args, self.store, self.step)

    def run_traced(self, node: Node, args: Sequence[Any]) -> Sequence[Any]:
        return self.runner.run_traced(node, args, self.store, self.step)

    def run_bounded_loop(self, node: Node, args: Sequence[Any]) -> list[Any] | None:
        if self.step is not None and node in self.step.bodies:
            return None  # no program can ask other tasks
        return self.runner.loops.run_loop(node, args, self.store, self.step)

    def run_compiled_op(self, node: Node, args: list[Any]) -> Sequence[Any]:
        evaluation = Interpreting(self.store, self)
        return self.runner.run_compiled_op(node, args, evaluation)


class _Calling(Interpreting):
    """Evaluates a control flow op some of whose bodies run on several tasks.

    Args:
        bodies: (function, saved tensors) -> such a body; the step can run it.
    """

    def __init__(
        self,
        node: Node,
        bodies: Mapping[Any, Any],
        store: ResourceStore,
        bound: _BoundRunner,
    ) -> None:
        super().__init__(store, bound)
        self.node = node
        self.bodies = bodies
        self.step = bound.step
        self.interrupt = Watch(store, bound.step).interrupt

    def call(
        self, function: FuncGraph, args: Sequence[Any], extra: tuple[str, ...] = ()
    ) -> list[Any]:
        body = self.bodies.get((function, tuple(extra)))
        # The tasks that the body needs run it as a step of its own, which the owner starts.
        if body is not None:
            return [lists.to_host(v) for v in self.step.call_body(body.plan, args)]
        # State is held for this body only: one that runs elsewhere may wait for another step.
        if any(map(may_block, function_step(function, extra).nodes)):
            return super().call(function, args, extra)
        touched = RegionState([], {}, set())
        touched.add_bodies(self.node, [function], [a for a in args if _is_handle(a)])
        check = Watch(self.store, self.step).check
        with held(self.store, list(touched.reads), list(touched.writes), check):
            return super().call(function, args, extra)
