"""The in-process engine: turns requests for steps into plans and runs them."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from headrace.errors import InternalError, InvalidArgumentError, OpError
from headrace.executor.compilation_cache import use_compilation_cache
from headrace.executor.ending import end_orderly
from headrace.executor.errands import Limit
from headrace.executor.failures import is_out_of_memory, out_of_memory
from headrace.executor.host import HostRunner
from headrace.executor.memory import keep_freed_memory, share_one_heap
from headrace.executor.partial import PartialRun
from headrace.executor.plan import LocalPlan
from headrace.executor.policy import CALL, CALL_FROM_HOST, runs_before_compiling
from headrace.executor.region_options import CPU_OPTIONS, RegionOptions
from headrace.executor.resources import ResourceStore
from headrace.executor.stages import PartTables
from headrace.executor.step_context import StepContext, fill_metadata
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph
from headrace.partition.parts import Part, Partition
from headrace.passes.ir import StepGraph, effects_of
from headrace.placement.devices import DeviceAttributes, default_device, local_devices
from headrace.settings import flags
from headrace.step.pipeline import Record, make_plan, place, prune
from headrace.step.request import PlanRequest
from headrace.step.site import Pins, Site

atexit.register(end_orderly)

#: Writing takes moments; who leaves waits no longer for it, in seconds.
_LEAVE_SECONDS = 0.1
#: RunOptions.FULL_TRACE
_FULL_TRACE = 3


class _ProcessSite(Site[LocalPlan]):
    """The devices of this process; a partition has one part, which is lowered here."""

    def __init__(
        self,
        config: Any,
        devices: Callable[[], Sequence[DeviceAttributes]],
        lowered: Callable[[StepGraph, PartTables | None, Callable[[], str]], LocalPlan],
    ) -> None:
        self.config = config
        self.pins = Pins()
        self._devices = devices
        self._lowered = lowered

    def devices(
        self, step: StepGraph, request: PlanRequest
    ) -> tuple[Sequence[DeviceAttributes], str]:
        devices = self._devices()
        return devices, default_device(devices).name

    def lower(
        self, partition: Partition, describe: Callable[[], str], request: PlanRequest
    ) -> LocalPlan:
        (part,) = partition.parts.values()
        return self._lowered(part.step(), None, describe)


class ProcessEngine:
    """Plans and state of one session in one process.

    Args:
        config: a ConfigProto or None.
        store, devices: those of a server that the session uses; by default its own.
        serves: whether values come from other tasks and go there.
        graph: of the session.
    """

    grace = 0.1

    def __init__(
        self,
        config: Any,
        store: ResourceStore | None = None,
        devices: list[DeviceAttributes] | None = None,
        serves: bool = False,
        graph: Graph | None = None,
    ) -> None:
        self.config = config
        self._graph = graph
        self.serves = serves
        self.store = ResourceStore() if store is None else store
        self.host = HostRunner()
        keep_freed_memory()
        use_compilation_cache()
        if devices is not None:
            self.devices = devices
        self._options: dict[str, RegionOptions] = {}
        self._site = _ProcessSite(config, self.list_devices, self._lowered)
        self.host.plan_function = self._function_plan

    @cached_property
    def devices(self) -> list[DeviceAttributes]:
        """The devices that nodes can be placed on.

        XLA starts its threads when they are first asked for: by the first step, not as the session
        is made, since many programs build their graph after that.
        """
        if self._graph is not None:
            share_one_heap(self._graph)
        return local_devices(self.config)

    def plan(self, request: PlanRequest) -> LocalPlan:
        """The plan for one kind of step."""
        return make_plan(request, self._site)

    def _function_plan(self, function: FuncGraph) -> Callable[[Sequence[Any]], Any]:
        """The plan of a function body that is no part of a step."""
        effects = effects_of(function)
        return self.plan(PlanRequest(function.outputs, function.all_inputs, effects)).run

    def part_plan(self, part: Part) -> LocalPlan:
        """The plan of this task's part of a step, which is placed and optimised already."""
        return self._lowered(part.step(), part.tables)

    def _lowered(
        self,
        step: StepGraph,
        tables: PartTables | None = None,
        describe: Callable[[], str] | None = None,
    ) -> LocalPlan:
        return LocalPlan(step, self.store, self._device_options, self.host, tables, describe)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that nodes can be placed on."""
        return list(self.devices)

    def run_with_options(
        self,
        plan: LocalPlan,
        feeds: Sequence[Any],
        options: Any,
        run_metadata: Any,
        limit: Limit | None = None,
    ) -> list[Any]:
        """Run a step under RunOptions, filling ``run_metadata`` when a trace is asked for.

        What is timed is what runs: the units of the plan, that is compiled regions and host ops.
        Under ``HEADRACE_TRACE_OPS=1`` a FULL_TRACE interprets the step instead, op by op, so that
        each has a time of its own; that is not the time that it takes in a program.
        """
        level = options.trace_level if options is not None else 0
        context = StepContext(record=level > 0, limit=limit)
        if level == _FULL_TRACE and flags.trace_ops:
            results = plan.run_by_op(feeds, context)
        else:
            results = plan.run(feeds, context)
        if run_metadata is not None:
            run_metadata.Clear()
            fill_metadata(context, run_metadata)
        return results

    def partial_run(self, request: PlanRequest) -> PartialRun:
        """A step to run piece by piece."""
        record = Record()
        step = prune(request, record)
        place(step, request, self._site, record)
        return PartialRun(step, self.store, self.host.interpreter(self.store))

    def _device_options(self, device: str) -> RegionOptions:
        options = self._options.get(device)
        if options is None:
            found = [d for d in self.devices if d.name == device]
            on_cpu = "CPU" in device or not device
            options = self._options[device] = RegionOptions(
                found[0].jax_device if found else None,
                self.host,
                explain,
                partial(runs_before_compiling, call=CALL_FROM_HOST if self.serves else CALL),
                CPU_OPTIONS if on_cpu else None,
                passes_on=self.serves and on_cpu,
            )
        return options

    def leave(self) -> None:
        """The caller of a step goes: what was about to be written is written, or never is."""
        if self.store.lock.acquire(timeout=_LEAVE_SECONDS):
            self.store.lock.release()

    def waits_for(self) -> str:
        """No task: all is in this process."""
        return ""

    def close(self) -> None:
        """Free all state; what waits in a step is cancelled."""
        self.store.close()


def explain(error: Exception) -> OpError:
    """An error of JAX or XLA as one of ours."""
    text = str(error)
    if is_out_of_memory(error):
        return out_of_memory(None)
    if isinstance(error, (TypeError, ValueError)):
        return InvalidArgumentError(None, None, text)
    return InternalError(None, None, f"{type(error).__name__}: {text}")
