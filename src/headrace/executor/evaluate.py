"""Evaluating nodes one after another, on traced values (to compile) or on arrays (to interpret).

Both kinds of evaluation share this walk: an op's ``kernel`` serves the first, its ``interpret``
the second. Values that are known while tracing (constants, shapes) stay NumPy arrays, so shape
arithmetic never reaches XLA.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.executor.failures import came, count_bytes, kernel_error, shape_problem
from headrace.executor.last_reads import LastReads
from headrace.executor.made_once import held
from headrace.executor.resources import (
    RandomStream,
    StateKey,
    handle_for,
)
from headrace.executor.rounding import in_order
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import fully_known, is_concrete
from headrace.ops.core.registry import grouped
from headrace.ops.random import philox
from headrace.passes.ir import Node, StepGraph, function_step, partial_step
from headrace.placement.cost import node_cost

#: Arrays above this size are not computed while tracing: XLA does it when the program runs.
FOLD_LIMIT = 1 << 16

#: About what a compiled program takes, on one core: for each op, byte it makes and operation.
_SECONDS_PER_OP, _SECONDS_PER_BYTE, _SECONDS_PER_OPERATION = 3e-7, 2e-10, 1e-10

Values = dict[Node, Sequence[Any]]


class NeedsHost(Exception):
    """A traced node needs a value that only exists when the program runs.

    Attributes:
        beside: further nodes that are to run on the host with it.
    """

    def __init__(self, node: Node, why: str, beside: Iterable[Node] = ()) -> None:
        super().__init__(f"{node.name}: {why}")
        self.node = node
        self.why = why
        self.beside = frozenset(beside)


class TookTooLong(Exception):
    """More was interpreted than compiling would have cost."""


class Prepared:
    """How to call a node's implementations, worked out once per node."""

    __slots__ = (
        "__weakref__",
        "effects",
        "groups",
        "host",
        "interpret",
        "kernel",
        "may_block",
        "memo",
        "node",
        "op_def",
        "outputs",
        "pure",
        "seen_shapes",
        "static",
    )

    #: Keeps watch over the end of the node.
    node: weakref.ref[Node]

    def __init__(self, node: Node) -> None:
        d = node.op_def
        self.op_def = d
        self.effects = d.effects
        self.pure = not (d.effects.reads or d.effects.writes or d.effects.random)
        self.static = d.static_inputs(node.attrs)
        self.groups = d.group_sizes(node.attrs)
        self.kernel = bind_attrs(d.kernel, d.kernel_params, node.attrs)
        self.interpret = bind_attrs(d.interpret, d.interpret_params, node.attrs)
        self.host = bind_attrs(d.host, d.host_params, node.attrs)
        self.outputs = len(node.dtypes)
        #: What has been worked out for a run of the node and is kept for the next: by its host op,
        #: and by who runs it.
        self.memo: dict[Any, Any] = {}
        #: Whether an op in its bodies may wait for another; worked out on first use.
        self.may_block: bool | None = None
        #: Input shapes that the shape rule has accepted; None when the graph's own shapes say all.
        self.seen_shapes: set[Any] | None = None
        # Full shapes were looked at as the graph was built.
        if self.pure and any(not fully_known(source.dims[i]) for source, i in node.inputs):
            self.seen_shapes = set()


def bind_attrs(
    function: Callable[..., Any] | None, names: Iterable[str], attrs: dict[str, Any]
) -> Callable[..., Any] | None:
    if function is None:
        return None
    chosen = {n: attrs[n] for n in names if n in attrs}
    return partial(function, **chosen) if chosen else function


#: By the identity of a node, as long as that lives. A WeakKeyDictionary would take four times as
#: long to look up, and this is asked for each operation that is interpreted.
_prepared: dict[int, Prepared] = {}
_find = _prepared.get


def prepared(node: Node) -> Prepared:
    """The node's call plan."""
    return _find(id(node)) or _prepare(node)


def _prepare(node: Node) -> Prepared:
    key = id(node)
    made = Prepared(node)
    # Python tells of the end of a node before it gives its identity to another object.
    made.node = weakref.ref(node, partial(_prepared.pop, key))
    _prepared[key] = made
    return made


def check_shapes(node: Node, args: Sequence[Any], seen: set[Any]) -> None:
    """Ask the op's shape rule about shapes that the graph did not know.

    Some kernels would make the best of shapes that do not fit.

    Raises:
        InvalidArgumentError: if they do not fit.
    """
    shapes = tuple([getattr(a, "shape", None) for a in args])
    if shapes in seen:
        return
    problem = shape_problem(node, args)
    if problem is not None:
        raise InvalidArgumentError(None, node.op, problem.rstrip(".") + came(node, args))
    seen.add(shapes)


class Evaluation:
    """Base of both kinds: walks nodes and hands control-flow ops the means to run bodies."""

    #: Whether values are tracers of a program being compiled.
    tracing = False
    #: Whether only the forms of values are wanted (see `ops.control.flow_kernels.Probe`).
    probing = False
    #: The node being evaluated.
    current: Node | None = None
    platform = "cpu"
    #: How compiled loops ask whether they go on (`executor.interrupts`); None: they do not.
    polls: Any = None
    #: Estimated, of what was traced so far as it will run.
    seconds = 0.0
    #: The key under which a traced program carries the outcome of its checks.
    checks_key = RandomStream("/checks")
    #: The key under which it carries whether a loop was told to end.
    stopped_key = RandomStream("/stopped")

    def evaluate_all(self, nodes: Iterable[Node], values: Values) -> None:
        """Evaluate ``nodes`` (in order) into ``values``; nodes already there are left alone."""
        node = None
        args: list[Any] = []
        evaluate = self.evaluate
        try:
            for node in nodes:
                if node not in values:
                    args = [values[n][i] for n, i in node.inputs]
                    values[node] = evaluate(node, args)
        except (NeedsHost, TookTooLong):
            raise
        except Exception as error:
            raise_as(node, error, args)

    def guarded(self, node: Node, args: list[Any]) -> Sequence[Any]:
        """Evaluate one node; whatever it raises names the user's op."""
        values: Values = {}
        for (source, i), arg in zip(node.inputs, args, strict=True):
            outputs = values.setdefault(source, [None] * max(1, len(source.dtypes)))
            outputs[i] = arg  # type: ignore[index]
        self.evaluate_all((node,), values)
        return values[node]

    def call(
        self, function: FuncGraph, args: Sequence[Any], extra: tuple[str, ...] = ()
    ) -> list[Any]:
        """Run a function body on inputs and captures.

        Returns its outputs, then the values of the inner tensors named in ``extra``.
        """
        return self.run_step(function_step(function, extra), args)

    def call_part(
        self, function: FuncGraph, tensors: Sequence[Tensor], args: Sequence[Any]
    ) -> list[Any]:
        """Compute only some inner tensors of a function body; ``args`` as for ``call``."""
        return self.run_step(partial_step(function, tensors), args)

    def run_step(self, step: StepGraph, args: Sequence[Any]) -> list[Any]:
        """Run a step graph whose feeds are ``args``; returns its fetches."""
        values: Values = {feed: (arg,) for feed, arg in zip(step.feeds, args, strict=True)}
        self.evaluate_all(step.nodes, values)
        return [values[n][i] for n, i in step.fetches]

    def evaluate(self, node: Node, args: list[Any]) -> Sequence[Any]:
        raise NotImplementedError

    # State, by key.

    def read(self, key: StateKey, node: Node) -> Any:
        raise NotImplementedError

    def write(self, key: StateKey, value: Any) -> None:
        raise NotImplementedError

    def stateful_call(
        self, node: Node, call: Callable[..., Any], args: list[Any], p: Prepared
    ) -> Sequence[Any]:
        """Call an implementation with the state it reads, and store the state it returns."""
        effects = p.effects
        handles = {i: args[i] for i in (*effects.reads, *effects.writes)}
        # Handles give way to the values they stand for; None for what is only written.
        for i, handle in handles.items():
            args[i] = self.read(handle, node) if i in effects.reads else None
        inputs = grouped(args, p.groups)
        if effects.random:
            stream = random_stream(node)
            advanced, *drawn = call(*inputs, rng=self.read(stream, node))
            self.write(stream, advanced)
            return list(drawn)
        result = call(*inputs)
        writes = effects.writes
        if not writes:
            return as_outputs(result, p.outputs)
        # New values first, one for each written input, then the outputs.
        everything = result if isinstance(result, (tuple, list)) else (result,)
        for i, value in zip(writes, everything, strict=False):
            self.write(handles[i], value)
        return list(everything[len(writes) :])


def raise_as(node: Node | None, error: Exception, args: Sequence[Any]) -> NoReturn:
    """Raise what came out of evaluating ``node`` as an error that names the user's op."""
    if isinstance(error, checks.NeedsValue):
        assert node is not None
        raise NeedsHost(node, str(error)) from None
    if not isinstance(error, OpError):
        raise kernel_error(node, error, args) from error
    if error.op is not None or node is None or node.op is None:
        raise error
    # A kernel knows nothing of the graph: only here the error gets its op.
    raise with_op(error, node.op) from error.__cause__


def with_op(error: OpError, op: Any) -> OpError:
    """The same error, naming the operation it happened in."""
    if type(error) is OpError:
        return OpError(None, op, error.message, error.error_code)
    return type(error)(None, op, error.message)  # type: ignore[call-arg]


def as_outputs(result: Any, count: int) -> Sequence[Any]:
    """What an implementation returned, as a flat sequence of ``count`` outputs."""
    if isinstance(result, (tuple, list)):
        if any(isinstance(r, list) for r in result):
            return [x for r in result for x in (r if isinstance(r, list) else [r])]
        return result
    return (result,) if count else ()


class Tracing(Evaluation):
    """Evaluation under ``jax.jit``: state is a dictionary of traced values."""

    tracing = True
    #: Whether an op may be left to the host: not in a function body, all of which would go there.
    may_leave = False
    #: Nodes whose output is written down before anything is made of it.
    made_once: frozenset[Node] = frozenset()

    def __init__(
        self,
        state: dict[StateKey, Any],
        platform: str,
        reads: LastReads | None = None,
    ) -> None:
        self.state = state
        self.platform = platform
        #: What is made of variables that change in place: who reads them does so before.
        self.reads = reads if reads is not None else LastReads()
        #: Keys written so far, in order.
        self.written: dict[StateKey, None] = {}
        #: What is known of the forms that branches give, by node, arguments and state.
        self.probes: dict[Any, Any] = {}
        #: Bytes of all values computed, and the node with the largest.
        self.bytes = 0
        self.largest: tuple[int, Node | None] = (0, None)

    def scratch(self) -> Tracing:
        """An evaluation that starts from the same state and keeps its changes to itself."""
        return Tracing(dict(self.state), self.platform, self.reads.scratch())

    def run_step(self, step: StepGraph, args: Sequence[Any]) -> list[Any]:
        may_leave, self.may_leave = self.may_leave, False
        try:
            return super().run_step(step, args)
        finally:
            self.may_leave = may_leave

    def read(self, key: StateKey, node: Node) -> Any:
        value = self.state.get(key)
        if value is None:
            raise NeedsHost(node, f"{key} has no value yet")
        return value

    def write(self, key: StateKey, value: Any) -> None:
        self.state[key] = value
        self.written[key] = None

    def count(self, node: Node, outputs: Sequence[Any], args: Sequence[Any]) -> None:
        size = count_bytes(node.op, outputs, args)
        self.bytes += size
        if not node.op_def.traits.is_view:
            self.seconds += _SECONDS_PER_OP + size * _SECONDS_PER_BYTE
        if node.op_def.cost is not None:
            self.seconds += node_cost(node) * _SECONDS_PER_OPERATION
        if size > self.largest[0]:
            self.largest = (size, node)

    def evaluate(self, node: Node, args: list[Any]) -> Sequence[Any]:
        p = prepared(node)
        d = p.op_def
        self.current = node
        if d.makes_handle:
            return (handle_for(node),)
        if d.lower is not None:
            try:
                outputs = d.lower(self, node, args)
            except NeedsHost as signal:
                # The node of a body cannot go to the host alone: the whole op does.
                signal.node = node
                raise
            return self._noted(node, args, outputs)
        if d.kernel is None:
            raise NeedsHost(node, "runs outside XLA")
        wins = d.traits.numpy_wins
        if wins is not None and self.may_leave and wins(*args):
            raise NeedsHost(node, "NumPy takes less time for it")
        # XLA compiles for such values: what only the run tells makes the node one for the host.
        for i in p.static:
            if not is_concrete(args[i]):
                raise NeedsHost(node, f"input {i} must be known before the program is compiled")
        if not p.pure:
            handles = [args[i] for i in p.effects.reads]
            changed = [args[i] for i in p.effects.writes]
            self.reads.before_change(changed, self.state)
            outputs = self.stateful_call(node, p.kernel, args, p)  # type: ignore[arg-type]
            if not changed:
                outputs = self._noted(node, handles, outputs)
            self.count(node, outputs, args)
            return outputs
        if p.seen_shapes is not None:
            check_shapes(node, args, p.seen_shapes)
        # Known and small: computed now, so that shapes made of it are known as well.
        if p.interpret is not None and p.outputs and foldable(node, args):
            with np.errstate(all="ignore"), checks.collecting(None):
                return as_outputs(p.interpret(*grouped(args, p.groups)), p.outputs)
        inputs = grouped(in_order(node, args), p.groups)
        outputs = as_outputs(p.kernel(*inputs), p.outputs)  # type: ignore[misc]
        if node in self.made_once:
            outputs = held(outputs)
        outputs = self._noted(node, args, outputs)
        self.count(node, outputs, args)
        return outputs

    def _noted(self, node: Node, args: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
        return self.reads.read(node, args, outputs, self.state) if self.reads else outputs


def flat_static(node: Node) -> tuple[int, ...]:
    """Positions of the inputs of ``node`` that must be known before it is compiled."""
    return prepared(node).static if node.op_def.static else ()


def foldable(node: Node, args: Sequence[Any]) -> bool:
    """Whether to compute a pure node now: all inputs known, and small."""
    total = 0
    for arg in args:
        if not isinstance(arg, (np.ndarray, np.generic)):
            return False
        total += arg.size
    if total > FOLD_LIMIT:
        return False
    return all(_small(d) for d in node.dims)


def _small(dims: Any) -> bool:
    if dims is None:
        return True
    size = 1
    for d in dims:
        size *= 1 if d is None else d
    return size <= FOLD_LIMIT


def random_stream(node: Node) -> RandomStream:
    """The stream of a random op; ops of function bodies are told apart by their function."""
    graph = node.op.graph if node.op is not None else None
    if isinstance(graph, FuncGraph):
        return RandomStream(f"{graph.name}/{node.op.name}")  # type: ignore[union-attr]
    return RandomStream(node.name)


def initial_stream(node: Node) -> Any:
    """The Philox state of a random op before its first run."""
    return philox.initial_state(node.attrs.get("seed", 0), node.attrs.get("seed2", 0))
