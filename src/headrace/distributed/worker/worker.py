"""The worker of a task: registers parts of plans and runs them when masters ask."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Protocol

from headrace.distributed.links.peers import Peers
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps.results import PartResult
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.compress import ErrorFeedback
from headrace.distributed.wire.failures import cancelled, to_error, to_failure, unavailable
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.bodies import BodyCalls
from headrace.distributed.worker.closures import Closures
from headrace.distributed.worker.machine import OWN, Abort, MasterStart, Refuse, WorkerMachine
from headrace.distributed.worker.traffic import PartTraffic
from headrace.errors import AbortedError, OpError
from headrace.executor.plan import LocalPlan
from headrace.executor.resources import ResourceStore, SessionStore
from headrace.executor.step_context import StepContext, fill_metadata
from headrace.executor.stepping import Driver, StepRun
from headrace.executor.threads import step_threads
from headrace.graph.proto import RunMetadata
from headrace.ops.collective.calls import Collectives
from headrace.partition.parts import Part, Transfer
from headrace.placement.devices import DeviceAttributes
from headrace.step.engine import ProcessEngine
from headrace.step.moved import variables_of

_log = logging.getLogger("headrace.distributed")

#: Gets what came of a part: values of its fetches, or an error; and what was traced.
Reply = Callable[[PartResult], None]

_reading = threading.local()


class reading:
    """In the thread of a reader: what is sent here must not wait for room."""

    def __enter__(self) -> None:
        _reading.now = True

    def __exit__(self, *exc: Any) -> None:
        _reading.now = False


def may_wait() -> bool:
    """Whether what is sent in this thread may wait for room."""
    return not getattr(_reading, "now", False)


class Acknowledging(Protocol):
    """Who says when a step may be acknowledged."""

    def when_kept(self, call: Callable[[], None]) -> None:
        """Call when nothing that has happened so far can be lost with this process."""


class RegisteredPart:
    """A part of a plan that this task runs."""

    def __init__(
        self, part: Part, plan: LocalPlan, session: int, addresses: dict[str, str]
    ) -> None:
        self.part = part
        self.plan = plan
        self.session = session
        self.addresses = addresses
        self.traffic = PartTraffic(part)
        #: The variables of the task that it uses, by `key_of`.
        self.keys: frozenset[str] = frozenset()
        #: Whether its steps may be refused: some of them are on their way to another task.
        self.is_closed = False
        #: Where they have gone since it was made: it is never right again, also if they come back.
        self.gone_to = ""
        #: For each transfer that is shortened: precisions, and what "int8" has left out so far.
        self._compression: dict[int, tuple[list[str], list[ErrorFeedback | None]]] = {}
        for transfer in part.sends:
            precisions = [m.precision for m in transfer.tensors]
            if any(precisions):
                feedbacks = [ErrorFeedback() if p == "int8" else None for p in precisions]
                self._compression[transfer.number] = (precisions, feedbacks)

    def compression(self, transfer: Transfer) -> tuple[Any, ...]:
        """How the tensors of a transfer are shortened: more arguments for ``encode_many``."""
        return self._compression.get(transfer.number, ())

    @property
    def peers(self) -> set[str]:
        return {t.destination for t in self.part.sends} | {t.source for t in self.part.recvs}


class PartContext(StepContext):
    """What accompanies one run of a part."""

    def __init__(
        self,
        worker: Worker,
        number: int,
        part: RegisteredPart,
        reply: Reply,
        trace: int,
        link: Link | None,
    ) -> None:
        super().__init__(record=trace > 0)
        #: Over which another task has asked for it, and gets the answer.
        self.link = link
        #: See `PartResult.last`.
        self.last: tuple[pb.Tensors, list[Any]] | None = None
        self.worker = worker
        self.number = number
        self.part = part
        self.bodies = part.part.tables.bodies
        self.collectives = worker.collectives
        self.reply = reply
        self.began = time.time() if trace else 0.0
        self.since = time.monotonic()
        #: Set before anyone else sees this.
        self.run: StepRun = None  # type: ignore[assignment]

    def send(self, transfer: Transfer, values: Sequence[Any]) -> None:
        """Hand the tensors of a transfer to the task that waits for them."""
        self.worker.send_tensors(self, transfer, values)

    def call_body(self, plan: Any, args: Sequence[Any]) -> list[Any]:
        """Run a function body that several tasks share."""
        return self.worker.bodies.call(self, self.part.addresses, plan, args)

    def cancel(self) -> None:
        super().cancel()
        self.worker.bodies.cancel(self)


class Worker:
    """Parts and steps of one task.

    Args:
        task: its full name.
        store: the state of the task; ``devices``: what it can run on.
        peers: how it reaches other tasks.
    """

    def __init__(
        self, task: str, store: ResourceStore, devices: list[DeviceAttributes], peers: Peers
    ) -> None:
        self.task = task
        self.store = store
        self.devices = devices
        self.peers = peers
        timing = peers.timing
        self.machine = WorkerMachine(timing.hold, timing.orphan)
        self.steps_run = 0
        self.bodies = BodyCalls(peers)
        self.closures = Closures(task)
        #: Called when a part is there, before its master hears of it.
        self.on_register: Callable[[MasterStart, RegisteredPart], None] = lambda master, part: None
        #: Called before a master hears that its part is refused: variables are elsewhere.
        self.on_refuse: Callable[[Link], None] = lambda link: None
        #: The variables that come from other tasks now.
        self.arriving: Callable[[], Collection[str]] = tuple
        #: Brings the members of collective operations together; set by the task.
        self.collectives: Collectives | None = None
        #: What a copy does not have yet; set where there is one.
        self.journal: Acknowledging | None = None
        self._parts: dict[int, RegisteredPart] = {}
        self._engines: dict[int, ProcessEngine] = {}
        self._lock = threading.Lock()
        self._driver = Driver(self._run_unit, self._ended)

    # -- plans ------------------------------------------------------------------------------------

    def expect(self, plan: int, session: int, master: MasterStart = OWN) -> None:
        """A part is about to be registered: from now on the plan can be dropped."""
        self.machine.plan_asked(plan, session, master, time.monotonic())

    def register(
        self,
        plan: int,
        session: int,
        part: Part,
        config: Any,
        addresses: dict[str, str],
        is_ahead: bool = False,
    ) -> None:
        """Keep a part; links to the tasks that it sends to are made now, not in its first step.

        Args:
            is_ahead: compile it now as well.

        Raises:
            OpError: if such a task cannot be reached, or the part does not fit this task.
        """
        kept = False
        try:
            made = self._engine(session, config).part_plan(part)
            registered = RegisteredPart(part, made, session, addresses)
            for task in sorted({t.destination for t in part.sends}):
                self.peers.link(task, addresses.get(task, ""), self.peers.timing.send)
            if not config.isolate_session_state:
                registered.keys = frozenset(variables_of(part.nodes))
            self._admit(plan, registered)
            if is_ahead:
                made.compile_ahead()
            # False if the master has dropped it meanwhile, and that message found nothing to drop.
            kept = self.machine.plan_ready(plan, registered.peers)
        finally:
            if not kept:
                unused = not self.machine.has_session(session)
                self.drop([plan], session if unused else 0)

    def _admit(self, plan: int, part: RegisteredPart) -> None:
        """Keep a part, unless its variables have moved."""
        arriving = self.arriving() if part.keys else ()
        with self._lock:
            refusal = self.closures.refusal_of_new(part.keys, arriving)
            if refusal is not None:
                raise refusal
            part.is_closed = self.closures.refusal(part.keys) is not None
            self._parts[plan] = part
        master = self.machine.master_of(plan)
        if master is not None:
            self.on_register(master, part)

    def _engine(self, session: int, config: Any) -> ProcessEngine:
        with self._lock:
            engine = self._engines.get(session)
            if engine is None:
                shared = ResourceStore() if config.isolate_session_state else self.store
                engine = ProcessEngine(config, SessionStore(shared), self.devices, serves=True)
                self._engines[session] = engine
            return engine

    def drop(self, plans: Sequence[int], session: int = 0) -> None:
        """Forget plans; with ``session`` all that belongs to it."""
        with self._lock:
            gone = [p for p, r in self._parts.items() if p in plans or r.session == session]
            for plan in gone:
                del self._parts[plan]
            engine = self._engines.pop(session, None)
        self.machine.plans_dropped([*plans, *gone], session)
        if engine is not None:
            engine.close()

    @property
    def plans(self) -> int:
        """How many parts are registered."""
        return len(self._parts)

    # -- steps ------------------------------------------------------------------------------------

    def run_part(
        self,
        step: int,
        plan: int,
        feeds: Sequence[Any],
        asker: str,
        reply: Reply,
        trace: int = 0,
        patient: bool = False,
        link: Link | None = None,
    ) -> None:
        """Run a part; ``reply`` gets what came of it, in whichever thread ends it.

        Args:
            asker: the task that wants the answer: when it is lost, the part is given up.
            patient: the calling thread only waits for the step.
            link: over which another task has asked, and gets the answer.
        """
        registered = self._parts.get(plan)
        context = None
        if registered is not None:
            # Made before the machine is asked: from its answer on tensors may come for the run.
            context = PartContext(self, step, registered, reply, trace, link)
            try:
                context.run = registered.plan.begin(feeds, context)
            except Exception as error:
                reply(PartResult(error=as_op_error(error, self.task)))
                return
        instruction = self.machine.run_asked(step, plan, asker, context)
        if isinstance(instruction, Refuse):
            reason = instruction.reason
            reply(PartResult(error=cancelled(reason) if reason else self._unknown(plan)))
        elif instruction is not None and context is not None:
            # Asked last: who closes parts sees all that run then.
            part = context.part
            refusal: OpError | None = None
            if part.gone_to:
                refusal = self.closures.moved(min(part.keys), part.gone_to)
            elif part.is_closed:
                refusal = self.closures.refusal(part.keys)
            if refusal is not None:
                self.machine.ended(step)
                reply(PartResult(error=refusal))
                return
            part.traffic.runs += 1
            for transfer, values in instruction.held:
                self._arrive(context, transfer, values)
            self._driver.start(context.run, patient)

    def _unknown(self, plan: int) -> AbortedError:
        return AbortedError(
            None,
            None,
            f"Task {self.task} does not know plan {plan:016x}: it was started again since the plan "
            "was made, or the session was closed. Make a new session.",
        )

    def _run_unit(self, unit: Any, table: list[Any], context: Any) -> None:
        context.part.plan.run_unit(unit, table, context)

    def _ended(self, run: StepRun) -> None:
        context = run.context
        assert isinstance(context, PartContext)
        result = PartResult(last=context.last)
        context.last = None
        if run.error is None:
            try:
                result.fetches = context.part.plan.results(run.table)
            except Exception as error:
                run.error = error
        if run.error is not None:
            result.error = as_op_error(run.error, self.task, context.part.part)
        if context.events is not None:
            result.began, result.ended = context.began, time.time()
            result.stats = _stats(context)
        self.steps_run += 1
        self.machine.ended(context.number)
        # Neither large values nor small ones may wait for the collector.
        run.release()
        if self.journal is None:
            context.reply(result)
        else:
            # What it has changed, or has seen of others' changes, must not be lost any more.
            self.journal.when_kept(partial(context.reply, result))

    # -- variables that move ----------------------------------------------------------------------

    def _parts_with(self, keys: frozenset[str]) -> dict[int, RegisteredPart]:
        with self._lock:
            return {n: p for n, p in self._parts.items() if not p.keys.isdisjoint(keys)}

    def masters_of(self, keys: frozenset[str]) -> set[MasterStart]:
        """The masters whose steps may use some of these variables."""
        found = map(self.machine.master_of, self._parts_with(keys))
        return {master for master in found if master is not None}

    def runs_any(self, keys: frozenset[str]) -> bool:
        """Whether a part runs that uses some of these variables."""
        return any(not run.part.keys.isdisjoint(keys) for run in self.running())

    def traffic(self) -> dict[str, float]:
        """Bytes in a second that steps bring or take, by `key_of` each variable."""
        with self._lock:
            parts = list(self._parts.values())
        found: dict[str, float] = {}
        now = time.monotonic()
        for part in parts:
            for key, rate in part.traffic.by_variable(now).items():
                found[key] = found.get(key, 0.0) + rate
        return found

    def retire(self) -> bool:
        """Refuse steps that use any variables, and whether none of those runs that did."""
        with self._lock:
            self.closures.close_all()
            for part in self._parts.values():
                part.is_closed |= bool(part.keys)
        return not any(run.part.keys for run in self.running())

    def close_parts(self, keys: frozenset[str]) -> None:
        """Refuse steps that use these variables, which are on their way to another task."""
        with self._lock:
            self.closures.close(keys)
            for part in self._parts.values():
                part.is_closed |= not part.keys.isdisjoint(keys)

    def open_parts(self) -> None:
        """They stay."""
        self.closures.open()

    def give_parts(self, keys: frozenset[str], task: str) -> None:
        """They have gone to a task."""
        with self._lock:
            self.closures.gone(keys, task)
            for part in self._parts.values():
                if not part.keys.isdisjoint(keys):
                    part.gone_to = task

    # -- tensors ----------------------------------------------------------------------------------

    def send_tensors(self, context: PartContext, transfer: Transfer, values: Sequence[Any]) -> None:
        """Send the tensors of a transfer.

        Raises:
            UnavailableError: if their destination cannot be reached.
        """
        started = time.time() if context.events is not None else 0.0
        if context.part.traffic.is_sample:
            context.part.traffic.saw(transfer.number, values)
        metas, buffers = codec.encode_many(values, *context.part.compression(transfer))
        message = pb.Tensors(step=context.number, transfer=transfer.number, values=metas)
        task = transfer.destination
        try:
            link = self.peers.known(task)
            if link is None:
                address = context.part.addresses.get(task, "")
                timeout = self.peers.timing.send
                link = self.peers.link(task, address, timeout, context.number)
            if self._goes_with_the_answer(context, link):
                context.last = message, buffers
                return
            link.send(pack(message), buffers, block=may_wait())
        except PipeBroken as error:
            raise unavailable(task, context.number, error.reason) from None
        if context.events is not None:
            detail = f"{sum(_size(b) for b in buffers)} bytes to {task}"
            device = f"{self.task}/device:CPU:0"
            context.record(_label(transfer), "Send", device, started, detail)

    def _goes_with_the_answer(self, context: PartContext, link: Link) -> bool:
        """Whether the answer of the part comes at once, goes the same way, and says no more than
        that the part has run: then its last tensors say so, and one frame does for both."""
        return (
            link is context.link
            and context.run.is_at_last_unit
            and not context.part.part.fetches
            # What is recorded of this transfer must be in the answer.
            and context.events is None
            # An answer waits until the copy has what the step has changed; tensors do not.
            and self.journal is None
            and context.part.plan.is_over
        )

    def tensors_came(self, step: int, transfer: int, values: Sequence[Any]) -> None:
        """The tensors of a transfer have arrived."""
        deliver = self.machine.tensors_came(step, transfer, values, time.monotonic())
        if deliver is not None:
            self._arrive(deliver.run, transfer, values)

    def _arrive(self, context: PartContext, transfer: int, values: Sequence[Any]) -> None:
        if context.events is not None:
            self._record_arrival(context, transfer, values)
        if context.part.traffic.is_sample:
            context.part.traffic.saw(transfer, values)
        self._driver.arrived(context.run, transfer, values)

    def _record_arrival(self, context: PartContext, number: int, values: Sequence[Any]) -> None:
        """How long the step waited for tensors, from its begin on."""
        for transfer in context.part.part.recvs:
            if transfer.number == number:
                size = sum(_size(v) for v in values)
                detail = f"{size} bytes from {transfer.source}"
                device = f"{self.task}/device:CPU:0"
                context.record(_label(transfer), "Recv", device, context.began, detail)

    # -- failures ---------------------------------------------------------------------------------

    def cancel(self, step: int, reason: str) -> None:
        """Give a step up."""
        abort = self.machine.cancel_asked(step, reason)
        if abort is not None:
            self._abort(abort)

    def peer_lost(self, peer: str, reason: str) -> None:
        """A link to a peer is lost: give up the steps that it asked for or takes part in; tell
        those whose steps may miss tensors by this."""
        for abort in self.machine.peer_lost(peer, reason):
            self._abort(abort)
        head = pack(pb.LinkLost(peer=peer, reason=reason))
        for task in self.machine.watchers(peer):
            link = self.peers.known(task)
            if link is not None:
                with contextlib.suppress(PipeBroken):
                    link.send(head, block=False)

    def _abort(self, abort: Abort) -> None:
        context = abort.run
        error: OpError = cancelled(abort.reason)
        if abort.lost:
            error = unavailable(abort.lost, context.number, abort.reason)
        self._driver.fail(context.run, error)

    def tick(self, now: float) -> None:
        """Time has passed."""
        self.machine.tick(now)
        for session in self.machine.orphans(now, self._present):
            _log.info("Task %s drops session %016x: its master is gone", self.task, session)
            # Closing a session may take a while, and heartbeats must not.
            step_threads.submit(self.drop, (), session)

    def _present(self, master: MasterStart) -> bool:
        link = self.peers.known(master[0])
        return link is not None and link.peer.incarnation == master[1]

    def running(self) -> list[PartContext]:
        """The runs that have not ended."""
        return self.machine.running()

    def close(self) -> None:
        """Give up all steps."""
        for context in self.running():
            self._driver.fail(context.run, unavailable(self.task, context.number, "it was stopped"))


def as_op_error(error: BaseException, task: str, part: Part | None = None) -> OpError:
    """Whatever a part raised, as an error that can cross to another task; it names the device."""
    if isinstance(error, OpError):
        if error.op is not None and not error.device:
            nodes = part.nodes if part is not None else ()
            error.device = next((n.device for n in nodes if n.op is error.op), task)
        return error
    # Its text alone does not say where it comes from.
    _log.error("An error of no kind that steps know, in %s", task, exc_info=error)
    return to_error(to_failure(error, task))


def _size(value: Any) -> int:
    """The bytes of a buffer or array; 0 for what is neither."""
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))


def _label(transfer: Transfer) -> str:
    """The name of a transfer in timelines: the same at both ends."""
    names = ", ".join(m.name for m in transfer.tensors)
    return f"#{transfer.number} {names or 'order only'}"


def _stats(context: PartContext) -> Any:
    metadata = RunMetadata()
    fill_metadata(context, metadata)
    return metadata.step_stats
