"""Sessions of a plain script: on the cluster, each step as all workers are to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import logging
from headrace.data_parallel import notices
from headrace.data_parallel.batches import BatchShares
from headrace.data_parallel.hooks import begin_own
from headrace.data_parallel.inputs import shard_inputs
from headrace.data_parallel.state import SharedUpdate, state_of
from headrace.data_parallel.steps import ScriptStep
from headrace.data_parallel.traffic import settle
from headrace.data_parallel.turns import Turns
from headrace.data_parallel.worker import ScriptWorker
from headrace.errors import FailedPreconditionError, OpError, OutOfRangeError
from headrace.executor.errands import Limit
from headrace.ops.core.build import raw
from headrace.ops.state import share
from headrace.session import engines
from headrace.session.session import Session
from headrace.step.request import DistantPlan, PlanRequest
from headrace.train.all_reduce_optimizer import broadcast_variables
from headrace.train.coordinator import Coordinator

__all__ = ["open_engine"]


def open_engine(target: str, graph: Any, config: Any) -> ScriptEngine:
    """The engine of a session without a target, or of one that a session manager looks after."""
    job = share.current()
    if not isinstance(job, ScriptWorker):
        raise ValueError(f"Session target {target!r} is for workers of `headrace launch`.")
    return ScriptEngine(job, graph, config, target == job.managed_target)


class ScriptEngine:
    """Runs the steps of a script on the cluster.

    Args:
        is_managed: whether a session manager says who gives variables their values.
    """

    def __init__(self, job: ScriptWorker, graph: Any, config: Any, is_managed: bool) -> None:
        self.job, self.graph, self.is_managed = job, graph, is_managed
        self._config = job.session_config(config)
        self._target = job.server().target
        self.inner = engines.open_engine(self._target, graph, self._config)
        self._turns: Turns | None = None
        self._part: Participation | None = None
        self._has_gathered = job.averages or job.workers == 1

    @property
    def grace(self) -> float:
        return float(self.inner.grace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def plan(self, request: PlanRequest) -> Any:
        """The plan of a step: that of the cluster, or one around it."""
        state = state_of(self.graph)
        with unlocked(self.graph):
            shard_inputs(self.graph, state, self.job.worker, self.job.workers, self.job.seed)
            settle(state, self.job.servers)
        step = ScriptStep(request, state)
        if step.updates:
            return TrainingPlan(self, step)
        if step.writes and not self.is_managed:
            return OncePlan(self, step) if self.job.has_servers else EachPlan(self, step)
        return self.inner.plan(request)

    def run_with_options(
        self, plan: Any, feeds: Any, options: Any, run_metadata: Any, limit: Limit | None
    ) -> Any:
        if not isinstance(plan, (TrainingPlan, OncePlan, EachPlan)):
            return self.inner.run_with_options(plan, feeds, options, run_metadata, limit)

        def run(inner: Any, values: Sequence[Any]) -> Any:
            return self.inner.run_with_options(inner, values, options, run_metadata, limit)

        return plan.run_by(run, feeds)

    def turns(self) -> Turns:
        """The steps of this graph that are run once for all."""
        if self._turns is None:
            job = self.job
            container = state_of(self.graph).container
            self._turns = Turns(
                self._target,
                self._config,
                job.shared_device,
                container,
                job.worker,
                job.workers,
                self._make_way,
                group=None if job.has_servers else job,
            )
        return self._turns

    def _make_way(self, waits: Callable[[], bool]) -> None:
        if self._part is not None:
            self._part.make_way(waits)

    def gather(self) -> None:
        """After the first step of asynchronous training: wait until all have made theirs.

        It takes seconds to compile. Whoever is ready sooner would make a short training alone, and
        the gradients of the others' first steps, of the first values, would come at its end.
        """
        if not self._has_gathered:
            self._has_gathered = True
            self.turns().gather()

    def part(self) -> Participation:
        """What this session takes part in updates with."""
        if self._part is None:
            self._part = Participation(self, Session(self._target, self.graph, self._config))
        return self._part

    def close(self) -> None:
        for held in (self._part, self._turns):
            if held is not None:
                held.close()
        self._part = self._turns = None
        self.inner.close()


class Participation:
    """A worker's part in updates: what they need before the first step, and while they last.

    Args:
        session: of the same graph, for steps of its own.
    """

    def __init__(self, engine: ScriptEngine, session: Session) -> None:
        self._engine, self._session = engine, session
        self._coordinator = Coordinator()
        self._begun: list[SharedUpdate] = []
        engine.job.parts.add(self)

    def begin(self, updates: Sequence[SharedUpdate]) -> None:
        """Take part from now on."""
        for update in updates:
            if update not in self._begun:
                self._begun.append(update)
                self._begin(update)

    def _begin(self, update: SharedUpdate) -> None:
        if self._engine.is_managed:
            return  # hooks do
        begin_own(update, self._engine.job.is_chief, self._session)
        if update.hook is not None and self._engine.job.has_servers:
            update.hook.after_create_session(self._session, self._coordinator)

    def run(self, fetches: Any, feed_dict: Any) -> Any:
        """Run a step as it stands."""
        return self._session.run(fetches, feed_dict)

    def failed(self) -> None:
        """Raise what a thread of this part has met, if it has."""
        self._coordinator.raise_requested_exception()

    def make_way(self, waits: Callable[[], bool]) -> None:
        """Leave if others need gradients of this worker before they come to what it waits for.

        So they do if one was started again, and makes steps that this worker has made, or if an
        update does without some gradients.

        Args:
            waits: whether it still does. Whoever lacked gradients before is behind then.
        """
        asked = [u.is_missed for u in self._begun if u.is_missed is not None]
        if any(is_missed(self._session) for is_missed in asked) and waits():
            logging.info("Workers that are behind go on without this one, which waits for them.")
            self.leave()

    def leave(self) -> None:
        """Have others wait for this worker no longer, until it trains again."""
        begun, self._begun = self._begun, []
        for update in begun:
            is_mine = self._engine.job.has_servers and not self._engine.is_managed
            if update.hook is not None and is_mine:
                update.hook.end(self._session)

    def close(self) -> None:
        try:
            self.leave()
        finally:
            self._session.close()


class TrainingPlan(DistantPlan):
    """A step that applies gradients: with this worker's rows of what is fed."""

    def __init__(self, engine: ScriptEngine, step: ScriptStep) -> None:
        self._engine, self._step = engine, step
        state = state_of(engine.graph)
        if engine.job.workers > 1:
            notices.of_step(step, state)
        self._batches = BatchShares(engine.job, step)
        self._plan = engine.inner.plan(step.request)
        self._weighted: Any = None

    def run(self, feeds: Sequence[Any]) -> Any:
        return self.run_by(_run, feeds)

    def run_by(self, run: Callable[[Any, Sequence[Any]], Any], feeds: Sequence[Any]) -> Any:
        """The fetched values, by a function of a plan of the cluster and its feeds."""
        part = self._engine.part()
        part.begin(self._step.updates)
        values, weights = self._batches.own(feeds)
        try:
            plan = self._with_weights() if weights else self._plan
            result = run(plan, [*values, *weights])
        except OutOfRangeError:
            part.leave()  # this worker has no more examples
            raise
        except OpError:
            part.failed()
            raise
        self._engine.gather()
        return result

    def _with_weights(self) -> Any:
        if self._weighted is None:
            request = self._step.request
            feeds = [*request.feeds, *self._batches.weights]
            self._weighted = self._engine.inner.plan(request._replace(feeds=feeds))
        return self._weighted

    def describe(self) -> str:
        return str(self._plan.describe())


class OncePlan(DistantPlan):
    """A step that changes variables without training: one worker runs it for all."""

    def __init__(self, engine: ScriptEngine, step: ScriptStep) -> None:
        self._engine, self._step = engine, step
        self._rest = step.without_writes()
        variables = step.written()
        self._first = frozenset(v.op for v in variables if v.initializer in step.writes)
        with share.suspended(), engine.graph.as_default():
            self._known = _all_known(engine.graph, variables)
        self._plans: dict[bool, Any] = {}

    def run(self, feeds: Sequence[Any]) -> Any:
        return self.run_by(_run, feeds)

    def run_by(self, run: Callable[[Any, Sequence[Any]], Any], feeds: Sequence[Any]) -> Any:
        """The fetched values, by a function of a plan of the cluster and its feeds."""
        inner = self._engine.inner
        known = inner.plan(PlanRequest([self._known]))

        def step(is_all: bool) -> Any:
            if is_all not in self._plans:
                request = self._step.request if is_all else self._rest
                empty = not (request.fetches or request.targets)
                self._plans[is_all] = None if empty else inner.plan(request)
            plan = self._plans[is_all]
            return [] if plan is None else run(plan, feeds)

        return self._engine.turns().run(
            lambda: step(True), lambda: step(False), lambda: bool(known.run([])[0]), self._first
        )

    def describe(self) -> str:
        return str(self._engine.inner.plan(self._step.request).describe())


class EachPlan(DistantPlan):
    """A step that changes variables of which each worker has its own: all get the chief's."""

    def __init__(self, engine: ScriptEngine, step: ScriptStep) -> None:
        self._engine, self._step = engine, step
        self._plan = engine.inner.plan(step.request)
        #: By who is the chief.
        self._gives: dict[int, Any] = {}

    def run(self, feeds: Sequence[Any]) -> Any:
        return self.run_by(_run, feeds)

    def run_by(self, run: Callable[[Any, Sequence[Any]], Any], feeds: Sequence[Any]) -> Any:
        """The fetched values, by a function of a plan of the cluster and its feeds."""
        values = run(self._plan, feeds)
        try:
            self._give().run([])
        except FailedPreconditionError:  # nobody sends: the chief was lost meanwhile
            if not self._engine.job.find_chief():
                raise
            self._give().run([])
        return values

    def _give(self) -> Any:
        """The plan by which all get what the chief has."""
        graph, job = self._engine.graph, self._engine.job
        if job.chief not in self._gives:
            with unlocked(graph), graph.as_default(), graph.control_dependencies(None):
                give = broadcast_variables(self._step.written(), job.is_chief, job.workers)
            self._gives[job.chief] = self._engine.inner.plan(PlanRequest(targets=[give]))
        return self._gives[job.chief]

    def describe(self) -> str:
        return str(self._plan.describe())


def _all_known(graph: Any, variables: Sequence[Any]) -> Any:
    """A bool scalar: whether all of these variables have values."""
    with unlocked(graph), graph.control_dependencies(None), graph.name_scope("data_parallel"):
        return raw.All(raw.Pack([v.is_initialized() for v in variables]), [0])


class unlocked:
    """Lets operations be added to a graph, finalised or not, within a ``with`` block."""

    def __init__(self, graph: Any) -> None:
        self._graph, self._was = graph, graph.finalized

    def __enter__(self) -> None:
        if self._was:
            self._graph._unsafe_unfinalize()

    def __exit__(self, *_: object) -> None:
        if self._was:
            self._graph.finalize()


def _run(plan: Any, values: Sequence[Any]) -> Any:
    return plan.run(values)
