"""A region as an XLA program: what it is traced from, which memory it may reuse, its checks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp

from headrace.executor import equal_programs
from headrace.executor.beside import Beside
from headrace.executor.compiling import timed
from headrace.executor.early_checks import Covered
from headrace.executor.evaluate import Tracing, Values
from headrace.executor.flat_programs import flat, is_elementwise
from headrace.executor.interrupts import NOBODY, LoopPolls, compiling
from headrace.executor.last_reads import LastReads
from headrace.executor.long_kernels import takes_long
from headrace.executor.made_once import made_once
from headrace.executor.matrix_turns import MATRIX_TURN, factors_batches, in_turn
from headrace.executor.recycling import Recycled
from headrace.executor.region_checks import CheckSink
from headrace.executor.resources import ResourceStore, StateKey
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.core import checks
from headrace.passes.ir import Node
from headrace.settings import flags

if TYPE_CHECKING:
    from headrace.executor.region import Region

#: Bytes of all values of a program from which on it is watched for a lack of memory.
LARGE = 16 << 20
#: State of so many bytes that NumPy has made goes to the device before the first call: to copy it
#: for each call takes longer than what the call does with it, and only what NumPy happens to have
#: aligned is not copied.
MOVED = 1 << 16


def moved(store: ResourceStore, key: StateKey, value: np.ndarray[Any, Any]) -> jax.Array:
    """State that NumPy has made, on the device from now on, unless it has been changed meanwhile.

    Whoever calls has the device's scope (`RegionOptions.scope`).
    """
    on_device: jax.Array = jax.device_put(value, may_alias=False)
    with store.lock:  # nobody waits for a step that was given up
        if store.get(key) is value:
            store.put(key, on_device, rows=())
    return on_device


class InPlace(NamedTuple):
    """What a region is told because it changes large variables.

    Attributes:
        is_large: whether it changes large variables at all; early checks then follow views of
            what comes in.
        trusted: what has been checked before the region runs.
        changed_in_part: large variables of which it changes a part; ``changed_whole``: large ones
            that it changes as a whole. What reads them comes first (see `executor.last_reads`).
    """

    is_large: bool = False
    trusted: frozenset[Covered] = frozenset()
    changed_in_part: frozenset[StateKey] = frozenset()
    changed_whole: frozenset[StateKey] = frozenset()


NOTHING_LARGE = InPlace()


class _HasChecks(Exception):
    """A program that was to reuse the buffers of old state has checks among its kernels."""


class _MayStop(Exception):
    """A program that was to reuse the buffers of old state may take long, so that its step may be
    given up: who reads would wait for what nobody wants."""


class _Gone(Exception):
    """The code of a program that has gone was to be traced once more."""


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
        #: Of what comes in, as it is filled up.
        self.shapes: tuple[Any, ...] = ()
        #: Bytes that it takes beside its inputs, once that has been asked for.
        self.needed: int | None = None
        #: Its compilation in another thread, once that has begun.
        self.beside: Beside | None = None
        #: Whether it has run to its end: what fails for lack of memory mostly does at once.
        self.proven = False
        #: For a program with much data: the node that makes the largest piece of it.
        self.largest: Node | None = None
        #: Whether XLA may reuse the buffers of state that is replaced.
        self.donates = not region.keeps_old
        #: Whether the checks are a program of their own, which runs first.
        self.checks_first = False
        #: Whether it hands back the outcome of checks.
        self.has_checks = False
        #: Whether its loops ask if they go on.
        self.asks = False
        #: Whether XLA computes in the call, and may take long for it.
        self.is_long = False
        #: Whether it calls LAPACK for batches: no other such program runs at the same time.
        self.takes_turns = False
        #: Whether its arrays have one dimension inside.
        self.is_flat = False
        #: Code of each check.
        self.messages: dict[tuple[Node | None, str], int] = {}
        #: Where outputs only pass through: the large ones.
        self.recycled = Recycled(region.outputs if region.options.passes_on else ())

    @property
    def may_ask(self) -> bool:
        """Whether its loops ask, or it has not been traced, so that nobody knows."""
        return self.asks or (not self.proven and self.region.has_loops)

    @property
    def may_wait(self) -> bool:
        """Whether what it gives is awaited before others see it: it may be given up until then."""
        return self.asks or self.is_long or self.largest is not None

    @cached_property
    def _key(self) -> equal_programs.Key | None:
        return equal_programs.key_of(self)

    @cached_property
    def shared(self) -> equal_programs.Code | None:
        """The code of an equal program that had run before this one was compiled."""
        code = equal_programs.code_for(self._key)
        if code is not None:
            code.teach(self)
        return code

    def prove(self) -> None:
        """Note that it has run to its end, and leave its code to equal ones."""
        if not self.proven:
            self.proven = True
            equal_programs.keep(self._key, self)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The compiled program; XLA reuses the buffers of state that nobody may need again."""
        if self.shared is not None:
            return self.shared.function
        region = self.region
        donated = list(range(len(region.donated))) if self.donates else []
        spare = len(self.recycled.positions)
        count = len(region.donated) + len(region.kept) + len(region.dynamic)
        # The arrays to be recycled come behind the inputs. The trace does not use them, so JAX
        # would drop these arguments, were it not for `keep_unused`.
        donated += range(count, count + spare)
        has_loops = region.has_loops

        # The code outlives this program: it must not hold its session.
        own = weakref.ref(self)

        # A function of its own: bound methods are equal, so JAX would file what it compiles under
        # the method of a program that is given up, forget it with that, and compile once more.
        def program(*args: Any) -> Any:
            traced = own()
            if traced is None:
                raise _Gone
            return traced._trace(args[:count], args[-1] if has_loops else None)

        if self.takes_turns:
            program = in_turn(program)
        elif self.is_flat:
            program = flat(program)
        return jax.jit(
            program,
            donate_argnums=tuple(donated),
            keep_unused=spare > 0,
            compiler_options=region.compiler_options,
        )

    @cached_property
    def checker(self) -> Callable[..., Any]:
        """A program of the checks alone: XLA drops all that they do not need."""

        def checker(*args: Any) -> Any:
            _, state = self._evaluate(args)
            return state.get(CheckSink.KEY)

        checks_in_turn = in_turn(checker) if self.takes_turns else checker
        return jax.jit(checks_in_turn, compiler_options=self.region.compiler_options)

    @property
    def is_quick(self) -> bool:
        """Whether a call returns at once, and nothing is to be waited for after it."""
        return self.proven and not (self.may_wait or self.has_checks or self.checks_first)

    def bytes_needed(self, args: Sequence[Any], beside: bool = False) -> int:
        """Compile the program; the bytes that it takes beside its inputs and what it reuses."""
        if self.needed is not None:  # a step that was given up has compiled it
            return self.needed
        args = self._with_spare(args, NOBODY)
        memory = timed(self, args, lambda: self._compiled(args).memory_analysis(), beside)
        if memory is None:  # the platform does not tell
            self.needed = LARGE
        else:
            outputs = memory.output_size_in_bytes - memory.alias_size_in_bytes
            self.needed = int(memory.temp_size_in_bytes + outputs)
        return self.needed

    def save(self, state: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Copies of the state whose memory a new program takes, in case it gets no more of it.

        A program that needs little beside its state always gets it; where it needs less than a
        copy of the state, the host is asked for that much instead.
        """
        needed = self.bytes_needed(args)
        if needed < LARGE:
            return []
        if self.region.platform == "cpu" and needed < sum(a.nbytes for a in state):
            np.empty(needed, np.uint8)  # raises if there is not so much
            return []
        return [np.array(a) for a in state]

    def compile(self, args: Sequence[Any], beside: bool = False) -> None:
        """Compile the program, and its checks, for arguments that need only have shapes.

        Args:
            beside: whether no step waits for it.
        """
        self.bytes_needed(args, beside)
        if self.checks_first:
            lowered = self.checker.lower(*args)  # type: ignore[attr-defined]
            with compiling():
                lowered.compile()

    def _compiled(self, args: Sequence[Any]) -> Any:
        """What JAX calls from now on for such arguments."""
        while True:
            try:
                lowered = self._traced(args).lower()
                with compiling():
                    return lowered.compile()
            except (_Gone, _HasChecks, _MayStop) as why:
                self._part_with(why)

    def _traced(self, args: Sequence[Any]) -> Any:
        """What is compiled for such arguments; JAX keeps it for the call."""
        traced = self.function.trace(*args)  # type: ignore[attr-defined]
        region = self.region
        if region.platform == "cpu" and not (self.takes_turns or self.is_flat):
            jaxpr = traced.jaxpr.jaxpr
            changes = bool(region.donated or self.recycled.positions)
            self.takes_turns = factors_batches(jaxpr)
            self.is_flat = not (self.takes_turns or changes) and is_elementwise(jaxpr)
            if self.takes_turns or self.is_flat:
                del self.function
                traced = self.function.trace(*args)  # type: ignore[attr-defined]
        self.is_long = self.takes_turns or takes_long(traced.jaxpr.jaxpr)
        # Not for large state: to keep the old values would take its memory twice.
        if self.is_long and self.donates and region.donated and not region.in_place.is_large:
            raise _MayStop
        return traced

    def check(self, args: Sequence[Any]) -> Any:
        """The outcome of checks that run first, None without any."""
        return self._ran(self.checker, args) if self.checks_first else None

    def call(
        self, args: Sequence[Any], token: Any = NOBODY
    ) -> tuple[list[Any], list[Any], Any, Any]:
        """Run the program; checks that run first have been made.

        Args:
            token: whom its loops ask; see `executor.interrupts`.

        Returns:
            Outputs, new state, the outcome of the checks (or None), and something to wait for (or
            None).
        """
        while True:
            try:
                results = self._call(self._with_spare(args, token))
            except (_Gone, _HasChecks, _MayStop) as why:
                self._part_with(why)
                continue
            if self.recycled.positions:
                self.recycled.keep(results[0])
            result: tuple[list[Any], list[Any], Any, Any] = results
            return result

    def _call(self, args: Sequence[Any]) -> Any:
        # It has been compiled.
        if self.proven or self.needed is not None or self.shared is not None:
            return self._ran(self.function, args)
        self._traced(args)
        if self.region.has_loops or self.is_long:  # the call is no part of compiling
            timed(self, args, lambda: self._compiled(args))
            return self._ran(self.function, args)
        # XLA computes in the background: the first call takes as long as compiling does.
        with compiling():
            return timed(self, args, lambda: self.function(*args))

    def _ran(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """What a compiled function gives; one that takes turns has ended then."""
        if not self.takes_turns:
            return function(*args)
        with MATRIX_TURN:
            return jax.block_until_ready(function(*args))  # type: ignore[no-untyped-call]

    def _part_with(self, why: Exception) -> None:
        """Large state is changed in place, by a program without checks; else old state is kept."""
        del self.function
        self.shared = None
        if isinstance(why, _Gone):
            return
        if isinstance(why, _HasChecks) and self.region.in_place.is_large:
            self.checks_first = True
        else:
            self.donates = False

    def _with_spare(self, args: Sequence[Any], token: Any) -> Sequence[Any]:
        if self.recycled.positions:
            args = [*args, *self.recycled.take()]
        return [*args, token] if self.region.has_loops else args

    def _evaluate(
        self, args: Sequence[Any], collects: bool = True, token: Any = None
    ) -> tuple[Values, dict[Any, Any]]:
        """Trace the nodes; returns their values, and state after them."""
        region = self.region
        state_keys = (*region.donated, *region.kept)
        # The arguments are state first, then what comes in.
        state: dict[StateKey, Any] = dict(zip(state_keys, args, strict=False))
        in_place = region.in_place
        # Elsewhere XLA has put operations in order by the time that it copies.
        whole = in_place.changed_whole if region.platform == "cpu" else ()
        reads = LastReads(in_place.changed_in_part, whole)
        tracing = Tracing(state, region.platform, reads)
        on_host = region.options.host is not None and region.platform == "cpu"
        tracing.may_leave = on_host and flags.interpret != "never"
        if region.platform == "cpu":
            tracing.made_once = made_once(region.nodes, region.outputs)
        polls = None
        if token is not None:
            polls = tracing.polls = LoopPolls(token)
            state[tracing.stopped_key] = jnp.bool_(False)
        values: Values = {}
        bind_edges(values, zip(region.dynamic, args[len(state_keys) :], strict=True))
        bind_edges(values, self.static.items())
        bind_edges(values, region.handles.items())
        sink = CheckSink(tracing, region.touched.checked, self.messages) if collects else _ignore
        with checks.collecting(sink):
            region.together.evaluate(tracing, values)
        # While another thread compiles it, those who interpret it compare sizes.
        if region.sizes is not None and self.beside is None:
            region.sizes.note(self, values)
            if region.sizes.apart:
                region.sizes.part()  # before anything is compiled
        # No check was traced: the program has no outcome to hand back.
        if not (isinstance(sink, CheckSink) and sink.used):
            state.pop(CheckSink.KEY, None)
        if tracing.bytes > LARGE:
            self.largest = tracing.largest[1]
        self.asks = polls is not None and polls.used > 0
        return values, state

    def _trace(self, args: Sequence[Any], token: Any) -> tuple[list[Any], list[Any], Any, Any]:
        """Outputs, new state, outcome of the checks (or None), something to wait for (or None)."""
        region = self.region
        values, state = self._evaluate(args, collects=not self.checks_first, token=token)
        failed = state.get(CheckSink.KEY)
        # A step that is given up, or whose check fails, must leave the old values, but XLA has
        # taken their memory by then. Whoever called tries again with another kind of program.
        if self.donates and region.donated:
            if self.asks:
                raise _MayStop
            if failed is not None:
                raise _HasChecks
        self.has_checks = failed is not None
        outputs = [_result(values[n][i]) for n, i in region.outputs]
        new_state = [state[k] for k in region.written]
        # Without outputs there must be something to wait for that no other step can take away.
        waits_for = None if outputs or failed is not None else jnp.int32(0)
        return outputs, new_state, failed, waits_for


def _ignore(ok: Any, message: str, data: tuple[Any, ...]) -> None:
    """Another program makes the check."""


def bind_edges(values: Values, pairs: Any) -> None:
    """Give known values to outputs of nodes outside the region."""
    for (node, index), value in pairs:
        outputs = values.get(node)
        if outputs is None:
            outputs = values[node] = [None] * max(1, len(node.dtypes))
        outputs[index] = value  # type: ignore[index]


def _result(value: Any) -> Any:
    """An output of a program: an array, or a tensor list made of arrays."""
    if isinstance(value, lists.TensorList):
        return jax.tree.map(jnp.asarray, lists.to_program(value))
    return jnp.asarray(value)


__all__ = ["MOVED", "NOTHING_LARGE", "InPlace", "Program", "bind_edges", "moved"]
