"""A session at its master: the graph, where its state lies, and the plans of its steps."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from headrace.distributed.master.access import ClusterAccess
from headrace.distributed.master.machine import Membership
from headrace.distributed.master.plans import ClusterPlan, MadePlan
from headrace.distributed.master.site import ClusterSite
from headrace.distributed.master.traces import gather
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps import part_def
from headrace.distributed.steps.steps import RegisteredPlan, StepOptions
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import unavailable
from headrace.distributed.wire.messages import pack
from headrace.errors import AbortedError, CancelledError, OpError, UnavailableError
from headrace.executor.errands import Limit
from headrace.graph import devices as names
from headrace.graph.proto import ConfigProto, GraphDef, RunOptions
from headrace.partition.functions import bodies_in
from headrace.partition.parts import Part, Partition
from headrace.placement.devices import DeviceAttributes
from headrace.settings import flags
from headrace.step.moved import MovedVariables
from headrace.step.pipeline import make_plan
from headrace.step.request import PlanRequest

_log = logging.getLogger("headrace.distributed")

#: Variables may move so many times while a plan is made.
_ATTEMPTS = 5


class MasterSession:
    """One client's view of the cluster.

    Args:
        master: what the session may use of its master.
        number: of the session, unique in the cluster.
        graph: the client's graph, or what was imported of it.
        client: who it is, for status.
    """

    def __init__(
        self, master: ClusterAccess, number: int, graph: Any, config: Any, client: str
    ) -> None:
        self.master = master
        self.number = number
        self.graph = graph
        self.config = ConfigProto() if config is None else config
        self.client = client
        #: What a client in another process has sent of its graph.
        self.received = GraphDef()
        self.plans: dict[int, ClusterPlan] = {}
        self.steps = 0
        self.closed = False
        self._members = Membership()
        self._devices: dict[str, list[DeviceAttributes]] = {}
        #: Where variables are; those that each session has for itself are never moved.
        self.moved = MovedVariables() if self.config.isolate_session_state else master.moved
        self._site: ClusterSite[MadePlan] = ClusterSite(
            master.task,
            lambda: self.tasks,
            self.config,
            self._devices_of,
            self._register,
            self.moved,
        )

    @property
    def task(self) -> str:
        """That of the master."""
        return self.master.task

    @property
    def tasks(self) -> list[str]:
        """The tasks that the session may use now: the own one and those of the filters."""
        filters = list(self.config.device_filters)
        own = self.master.task
        return [
            task
            for task in self.master.addresses
            if task == own or not filters or any(names.matches(f, task) for f in filters)
        ]

    # -- plans ------------------------------------------------------------------------------------

    def plan(self, request: PlanRequest) -> ClusterPlan:
        """The plan for one kind of step: placed, cut into parts, and registered.

        Raises:
            UnavailableError: if a task that the step needs does not come in time.
            OpError: if the step cannot be placed.
        """
        for attempt in itertools.count(1):
            moved = self.moved.now()
            try:
                plan = ClusterPlan(self, request, self.make(request, moved), moved)
                break
            except (AbortedError, UnavailableError):
                # A task that has given variables away says so before it refuses the plan; one that
                # has left does not answer.
                if self.moved.epoch == moved.epoch or attempt >= _ATTEMPTS:
                    raise
        self.plans[plan.number] = plan
        self.master.held_steps.added(plan)
        return plan

    def make(self, request: PlanRequest, moved: MovedVariables) -> MadePlan:
        """Place a step, cut it into parts and register them.

        Args:
            moved: where variables are.

        Raises:
            OpError: as `plan` does.
        """
        self.check_open()
        made = make_plan(request, self._site.with_moved(moved))
        # Whoever closed the session meanwhile did not know of this plan.
        if self.closed:
            self._tell(list(self._devices), pb.DropPlans(session=self.number))
            self.check_open()
        return made

    def plan_of(self, number: int) -> ClusterPlan:
        """The plan of a number.

        Raises:
            AbortedError: if the session has none.
        """
        found = self.plans.get(number)
        if found is None:
            raise AbortedError(None, None, f"The session has no plan {number:016x}.")
        return found

    def _devices_of(self, tasks: list[str], timeout: float | None) -> list[DeviceAttributes]:
        """The devices of some tasks; waits for those that it does not know yet."""
        missing = [t for t in tasks if t not in self._devices]
        self._connect(missing, self._timeout() if timeout is None else timeout)
        return [d for t in tasks for d in self._devices[t]]

    def _connect(self, tasks: list[str], timeout: float) -> None:
        """Get to know some tasks, all at once."""
        if not tasks:
            return
        with ThreadPoolExecutor(len(tasks)) as pool:
            answers = [pool.submit(self.master.devices_of, t, timeout) for t in tasks]
        for task, answer in zip(tasks, answers, strict=True):
            incarnation, devices = answer.result()
            self._members.met(task, incarnation)
            self._devices[task] = devices

    def _timeout(self) -> float:
        limit = self.config.operation_timeout_in_ms
        return limit / 1e3 if limit > 0 else flags.connect_timeout

    def _register(
        self, partition: Partition, describe: Callable[[], str], request: PlanRequest
    ) -> MadePlan:
        """Hand each task its parts."""
        text = describe()
        timeout = self._timeout() if request.timeout is None else request.timeout
        is_ahead = request.is_ahead
        plan = RegisteredPlan.of(self.master.steps.number(), partition)
        registered: list[RegisteredPlan] = []
        try:
            # Inner bodies first: a part that calls a body needs the number of its plan.
            for body in bodies_in(partition):
                body.plan = RegisteredPlan.of(self.master.steps.number(), body.partition)
                registered.append(body.plan)
                self._register_parts(body.plan.number, body.partition, timeout, is_ahead)
            registered.append(plan)
            self._register_parts(plan.number, partition, timeout, is_ahead)
        except BaseException:
            # What some tasks have registered already must not stay there.
            for made in registered:
                self.drop_plan(made.number, made.tasks)
            raise
        return MadePlan(plan, partition, text)

    def _register_parts(
        self, plan: int, partition: Partition, timeout: float, is_ahead: bool
    ) -> None:
        remote = [p for t, p in partition.parts.items() if t != self.master.task]
        # All tasks make their parts at the same time; answers may come before the own one is done.
        waiting = self.master.registrations.expect(plan, [p.task for p in remote])
        try:
            for part in remote:
                self._send_part(plan, part, timeout, is_ahead)
            own = partition.parts.get(self.master.task)
            if own is not None:
                worker = self.master.worker
                worker.expect(plan, self.number)
                worker.register(plan, self.number, own, self.config, self._addresses(own), is_ahead)
            waiting.wait(timeout)
        finally:
            self.master.registrations.forget(plan)

    def _addresses(self, part: Part) -> dict[str, str]:
        """Where the tasks are that a part exchanges tensors with, or calls bodies in."""
        tasks = {t.destination for t in part.sends} | {t.source for t in part.recvs}
        for bodies in part.tables.bodies.values():
            for body in bodies.values():
                tasks.update(body.plan.tasks)
        return {t: self.master.addresses.of(t) for t in tasks}

    def _send_part(self, plan: int, part: Part, timeout: float, is_ahead: bool) -> None:
        message, buffers = part_def.to_message(part)
        request = pb.RegisterPart(
            plan=plan,
            session=self.number,
            part=message,
            config=self.config.SerializeToString(),
            addresses=self._addresses(part),
            is_ahead=is_ahead,
        )
        try:
            self.find(part.task, timeout).send(pack(request), buffers)
        except PipeBroken as error:
            raise unavailable(part.task, None, error.reason) from None

    def drop_made(self, made: MadePlan) -> None:
        """Let tasks forget what was made of a request."""
        for plan, partition in made.partitions():
            self.drop_plan(plan, partition.parts)

    def drop_plan(self, plan: int, tasks: Iterable[str]) -> None:
        """Let tasks forget a plan."""
        self._tell(tasks, pb.DropPlans(plans=[plan]))

    def _tell(self, tasks: Iterable[str], message: pb.DropPlans) -> None:
        for task in tasks:
            if task == self.master.task:
                self.master.worker.drop(list(message.plans), message.session)
                continue
            self.master.tell(task, self._members.members().get(task, 0), message)

    # -- steps ------------------------------------------------------------------------------------

    def run(
        self,
        plan: RegisteredPlan,
        feeds: Sequence[Any],
        limit: Limit | None = None,
        trace: int = 0,
    ) -> dict[str, Any]:
        """Run a step; returns what each task gave. See `Steps.run`."""
        self.check_open()
        self.steps += 1
        began, problem = time.monotonic(), None
        try:
            if not trace and self.master.next_trace.is_wanted(len(plan.feeds)):
                return self._run_traced(plan, feeds, limit)
            options = StepOptions(self._find_again, limit, trace, self)
            return self.master.steps.run(plan, feeds, options)
        except BaseException as error:
            problem = error
            raise
        finally:
            self.master.tally.add(time.monotonic() - began, problem)
            problem = None  # its traceback has this frame

    def _run_traced(
        self, plan: RegisteredPlan, feeds: Sequence[Any], limit: Limit | None
    ) -> dict[str, Any]:
        """Run a step of which somebody else wants a trace."""
        options = StepOptions(self._find_again, limit, RunOptions.FULL_TRACE, self)
        asked, answer = time.time(), cpb.TraceResponse()
        results = self.master.steps.run(plan, feeds, options)
        answer.clocks.update(gather(answer.stats, self.task, asked, results))
        self.master.next_trace.give(len(plan.feeds), answer)
        return results

    def alone(
        self, keys: Mapping[str, Collection[str]], seconds: float
    ) -> AbstractContextManager[None]:
        """See `AloneSteps.alone`; variables that each session has for itself are used by none."""
        if self.config.isolate_session_state:
            return nullcontext()
        return self.master.alone.alone(keys, seconds)

    def limit(self, limit: Limit | None) -> Limit | None:
        """How long a step may take that has this limit of its own."""
        if limit is None and self.config.operation_timeout_in_ms > 0:
            limit = Limit(self.config.operation_timeout_in_ms, "operation_timeout_in_ms")
        return limit

    def _find_again(self, task: str) -> Link:
        # The short way, for a task that is there and still the one that was met.
        link = self.master.peers.known(task)
        if link is None or not self._members.is_member(task, link.peer.incarnation):
            link = self.find(task, self.master.peers.timing.reconnect)
        return link

    def find(self, task: str, timeout: float) -> Link:
        """The link to a task of this session.

        Raises:
            UnavailableError: if it does not answer.
            AbortedError: if it was started again since this session used it first.
        """
        link = self.master.peers.link(task, self.master.addresses.of(task), timeout)
        if not self._uses(task):  # what it had there has moved away
            self._members.forget(task)
        self._members.met(task, link.peer.incarnation)
        return link

    def _uses(self, task: str) -> bool:
        """Whether a plan has a part in a task."""
        return any(task in plan.registered.feeds for plan in list(self.plans.values()))

    def check_open(self) -> None:
        """Raise CancelledError if the session is closed."""
        if self.closed:
            raise CancelledError(None, None, "The session is closed.")

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices of all visible tasks that answer within some seconds."""
        missing = [t for t in self.tasks if t not in self._devices]
        timeout = min(self._timeout(), 5.0)
        with ThreadPoolExecutor(max(1, len(missing))) as pool:
            answers = {t: pool.submit(self.master.devices_of, t, timeout) for t in missing}
        found = dict(self._devices)
        for task, answer in answers.items():
            try:
                _, found[task] = answer.result()
            except OpError as error:
                _log.warning("list_devices leaves out task %s: %s", task, error.message)
        return [d for t in self.tasks for d in found.get(t, [])]

    def close(self) -> None:
        """Give up its steps and forget its plans everywhere. Shared variables stay."""
        self.closed = True
        error = CancelledError(None, None, "The session was closed while a step ran.")
        self.master.steps.cancel_of(self, error)
        self._tell(list(self._devices), pb.DropPlans(session=self.number))
