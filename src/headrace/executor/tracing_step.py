"""Steps that are watched: deadlines, and the time that each op takes."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from headrace.errors import CancelledError, DeadlineExceededError


class StepContext:
    """What accompanies one step.

    Attributes:
        deadline: time by ``clock`` (seconds) after which the step gives up, or None.
        events: ``(name, op type, device, start, end, detail)`` of everything that ran, when
            recorded; seconds since the epoch.
    """

    def __init__(
        self,
        timeout_ms: int = 0,
        record: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.timeout_ms = timeout_ms
        self.deadline = clock() + timeout_ms / 1e3 if timeout_ms > 0 else None
        self.events: list[tuple[str, str, str, float, float, str]] | None = [] if record else None
        self._cancelled = False
        self._waiting: list[threading.Condition] = []

    @property
    def is_watched(self) -> bool:
        """Whether anyone wants to know how long something takes."""
        return self.events is not None or self.deadline is not None

    def check_deadline(self) -> None:
        """Raise DeadlineExceededError when the step has taken too long."""
        if self.deadline is not None and self.clock() >= self.deadline:
            raise DeadlineExceededError(
                None,
                None,
                "Timed out waiting for notification: the step did not finish within "
                f"timeout_in_ms={self.timeout_ms}.",
            )

    def call_in_time(self, call: Callable[[], Any], node: Any) -> Any:
        """The result of ``call()``, which is given up when the deadline passes.

        It runs in a thread of its own: nothing can stop Python code that waits. The thread is left
        alone then, its result is dropped, and it does not keep the process alive.

        Raises:
            DeadlineExceededError: naming ``node``.
        """
        outcome: Future[Any] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                outcome.set_result(context.run(call))
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=work, name=f"headrace {node.name}", daemon=True).start()
        wait((outcome,), self.remaining())
        if not outcome.done():
            raise DeadlineExceededError(
                None,
                node.op,
                "Timed out waiting for notification: the step did not finish within "
                f"timeout_in_ms={self.timeout_ms}; this op still runs, and what it does outside "
                "the step goes on.",
            )
        return outcome.result()

    def remaining(self) -> float | None:
        """Seconds until the deadline, or None when there is none; blocking ops wait this long."""
        return None if self.deadline is None else max(0.0, self.deadline - self.clock())

    def cancel(self) -> None:
        """Make ops of this step that wait, or come to wait, give up: another has failed."""
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
            while not ready():
                self.check_cancelled()
                self.check_deadline()
                condition.wait(self.remaining())
        finally:
            self._waiting.remove(condition)

    def record(self, name: str, op_type: str, device: str, start: float, detail: str = "") -> None:
        """Note that something ran from ``start`` until now."""
        if self.events is not None:
            self.events.append((name, op_type, device, start, time.time(), detail))


def fill_metadata(context: StepContext, run_metadata: Any) -> None:
    """Write the recorded events into a RunMetadata message (times in microseconds)."""
    by_device: dict[str, Any] = {}
    for name, op_type, device, start, end, detail in context.events or ():
        stats = by_device.get(device)
        if stats is None:
            stats = by_device[device] = run_metadata.step_stats.dev_stats.add(device=device)
        stats.node_stats.add(
            node_name=name,
            all_start_micros=int(start * 1e6),
            op_start_rel_micros=0,
            op_end_rel_micros=int((end - start) * 1e6),
            all_end_rel_micros=int((end - start) * 1e6),
            timeline_label=f"{name} = {op_type}({detail})",
        )
