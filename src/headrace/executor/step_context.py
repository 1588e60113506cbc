"""What accompanies a step: its deadline and cancellation, and what a traced one has recorded."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from headrace.errors import CancelledError, DeadlineExceededError
from headrace.executor.errands import Limit
from headrace.graph.dtypes import as_dtype


class Made(NamedTuple):
    """An output of what ran: the number of its dtype, its shape and its bytes."""

    dtype: int
    shape: tuple[int, ...]
    size: int


class Event(NamedTuple):
    """Something that ran, in seconds since the epoch.

    Attributes:
        detail: what it took (names of what made it), or what a transfer moved.
    """

    name: str
    op_type: str
    device: str
    start: float
    end: float
    detail: str
    outputs: tuple[Made, ...]


class StepContext:
    """What accompanies one step.

    Attributes:
        deadline: time by ``clock`` (seconds) after which the step gives up, or None.
        events: everything that ran, when recorded.
        bodies: those that other tasks run, see `stages.PartTables`.
        collectives: who brings members of other tasks together (`ops.collective.calls`), or None.
    """

    bodies: Mapping[Any, Mapping[Any, Any]] = MappingProxyType({})
    collectives: Any = None

    def __init__(
        self,
        timeout_ms: int = 0,
        record: bool = False,
        clock: Callable[[], float] = time.monotonic,
        limit: Limit | None = None,
    ) -> None:
        self.clock = clock
        self.limit = Limit(timeout_ms, clock=clock) if timeout_ms > 0 else limit
        self.deadline = None if self.limit is None else self.limit.deadline
        self.events: list[Event] | None = [] if record else None
        self._cancelled = False
        self._waiting: list[threading.Condition] = []

    @property
    def is_watched(self) -> bool:
        """Whether anyone wants to know how long something takes."""
        return self.events is not None or self.deadline is not None

    @property
    def is_given_up(self) -> bool:
        """Whether the step was cancelled, or has taken too long."""
        return self._cancelled or (self.limit is not None and self.limit.is_over())

    def check_deadline(self) -> None:
        """Raise DeadlineExceededError when the step has taken too long."""
        if self.limit is not None and self.limit.is_over():
            raise self.limit.error()

    def call_in_time(self, call: Callable[[], Any], node: Any) -> Any:
        """The result of ``call()``, which is given up when the deadline passes.

        It runs in a thread of its own: nothing can stop Python code that waits. The thread is left
        alone then, its result is dropped, and it does not keep the process alive.

        Raises:
            DeadlineExceededError: naming ``node``.
        """
        outcome: Future[Any] = Future()
        # The user's function may look at context variables: it is to find those of its caller.
        context = contextvars.copy_context()

        def work() -> None:
            try:
                outcome.set_result(context.run(call))
            except BaseException as error:  # SystemExit, too: else nobody would hear of the end
                outcome.set_exception(error)

        threading.Thread(target=work, name=f"headrace {node.name}", daemon=True).start()
        wait((outcome,), self.remaining())
        if not outcome.done():
            raise DeadlineExceededError(
                None,
                node.op,
                "Timed out waiting for notification: the step did not finish within "
                f"{self.limit}; this op still runs, and what it does outside "
                "the step goes on.",
            )
        return outcome.result()

    def remaining(self) -> float | None:
        """Seconds until the deadline, or None when there is none; blocking ops wait this long."""
        return None if self.deadline is None else max(0.0, self.deadline - self.clock())

    def cancel(self) -> None:
        """Make ops of this step that wait, or come to wait, give up: another has failed."""
        # First the mark, then the bell: who begins to wait in between looks at the mark before. The
        # list is copied, since everyone who wakes takes his condition out of it.
        self._cancelled = True
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()

    def check_cancelled(self) -> None:
        """Raise CancelledError when another op of the step has failed."""
        if self._cancelled:
            raise CancelledError(None, None, "Another operation of the step has failed.")

    def wait_for(self, condition: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait in a blocking op until ``ready()``; the caller holds ``condition``.

        Raises:
            CancelledError: if another op of the step has failed.
            DeadlineExceededError: if the step has taken too long.
        """
        self._waiting.append(condition)
        try:
            # It wakes for any of three reasons, or for none: all are looked at again.
            while not ready():
                self.check_cancelled()
                self.check_deadline()
                condition.wait(self.remaining())
        finally:
            self._waiting.remove(condition)

    def record(
        self,
        name: str,
        op_type: str,
        device: str,
        start: float,
        detail: str = "",
        outputs: Sequence[Any] = (),
        end: float | None = None,
    ) -> None:
        """Note that something ran from ``start`` until now, or until ``end``."""
        if self.events is not None:
            made = tuple(_made(v) for v in outputs if isinstance(v, (np.ndarray, jax.Array)))
            # The time of day, unlike the deadline's clock: traces of several tasks are laid side by
            # side.
            ended = time.time() if end is None else end
            self.events.append(Event(name, op_type, device, start, ended, detail, made))


def _made(value: Any) -> Made:
    return Made(as_dtype(value.dtype).as_datatype_enum, tuple(value.shape), int(value.nbytes))


def fill_metadata(context: StepContext, run_metadata: Any) -> None:
    """Write the recorded events into a RunMetadata message (times in microseconds)."""
    by_device: dict[str, Any] = {}
    for event in context.events or ():
        stats = by_device.get(event.device)
        if stats is None:
            stats = run_metadata.step_stats.dev_stats.add(device=event.device)
            by_device[event.device] = stats
        took = int((event.end - event.start) * 1e6)
        node = stats.node_stats.add(
            node_name=event.name,
            all_start_micros=int(event.start * 1e6),
            op_start_rel_micros=0,
            op_end_rel_micros=took,
            all_end_rel_micros=took,
            timeline_label=f"{event.name} = {event.op_type}({event.detail})",
        )
        _add_outputs(node, event.outputs)


def _add_outputs(node: Any, outputs: Sequence[Made]) -> None:
    for slot, made in enumerate(outputs):
        tensor = node.output.add(slot=slot).tensor_description
        tensor.dtype = made.dtype
        for size in made.shape:
            tensor.shape.dim.add(size=size)
        memory = tensor.allocation_description
        memory.requested_bytes = memory.allocated_bytes = made.size
    if outputs:
        total = sum(made.size for made in outputs)
        node.memory.add(
            allocator_name="tensors", total_bytes=total, peak_bytes=total, live_bytes=total
        )
