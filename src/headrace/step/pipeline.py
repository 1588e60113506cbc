"""The pipeline: from a request for a step to a plan.

What goes in: tensors and operations of a graph, and the site where they are to run. What comes
out: a plan of that site, a LocalPlan in a process and a ClusterPlan at a master. After each stage
the step still has the fetches, feeds and effects that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.graph_files.by_hand import raised
from headrace.partition.describe import describe as describe_parts
from headrace.partition.functions import cut_bodies
from headrace.partition.parts import Partition, cut_at_tasks, whole
from headrace.partition.reads import read_before_loops
from headrace.passes.ir import Node, StepGraph, build_step
from headrace.passes.mixed_precision import half_types
from headrace.passes.pipeline import is_wanted, optimize
from headrace.placement.devices import DeviceAttributes
from headrace.step.request import PlanRequest
from headrace.step.site import PlanT, Site


class Record:
    """What the stages of one plan have done, put into words when somebody asks.

    Attributes:
        pruned: nodes that the step needs.
        used, available: devices.
        changes: of each rewrite pass.
        left: nodes after them.
    """

    __slots__ = ("available", "changes", "left", "pruned", "used")

    pruned: int
    used: int
    available: int
    changes: dict[str, int]
    left: int

    def lines(self, partition: Partition) -> list[str]:
        """A line for each stage; the last two count what is in the partition."""
        done = [f"{name}: {count}" for name, count in self.changes.items() if count]
        parts = _count(len(partition.parts), "part")
        transfers = sum(len(part.sends) for part in partition.parts.values())
        return [
            f"prune: {_count(self.pruned, 'node')}",
            f"place: {_count(self.used, 'device')} of {self.available}",
            f"rewrite: {'; '.join([_count(self.left, 'node') + ' left', *done])}",
            f"split: {parts}, {_count(transfers, 'transfer')}",
            f"lower: {parts}",
        ]


def make_plan(request: PlanRequest, site: Site[PlanT]) -> PlanT:
    """The plan for one kind of step.

    Raises:
        OpError: if the step cannot be placed, or a task that it needs does not come in time.
        ValueError: if old control flow in it has no form that functions have.
    """
    record = Record()
    step = prune(request, record)
    # Placed before it is rewritten: a rewrite may join only what is on one device. Rewritten before
    # it is split: what goes away needs no transfer, and a transfer hides what could be joined.
    available = place(step, request, site, record)
    rewrite(step, site, record)
    partition = split(step, available, site)
    return lower(partition, step, request, site, record)


def prune(request: PlanRequest, record: Record) -> StepGraph:
    """What the fetches and targets need, cut at the feeds; old control flow as functions."""
    fetches, feeds, targets = request.fetches, request.feeds, request.targets
    # Stages know loops as one node with functions; graphs from files may have Switch and Merge.
    by_functions = raised(fetches, feeds, targets)
    if by_functions is not None:
        fetches, feeds, targets = by_functions
    step = build_step(fetches, feeds, targets, request.last)
    record.pruned = len(step.nodes)
    return step


def place(
    step: StepGraph, request: PlanRequest, site: Site[PlanT], record: Record
) -> Sequence[DeviceAttributes]:
    """Give each node one device; returns the devices that there were to choose from."""
    available, default = site.devices(step, request)
    _place(step.nodes, available, default, "", site)
    record.used = len({node.device for node in step.nodes})
    record.available = len(available)
    return available


def rewrite(step: StepGraph, site: Site[PlanT], record: Record) -> None:
    """Leave less to compute and to send."""
    if site.tasks:  # a loop would ask another task for its variables in each iteration
        read_before_loops(step)
    record.changes = optimize(step, half_types(site.config), is_wanted(site.config))
    record.left = len(step.nodes)


def split(step: StepGraph, available: Sequence[DeviceAttributes], site: Site[PlanT]) -> Partition:
    """The part of each task, and of each task in bodies that need several. In a process all is
    one part."""

    def place_body(nodes: Sequence[Node], device: str, function: str) -> None:
        _place(nodes, available, device, function, site)

    # Devices of one process need no parts: its plan moves values between them by itself.
    if not site.tasks:
        return whole(step, available[0].task)
    # Bodies first: to cut the step one has to know which loops and calls other tasks help with.
    bodies = cut_bodies(step, place_body, site.precision)
    return cut_at_tasks(step, site.precision, bodies)


def lower(
    partition: Partition,
    step: StepGraph,
    request: PlanRequest,
    site: Site[PlanT],
    record: Record,
) -> PlanT:
    """What runs the parts: units in this process, or parts registered with their tasks."""
    return site.lower(partition, _description(partition, step, site, record), request)


def _place(
    nodes: Sequence[Node],
    available: Sequence[DeviceAttributes],
    default: str,
    function: str,
    site: Site[PlanT],
) -> None:
    config = site.config
    site.pins.place(
        nodes,
        available,
        function=function,
        default_device=default,
        allow_soft_placement=config is not None and config.allow_soft_placement,
        log_device_placement=config is not None and config.log_device_placement,
        task_names=site.tasks,
        moved=site.moved,
    )


def _description(
    partition: Partition, step: StepGraph, site: Site[PlanT], record: Record
) -> Callable[[], str]:
    """Puts the stages and parts of a plan into words when they are asked for."""

    def words() -> str:
        shown = partition
        if not site.tasks:  # stages are worked out for who wants to see them
            shown = cut_at_tasks(
                StepGraph(list(step.nodes), step.feeds, list(step.fetches), step.targets)
            )
        return "\n".join([*record.lines(shown), describe_parts(shown)])

    return words


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


__all__ = ["Record", "lower", "make_plan", "place", "prune", "rewrite", "split"]
