"""Regions: maximal groups of nodes that XLA runs as one program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn

import jax
import numpy as np

from headrace.errors import OpError
from headrace.executor.beside import Beside
from headrace.executor.changed_rows import ChangedRows
from headrace.executor.changing_sizes import ChangingSizes
from headrace.executor.claims import held, replacing
from headrace.executor.compiling import Compilation
from headrace.executor.early_checks import EarlyChecks
from headrace.executor.evaluate import (
    NeedsHost,
    TookTooLong,
    Values,
    initial_stream,
    with_op,
)
from headrace.executor.interpreting import Interpreting
from headrace.executor.interrupts import Watch, is_ready, wait_until_ready
from headrace.executor.list_loops import ListLoops
from headrace.executor.null import NullProgram, is_null
from headrace.executor.policy import CALL, NEVER, costs_less, costs_less_as_run
from headrace.executor.program import MOVED, NOTHING_LARGE, InPlace, Program, bind_edges, moved
from headrace.executor.region_checks import raise_failed, rerun
from headrace.executor.region_options import RegionOptions, label_of, static_key
from headrace.executor.resources import (
    RandomStream,
    ResourceHandle,
    ResourceStore,
    StateKey,
    Transaction,
    uninitialized,
)
from headrace.executor.side_by_side import SideBySide
from headrace.executor.spare_rows import SpareRows
from headrace.executor.step_context import StepContext
from headrace.executor.touched import RegionState, has_loops, is_integer_view
from headrace.executor.waiting import Waiting
from headrace.graph.dtypes import variant
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.core import checks
from headrace.ops.core.registry import HostResource
from headrace.passes.ir import FEED, Edge, Node
from headrace.settings import flags

_nothing = contextlib.nullcontext()
#: A region keeps the programs of this many combinations of shapes and static values.
MAX_PROGRAMS = 256


class Region:
    """Nodes that run as one XLA program, with what crosses its border.

    Attributes:
        dynamic: edges that come in as arrays; ``static``: edges whose values the program is
            compiled for; ``outputs``: edges that others need.
        sizes: what of it depends on sizes that change; None unless it ``may_part``: unless a plan
            takes out of it what it asks for.
        spare: how lists of rows are filled up, so that one program serves many lengths.
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
        in_place: InPlace = NOTHING_LARGE,
        may_part: bool = False,
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
        self.in_place = in_place
        self.early = EarlyChecks(
            nodes, [*dynamic, *static], handles, in_place.is_large, in_place.trusted
        )
        self.sizes = ChangingSizes(self) if may_part else None
        self.spare = SpareRows.of(nodes, dynamic, outputs, handles, self.early.nodes)
        self.touched = touched = RegionState(nodes, handles, self.early.nodes)
        self.written: list[StateKey] = list(touched.writes)
        self.changed_rows = ChangedRows(nodes, dynamic, handles)
        # What is read and replaced: XLA puts the new value where the old one was, so that a step
        # has its variables in memory once, not twice.
        self.donated = [k for k in self.written if k in touched.reads]
        self.kept = [k for k in touched.reads if k not in touched.writes]
        self.together = SideBySide(nodes, handles, in_place.changed_in_part)
        self.read_keys: list[StateKey] = [*self.donated, *self.kept]
        self.keeps_old = False
        self.pending: Any = None
        #: The last time that one of its programs was compiled.
        self.compiled: Compilation | None = None
        self._programs: dict[Any, Program] = {}
        #: What runs in place of programs on a NULL device.
        self.null = NullProgram(self) if is_null(nodes[0].device) else None
        if self.null is None:
            self.waiting = Waiting(self)

    @property
    def can_fail(self) -> bool:
        """Whether a run may end in an error: of a check, or of a variable without a value."""
        reads = any(isinstance(k, ResourceHandle) for k in self.touched.reads)
        return self.touched.may_fail or bool(self.early.checks) or reads

    @property
    def is_proven(self) -> bool:
        """Whether it has run, and none of its programs is still to be compiled."""
        programs = self._programs.values()
        done = bool(programs) and all(p.proven or not p.turn.is_open for p in programs)
        return done or self.null is not None or self.reads_only is not None

    @property
    def is_idle(self) -> bool:
        """Nothing comes of running it (no-ops that only order others); reads may still fail."""
        touched = self.touched
        return not (self.outputs or self.written or touched.reads or touched.may_fail)

    @cached_property
    def has_loops(self) -> bool:
        """Whether its programs are told whom their loops ask."""
        return has_loops(self.nodes)

    @cached_property
    def list_loops(self) -> ListLoops:
        """How its loops run while it is interpreted."""
        return ListLoops(self.options)

    @property
    def loop_programs(self) -> int:
        """How many programs its loops have become."""
        return self.list_loops.programs if "list_loops" in self.__dict__ else 0

    def run(
        self,
        store: ResourceStore,
        dynamic: Sequence[Any],
        static: Sequence[Any],
        context: StepContext | None = None,
    ) -> list[Any]:
        """Run once. ``dynamic`` and ``static`` are arrays for the edges of the same names.

        Args:
            context: of the step, which may be given up meanwhile.

        Raises:
            OpError: when an op fails; no variable has changed then.
            NeedsHost: when a node turns out to need the host; nothing has run then.
        """
        if self.null is not None:
            return self.null.run(store)
        if self.reads_only is not None:
            return self._read(store, self.reads_only, context)
        if self.sizes is not None and self.sizes.apart:
            self.sizes.part()
        if self.takes_lists:
            dynamic = list(map(lists.to_program, dynamic))
        if self.options.device is not None:
            dynamic = self.options.here(dynamic)
        # The quick ways first, with the lock held: they wait for nothing.
        with store.lock:
            program = self.program_for(dynamic, static)
            interprets = self.waiting.interprets(program.turn, dynamic)
            if program.turn.in_background and program.beside is None:
                program.beside = Beside(program, store, dynamic)
            if interprets:
                if self.is_brief and not store.claims.writers and self._all_there(store, dynamic):
                    return self.interpret(store, dynamic, static, program, None, {})
            elif program.is_quick and self._are_there(dynamic):
                return self.run_quickly(program, store, dynamic, context)
        # From here on it may wait. So it holds its own state, not the lock: steps that use other
        # state go on meanwhile.
        watch = Watch(store, context)
        if program.beside is not None and not interprets:
            program.beside.wait(watch)
        keys = self.read_keys, self.written
        with held(store, *keys, watch.check, watch.is_given_up) as values:
            if interprets:
                try:
                    return self.interpret(store, dynamic, static, program, watch, values)
                except TookTooLong:
                    self.waiting.give_up(program.turn)  # what it did is dropped; it compiles now
            return self._run_patiently(program, store, dynamic, watch, values)

    @cached_property
    def is_brief(self) -> bool:
        """Whether to interpret it takes a moment: then it may happen with the lock held."""
        return costs_less(self.nodes, CALL)

    def _all_there(self, store: ResourceStore, dynamic: Sequence[Any]) -> bool:
        """Whether nothing that comes in, and no state, is still being computed."""
        for value in dynamic:
            if type(value) is not np.ndarray and not is_ready(value):
                return False
        return not self.read_keys or all(map(is_ready, store.get_all(self.read_keys)))

    def _are_there(self, dynamic: Sequence[Any]) -> bool:
        """Whether early checks have what they look at: nobody waits under the lock."""
        return not self.early.checks or all(map(is_ready, dynamic))

    @property
    def label(self) -> str:
        """How the region is called in traces and messages."""
        return label_of(self.nodes, self.outputs)

    @cached_property
    def between_hosts(self) -> bool:
        """Whether it makes something of what host ops give, or views of feeds, and has no state."""
        touched = self.touched
        views = all(map(is_integer_view, self.nodes))
        from_host = all(
            n.op_def.host is not None or (views and n.op_def is FEED) for n, _ in self.dynamic
        )
        return bool(self.dynamic) and from_host and touched.is_empty

    @cached_property
    def reads_only(self) -> list[ResourceHandle] | None:
        """The variable of each output, if all that the nodes do is to read variables."""
        if any(n.op_def.name != "ReadVariableOp" for n in self.nodes):
            return None
        read = [self.handles.get(n.inputs[0]) for n, _ in self.outputs]
        found = [h for h in read if isinstance(h, ResourceHandle)]
        return found if len(found) == len(read) else None

    def _read(
        self,
        store: ResourceStore,
        handles: Sequence[ResourceHandle],
        context: StepContext | None,
    ) -> list[Any]:
        """The values of variables. XLA reuses no buffer of which such a view is alive."""
        claims = store.claims
        with store.lock:
            if claims.replaced:  # a program is being given one of them
                check = Watch(store, context).check
                claims.wait_until_there(map(store.claim_key, handles), check)
            values, pending = store.get_all(handles), []
            for position, value in enumerate(values):
                if value is None:
                    values[position] = self.first_value(store, handles[position])
                elif type(value) is not np.ndarray and not is_ready(value):
                    pending.append(value)
            if not pending:
                return [np.asarray(v) for v in values]
            store.claims.lend(values)  # nobody changes any of them in place meanwhile
        try:
            wait_until_ready(pending, Watch(store, context))
            return [np.asarray(v) for v in values]
        finally:
            with store.lock:
                store.claims.give_back(values)

    def keep_old(self, keeps_old: bool) -> None:
        """Say whether a later unit may fail: old values must then survive until the step ends."""
        if keeps_old != self.keeps_old:
            self.keeps_old = keeps_old
            self._programs.clear()  # those made so far may give their state away

    def program_for(self, dynamic: Sequence[Any], static: Sequence[Any]) -> Program:
        """The one for these inputs. Types the graph has fixed; shapes it may leave open."""
        shapes = tuple([a.shape for a in dynamic])
        constants = tuple([static_key(s) for s in static]) if static else ()
        program = self._programs.get((shapes, constants))
        if program is None and self.spare is not None and self._programs:
            shapes = self.spare.room_for(shapes)
            program = self._programs.get((shapes, constants))
        if program is None:
            if len(self._programs) >= MAX_PROGRAMS:
                del self._programs[min(self._programs, key=lambda k: self._programs[k].last_run)]
            program = self._programs[shapes, constants] = Program(self, static)
            program.shapes = shapes
        program.last_run = self.waiting.runs
        return program

    def _args(
        self,
        program: Program,
        store: ResourceStore,
        dynamic: Sequence[Any],
        state: list[Any],
    ) -> list[Any]:
        """What a program takes, after the early checks."""
        if self.early.checks:
            given = [*zip(self.dynamic, dynamic, strict=True), *program.static.items()]
            self.early.make_checks(store, self.options.host, given)
        for position, value in enumerate(state):
            if value is None:
                state[position] = self.first_value(store, self.read_keys[position])
        if self.spare is not None:
            dynamic = self.spare.filled(dynamic, program.shapes)
        return [*state, *dynamic]

    def quick_program(self, dynamic: Sequence[Any]) -> Program | None:
        """The one for these inputs if it is compiled and calls for no wait; the run counts."""
        program = self._programs.get((tuple([a.shape for a in dynamic]), ()))
        if program is None or not (program.turn.started and program.is_quick):
            return None
        if (self.sizes is not None and self.sizes.apart) or not self._are_there(dynamic):
            return None
        self.waiting.runs = program.last_run = self.waiting.runs + 1
        return program

    def is_left_to_numpy(self, dynamic: Sequence[Any]) -> bool:
        """Whether a run has shown that NumPy takes less time for such inputs than a program."""
        program = self._programs.get((tuple([a.shape for a in dynamic]), ()))
        return program is not None and not program.turn.is_open

    def run_quickly(
        self,
        program: Program,
        store: ResourceStore,
        dynamic: Sequence[Any],
        context: StepContext | None,
    ) -> list[Any]:
        """Hand a program to XLA, with the lock held: there is nothing to wait for."""
        if context is not None:
            context.check_deadline()
        claims = store.claims
        if claims.writers or claims.replaced:  # mostly there are none
            keys = [store.claim_key(k) for k in self.written]
            check = Watch(store, context).check
            claims.wait_until_free(keys, check)
            claims.wait_until_there(map(store.claim_key, self.read_keys), check)
        if claims.lent and program.donates:
            self._await_readers(store, Watch(store, context).check)
        args = self._args(program, store, dynamic, store.get_all(self.read_keys))
        self._to_donate(program, store, args)
        with self.options.scope():
            try:
                outputs, new_state, _, self.pending = program.call(args)
            except Exception as error:
                self.raise_explained(error, program, store, dynamic, args, [])
        # XLA may still be computing these arrays. The next step takes them all the same, and
        # nothing has to be taken back: a quick program has no checks and has run before.
        store.put_all(self.written, new_state, self.changed_rows.of(dynamic))
        return outputs

    def _await_readers(self, store: ResourceStore, check: Callable[[], float | None]) -> None:
        """Wait a little for who reads state that XLA is about to reuse; the lock is held."""
        keys = [store.claim_key(k) for k in self.donated]
        store.claims.wait_for_readers(partial(store.get_all, self.donated), keys, check)

    def _changing(
        self, program: Program, store: ResourceStore, args: list[Any], watch: Watch
    ) -> contextlib.AbstractContextManager[None]:
        """A block around the call of a program that changes state in place."""
        return replacing(
            store,
            self.written,
            watch.check,
            wait=partial(self._await_readers, store, watch.check),
            begin=partial(self._to_donate, program, store, args),
        )

    def _to_donate(self, program: Program, store: ResourceStore, args: list[Any]) -> None:
        """Replace state that XLA is about to reuse and that others read by copies."""
        if store.claims.lent and program.donates:
            args[: len(self.donated)] = store.claims.to_donate(args[: len(self.donated)])

    def _run_patiently(
        self,
        program: Program,
        store: ResourceStore,
        dynamic: Sequence[Any],
        watch: Watch,
        values: dict[StateKey, Any],
    ) -> list[Any]:
        """Run a program that is to be compiled, that has checks, or that may take long.

        The state is held, so there is time. A program that reuses the memory of state changes it
        for all from its call on; the others do so in the end, if nothing comes in between.
        """
        args = self._args(program, store, dynamic, list(values.values()))
        values.clear()  # so that `_move` can let go of one after another
        if not program.proven:
            self._move(store, args)
        saved: list[Any] = []
        explain = partial(self._explain, program, store, dynamic)
        new_state: list[Any] = []
        before = store.get_all(self.written)  # for `_take_back`
        with self.options.scope(), watch:
            try:
                if not program.proven and self.donated:
                    saved = program.save(args[: len(self.donated)], args)
                first = program.check(args)
                if first is not None:
                    raise_failed(first, program.messages, explain)
                donates = program.donates and bool(self.donated)
                # Once XLA has been given memory of the state there is no way back, so others are
                # kept out for the moment of the call, and see the new values at once.
                changing = self._changing(program, store, args, watch)
                with changing if donates else _nothing:
                    token = np.int32(watch.token)
                    with watch.deferring() if program.may_ask else _nothing:
                        called = program.call(args, token)
                    outputs, new_state, outcome, self.pending = called
                    if donates:
                        store.put_all(self.written, new_state, self.changed_rows.of(dynamic))
                if program.may_wait:
                    self._wait((outputs, new_state, outcome), None if donates else watch)
                elif outcome is not None:
                    self._wait(outcome, watch)
            except Exception as error:
                self._take_back(store, before, new_state)
                self.raise_explained(error, program, store, dynamic, args, saved)
        if watch.raised is not None:  # by a signal handler, while a loop asked
            self._take_back(store, before, new_state)
            raise watch.raised
        if watch.stopped:
            watch.check()  # what a loop gives that was ended means nothing
        program.prove()
        if outcome is not None:
            raise_failed(outcome, program.messages, explain)
        # Nothing has been written yet: a step that was given up meanwhile changes nothing.
        if not donates:
            with store.lock:
                watch.check()
                store.put_all(self.written, new_state, self.changed_rows.of(dynamic))
        return outputs

    def _move(self, store: ResourceStore, args: list[Any]) -> None:
        """Hand state that NumPy has made to the device, one by one: JAX would have all of it twice
        at once, and copy what is only read in each step."""
        begin = 0 if self.in_place.is_large else len(self.donated)
        with self.options.scope():
            for position, key in list(enumerate(self.read_keys))[begin:]:
                value = args[position]
                if isinstance(value, np.ndarray) and value.nbytes >= MOVED:
                    args[position] = moved(store, key, value)
                    args[position].block_until_ready()

    def _wait(self, results: Any, watch: Watch | None) -> None:
        """Wait for what a program gives.

        Args:
            watch: None for a program that has changed state: then there is no way back.
        """
        arrays = jax.tree.leaves(results)
        if watch is not None:
            wait_until_ready(arrays, watch)
        for array in arrays:
            array.block_until_ready()  # raises what went wrong

    def _take_back(self, store: ResourceStore, before: list[Any], new: list[Any]) -> None:
        """State that a failed program was to compute is what it was."""
        with store.lock:
            for key, old, value in zip(self.written, before, new, strict=False):
                if store.get(key) is value:
                    if old is None:
                        store.drop(key)
                    else:
                        store.put(key, old)

    def raise_explained(
        self,
        error: Exception,
        program: Program,
        store: ResourceStore,
        dynamic: Sequence[Any],
        args: list[Any],
        saved: Sequence[Any],
    ) -> NoReturn:
        """Raise what went wrong with a program as users should see it."""
        if isinstance(error, OpError):
            # What cannot be traced may be what an assertion before it was to find.
            for node, message in program.messages:
                if message == checks.SHOWS_TENSORS and node is not None and not program.proven:
                    self._explain(program, store, dynamic, node)
            raise error
        if isinstance(error, NeedsHost):
            raise error
        self._check_arrays(args)
        raise self._failed(program, store, saved, error) from error

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
        for key, value in zip(self.read_keys, args, strict=False):
            if isinstance(value, HostResource):
                raise NeedsHost(self.touched.reads[key], "it uses what is no array")

    def first_value(self, store: ResourceStore, key: StateKey) -> Any:
        """The value of state that has none yet, if it can start with one of its own."""
        node = self.touched.reads[key]
        if isinstance(key, RandomStream):
            with store.lock:
                value = store.get(key)
                if value is None:  # no other run has begun it meanwhile
                    store.put(key, value := initial_stream(node))
            return value
        if key in self.touched.optional:
            raise NeedsHost(node, f"{key.name} has no value yet")
        raise with_op(uninitialized(key), node.op)

    def interpret(
        self,
        store: ResourceStore,
        dynamic: Sequence[Any],
        static: Sequence[Any],
        program: Program,
        watch: Watch | None,
        state: Mapping[StateKey, Any],
    ) -> list[Any]:
        """Run the nodes one by one on NumPy; all their writes happen, or none.

        Args:
            program: is told when that is the fastest way.
            watch: what function bodies ask whether to go on; None where there are none.
            state: the values of what is read, where it is held; else it is read in the store.
        """
        transaction = Transaction(store, state)
        evaluation: Interpreting = self.options.host.unwatched(transaction)
        evaluation.compiles_loops = False
        if watch is not None:
            evaluation.interrupt = watch.interrupt
            if self.waiting.kinds > 1 and self.has_loops and flags.interpret != "always":
                evaluation.run_loop = partial(self.list_loops.run_loop, watch.context)
        values = self._values(dynamic, static)
        self.waiting.begin(program.turn, evaluation)
        with np.errstate(all="ignore"):
            self.together.evaluate(evaluation, values)
        transaction.commit(watch.check if watch else None, self.changed_rows.of(dynamic))
        self.waiting.end(program.turn, evaluation)
        if self.sizes is not None:
            self.sizes.note(program, values)
        # Now the sizes are known: what NumPy does faster than XLA can be called is never compiled.
        is_candidate = program.turn.is_open and self.touched.is_empty
        if is_candidate and costs_less_as_run(self.nodes, values, self.between_hosts):
            program.turn.interpretations = NEVER
        return [values[n][i] for n, i in self.outputs]

    def _values(self, dynamic: Sequence[Any], static: Iterable[Any]) -> Values:
        """What the nodes start from when they are interpreted."""
        values: Values = {}
        bind_edges(values, zip(self.dynamic, map(lists.to_host, dynamic), strict=True))
        bind_edges(values, zip(self.static, static, strict=True))
        bind_edges(values, self.handles.items())
        return values


__all__ = ["Region"]
