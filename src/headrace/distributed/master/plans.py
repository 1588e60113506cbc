"""The plans of a session: made again, in their places, when variables have moved."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headrace.distributed.master.alone import FIRST_SECONDS, LONGEST_SECONDS
from headrace.distributed.steps.results import PartResult
from headrace.distributed.steps.steps import RegisteredPlan
from headrace.errors import DeadlineExceededError
from headrace.executor.errands import Limit
from headrace.partition.functions import bodies_in
from headrace.partition.parts import Partition
from headrace.step.moved import MovedVariables, variables_of
from headrace.step.request import PlanRequest

__all__ = ["ClusterPlan", "MadePlan", "Turnstile"]

#: Who waits at a turnstile looks so often whether its session was closed, in seconds.
_LOOK = 0.5
#: Parts are compiled when they have run once or twice.
_SLOW_STEPS = 3


class Turnstile:
    """Lets steps of a plan through, counts them, and holds new ones while variables move."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._running = 0
        #: Who wants to know that no step is under way, by what holds them.
        self._held: dict[Any, Callable[[], None]] = {}

    def enter(self, limit: Limit | None, check: Callable[[], None]) -> None:
        """A step begins; waits while steps are held.

        Args:
            check: raises when the session was closed.

        Raises:
            DeadlineExceededError: if the limit of the step ends first.
        """
        with self._changed:
            while self._held:
                check()
                left = _LOOK if limit is None else min(_LOOK, limit.remaining())
                if left <= 0:
                    text = f"The step did not begin within {limit}: its variables are being moved."
                    raise DeadlineExceededError(None, None, text)
                self._changed.wait(left)
            self._running += 1

    def leave(self) -> bool:
        """A step has ended; whether no other one is under way."""
        with self._changed:
            self._running -= 1
            is_empty = not self._running
            told = list(self._held.values()) if is_empty else []
        for on_empty in told:
            on_empty()
        return is_empty

    @property
    def is_busy(self) -> bool:
        """Whether a step is under way."""
        return self._running > 0

    def hold(self, why: Any, on_empty: Callable[[], None]) -> None:
        """Hold new steps; ``on_empty`` is called when those under way have ended."""
        with self._changed:
            self._held[why] = on_empty
            is_empty = not self._running
        if is_empty:
            on_empty()

    def release(self, why: Any) -> None:
        """Let steps through that were held for this reason."""
        with self._changed:
            if self._held.pop(why, None) is not None and not self._held:
                self._changed.notify_all()


class MadePlan(NamedTuple):
    """What the pipeline has made of a request.

    Attributes:
        registered: what the tasks know; ``partition``: their parts; ``text``: both in words.
    """

    registered: RegisteredPlan
    partition: Partition
    text: str

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        """The numbers of plans, and their parts: that of the step, and those of bodies in it."""
        yield self.registered.number, self.partition
        for body in bodies_in(self.partition):
            yield body.plan.number, body.partition

    def variables(self) -> set[str]:
        """The keys of all variables that it names."""
        return set().union(*self.variables_by_task().values())

    def variables_by_task(self) -> dict[str, set[str]]:
        """The same, by the tasks whose parts name them."""
        found: dict[str, set[str]] = {}
        for _, partition in self.partitions():
            for task, part in partition.parts.items():
                found.setdefault(task, set()).update(variables_of(part.nodes))
        return {task: keys for task, keys in found.items() if keys}

    @property
    def is_alone(self) -> bool:
        """Whether it has an operation that says that its steps run alone."""
        parts = self.partition.parts.values()
        return any(n.op_def.traits.alone for part in parts for n in part.nodes)


class PlanOwner(Protocol):
    """What a plan asks of its session.

    Attributes:
        moved: where variables are.
    """

    moved: MovedVariables

    @property
    def task(self) -> str:
        """That of the master."""

    def make(self, request: PlanRequest, moved: MovedVariables) -> MadePlan:
        """Place a step, cut it into parts and register them."""

    def drop_made(self, made: MadePlan) -> None:
        """Let tasks forget what was made of a request."""

    def limit(self, limit: Limit | None) -> Limit | None:
        """How long a step may take that has this limit of its own."""

    def check_open(self) -> None:
        """Raise CancelledError if the session is closed."""

    def alone(
        self, keys: Mapping[str, Collection[str]], seconds: float
    ) -> contextlib.AbstractContextManager[None]:
        """See `AloneSteps.alone`."""

    def run(
        self, plan: RegisteredPlan, feeds: Sequence[Any], limit: Limit | None, trace: int
    ) -> dict[str, PartResult]:
        """Run a step; what each task gave."""


class ClusterPlan:
    """One kind of step of a session, registered with the tasks that run it.

    Args:
        session: whose it is; ``request``: what it was made for.
        made: what was made of it, when ``moved`` was known.
    """

    def __init__(
        self, session: PlanOwner, request: PlanRequest, made: MadePlan, moved: MovedVariables
    ) -> None:
        self.session = session
        self.request = request
        #: By which clients know it; what it is at the tasks has other numbers once it was remade.
        self.number = made.registered.number
        self.gate = Turnstile()
        #: Whether its steps run while no other step uses their variables.
        self.is_alone = made.is_alone
        #: So long (seconds) such a step waits for others.
        self._patience = FIRST_SECONDS
        self._made = made
        self._variables = made.variables()
        self._epoch = moved.epoch
        self._where = self._places(moved)
        #: What was made ahead, for when these variables have moved.
        self._ahead: tuple[dict[str, str], MadePlan] | None = None
        #: The number of the move for which that was made.
        self._ahead_for = 0
        self._old: list[MadePlan] = []
        #: About how many steps have begun: threads may count one for two.
        self.runs = 0
        #: Those that ended well, and what they took together, in seconds; as inexact.
        self.ended = 0
        self.seconds = 0.0
        #: So many of the next steps may take long: they compile what is new.
        self.slow_steps = 0
        self._lock = threading.Lock()

    @property
    def registered(self) -> RegisteredPlan:
        """What the tasks know now."""
        return self._made.registered

    @property
    def variables(self) -> set[str]:
        """The keys of all variables that its steps use."""
        return self._variables

    def run(self, feeds: Sequence[Any], limit: Limit | None = None) -> list[Any]:
        """Run one step; ``feeds`` in the order of the plan's.

        Raises:
            OpError: when an op fails, or a task that the step needs is gone.
        """
        registered, results = self.run_parts(feeds, limit)
        return registered.assemble(feeds, results)

    def run_parts(
        self, feeds: Sequence[Any], limit: Limit | None = None, trace: int = 0
    ) -> tuple[RegisteredPlan, dict[str, PartResult]]:
        """The same; returns what each task gave, and what puts that together."""
        limit = self.session.limit(limit)
        if self.is_alone:
            return self._run_alone(feeds, limit, trace)
        return self._run_parts(feeds, limit, trace)

    def _run_alone(
        self, feeds: Sequence[Any], limit: Limit | None, trace: int
    ) -> tuple[RegisteredPlan, dict[str, PartResult]]:
        """The same, while no other step uses the variables."""
        if self._epoch != self.session.moved.epoch:
            self.renew(None if limit is None else limit.remaining())
        epoch, seconds = self._epoch, self._patience
        self._patience = min(2 * seconds, LONGEST_SECONDS)
        with self.session.alone(self._made.variables_by_task(), seconds):
            if self.session.moved.epoch != epoch:
                raise DeadlineExceededError(None, None, "Variables have moved meanwhile.")
            found = self._run_parts(feeds, limit, trace)
        self._patience = FIRST_SECONDS
        return found

    def _run_parts(
        self, feeds: Sequence[Any], limit: Limit | None, trace: int
    ) -> tuple[RegisteredPlan, dict[str, PartResult]]:
        self.gate.enter(limit, self.session.check_open)
        self.runs += 1
        try:
            if self._epoch != self.session.moved.epoch:
                self.renew(None if limit is None else limit.remaining())
            registered = self._made.registered
            began = time.monotonic()
            results = self.session.run(registered, feeds, limit, trace)
            self.ended += 1
            self.seconds += time.monotonic() - began
            self.slow_steps = max(0, self.slow_steps - 1)
            return registered, results
        finally:
            if self.gate.leave() and self._old:
                self._drop_old()

    def describe(self) -> str:
        """The stages that made it, and the partition, as text."""
        return self._made.text

    # -- variables that move ----------------------------------------------------------------------

    def _places(self, moved: MovedVariables) -> dict[str, str]:
        found = {key: moved.task_of(key) for key in self._variables}
        return {**{key: task for key, task in found.items() if task}, **moved.retired}

    def renew(self, timeout: float | None = None) -> None:
        """Be as new after variables have moved.

        Raises:
            OpError: if a task that it needs cannot be reached within so many seconds.
        """
        with self._lock:
            moved = self.session.moved.now()
            where = self._places(moved)
            if where != self._where:
                ahead, self._ahead = self._ahead, None
                if ahead is not None and ahead[0] == where:
                    made = ahead[1]
                else:
                    made = self.session.make(self.request._replace(timeout=timeout), moved)
                    self._forget(ahead)
                self._old.append(self._made)
                self._made, self._where = made, where
                self.slow_steps = _SLOW_STEPS
            self._epoch = moved.epoch

    def prepare(self, moved: MovedVariables, move: int) -> None:
        """Make what is needed when variables have moved; steps go on with what there is.

        Args:
            move: number of the move.

        Raises:
            OpError: if that cannot be.
        """
        with self._lock:
            before, self._ahead = self._ahead, None
            self._forget(before)
            where = self._places(moved)
            if where != self._where:
                self._ahead = where, self.session.make(self.request._replace(is_ahead=True), moved)
                self._ahead_for = move

    def unprepare(self, move: int) -> None:
        """They do not move; what was made for another move stays."""
        with self._lock:
            if self._ahead_for != move:
                return
            ahead, self._ahead = self._ahead, None
        self._forget(ahead)

    def _forget(self, ahead: tuple[dict[str, str], MadePlan] | None) -> None:
        if ahead is not None:
            self.session.drop_made(ahead[1])

    def _drop_old(self) -> None:
        with self._lock:
            old, self._old = self._old, []
        for made in old:
            self.session.drop_made(made)
