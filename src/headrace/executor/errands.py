"""Work that its caller can leave: planning, tracing, compiling and kernels cannot be interrupted.

A step with a deadline is an *errand* as long as nobody knows that it takes no time: it runs in a
thread of its own, and whoever called it waits until the deadline, no longer. The work goes on, so
that what it compiles is there for the next step; what it would write is dropped (`Limit.is_over`).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.errors import DeadlineExceededError
from headrace.executor.threads import step_threads

__all__ = ["Limit", "in_time"]

#: How often who waits looks whether the session was closed.
_LOOK = 0.2


class Limit:
    """How long one step may take, from now on.

    Args:
        milliseconds: from now; ``name``: of the setting that says so.

    Attributes:
        deadline: by ``clock``, in seconds.
        left: whether the caller has gone: the step writes nothing any more.
    """

    def __init__(
        self,
        milliseconds: int,
        name: str = "timeout_in_ms",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.milliseconds = milliseconds
        self.name = name
        self.clock = clock
        self.deadline = clock() + milliseconds / 1e3
        self.left = False

    def __str__(self) -> str:
        return f"{self.name}={self.milliseconds}"

    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.deadline - self.clock())

    def is_over(self) -> bool:
        """Whether the step is to end."""
        return self.left or self.clock() >= self.deadline

    def error(self, reason: str = "") -> DeadlineExceededError:
        """What a step that takes longer ends with; ``reason``: a sentence on what it waits for."""
        text = f"Timed out waiting for notification: the step did not finish within {self}."
        return DeadlineExceededError(None, None, f"{text} {reason}".rstrip())


class _Outcome:
    """What came of an errand."""

    __slots__ = ("_there", "error", "value")

    def __init__(self) -> None:
        self._there = threading.Lock()
        # A lock that is taken until the work is done: cheaper than an Event.
        self._there.acquire()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        try:
            self.value = context.run(call)
        except BaseException as error:
            self.error = error
        self._there.release()

    def wait(self, seconds: float) -> bool:
        return self._there.acquire(timeout=max(0.0, seconds))


def in_time(
    call: Callable[[], Any],
    limit: Limit,
    check: Callable[[], None],
    leave: Callable[[], None],
    grace: float = 0.1,
    reason: Callable[[], str] = str,
) -> Any:
    """The result of ``call()``, which runs in another thread.

    Args:
        check: raises when there is another reason to leave: the session is closed.
        leave: called when the caller leaves.
        grace: the work itself gets so many seconds more to say why it has not ended.
        reason: asked when it has not: a sentence on what the work waits for, or "".

    Raises:
        DeadlineExceededError: if it takes longer than ``limit``.
    """
    outcome = _Outcome()
    # With the caller's context variables, as if the caller did the work itself.
    if not step_threads.submit(outcome.run, contextvars.copy_context(), call):
        return call()  # no thread starts while the interpreter ends
    until = limit.deadline + grace
    try:
        while not outcome.wait(min(_LOOK, until - limit.clock())):
            check()
            if limit.clock() >= until:
                raise limit.error(reason())
    except BaseException:
        # From here on the work, which goes on, writes nothing.
        limit.left = True
        leave()
        raise
    if outcome.error is not None:
        try:
            raise outcome.error
        finally:
            outcome.error = None  # its traceback holds this frame
    return outcome.value
