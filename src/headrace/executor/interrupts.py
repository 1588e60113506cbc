"""Ending a step that computes: what it is asked, and what asks.

A step is given up when its deadline passes, when it is cancelled, or when its session is closed.
Between ops and iterations that are interpreted this is looked at directly. A compiled loop asks by
a host callback after each of its *chunks* of iterations; the answer is up to which iteration the
next one goes, or that the loop is to end. A chunk is sized by the clock, so that it takes some
hundredths of a second: values do not depend on where chunks end. What a loop that was ended gives
means nothing; the step drops it and raises.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace.errors import CancelledError
from headrace.executor.signals import DeferredSignals
from headrace.executor.threads import retire

if TYPE_CHECKING:
    from headrace.executor.resources import ResourceStore
    from headrace.executor.step_context import StepContext

__all__ = [
    "NOBODY",
    "LoopPolls",
    "Watch",
    "compiling",
    "end_all",
    "has_left_compiling",
    "is_ready",
    "wait_until_ready",
]

#: A loop that is estimated to take no longer asks nobody; seconds.
SHORT_LOOP = 0.1
#: The first chunk of a loop is estimated to take so many seconds; a callback takes about 1e-4.
_FIRST_CHUNK = 5e-3
#: Chunks grow until they take about so many seconds.
_CHUNK = 0.03
#: Who waits looks so often whether the step was given up, at first and at most; seconds.
_LOOK_FIRST, _LOOK = 1e-5, 2e-3

#: The token of a run that is not watched: its loops are certain to be short.
NOBODY = np.int32(0)
_MOST = np.iinfo(np.int32).max
_numbers = itertools.count(1)
_watches: dict[int, Watch] = {}
_lock = threading.Lock()
_has_ended = False
_has_left_compiling = False


class Watch:
    """What one run of a program, or of an interpreter, asks whether it is to go on.

    Args:
        store: the state that it uses; when that is closed, so is its session.
        context: of its step, if that has one.

    Attributes:
        stopped: whether a loop was told to end.
        raised: what a signal handler of the program raised meanwhile.
    """

    # Each step that holds state has one, and few ask it anything: so it is made in no time.
    stopped = False
    raised: BaseException | None = None
    token = 0
    _signals: DeferredSignals | None = None

    def __init__(self, store: ResourceStore, context: StepContext | None) -> None:
        self.store = store
        self.context = context

    def check(self) -> float | None:
        """Raise if the step is given up; else the seconds that it has left, or None."""
        if _has_ended and threading.current_thread() is not threading.main_thread():
            raise _end()
        self.store.check_open()
        if self.context is None:
            return None
        self.context.check_cancelled()
        self.context.check_deadline()
        return self.context.remaining()

    def is_given_up(self) -> bool:
        """Whether ``check`` raises from now on: its step writes nothing any more."""
        return self.context is not None and self.context.is_given_up

    def interrupt(self) -> None:
        """Raise if the step is given up."""
        self.check()

    def __enter__(self) -> Watch:
        #: When each loop asked last, and the size of its chunk.
        self._loops: dict[int, tuple[float, int]] = {}
        self._began = time.monotonic()
        with _lock:
            self.token = 1 + next(_numbers) % _MOST  # never `NOBODY`
            _watches[self.token] = self
        return self

    def __exit__(self, *exc: object) -> None:
        with _lock:
            del _watches[self.token]

    def deferring(self) -> DeferredSignals:
        """A block around a program that asks: signals wait until it does."""
        self._signals = DeferredSignals()
        return self._signals

    def answer(self, loop: int, done: int, first: int) -> int:
        """Up to which iteration a loop goes on that has done so many; -1: it ends."""
        try:
            # Handlers of signals were put off until here; see `executor.signals`.
            if self._signals is not None:
                self._signals.deliver()
        except BaseException as error:  # it is raised where the program was called
            self.raised = error
            self.stopped = True
            return -1
        try:
            self.check()
        except (Exception, SystemExit):
            self.stopped = True
            return -1
        now = time.monotonic()
        asked, chunk = self._loops.get(loop, (self._began, first))
        took = now - asked
        # A chunk that is too short doubles, one that is too long becomes what it should have been.
        if took < _CHUNK / 2:
            chunk = min(2 * chunk, _MOST)
        elif took > 2 * _CHUNK:
            chunk = max(1, int(chunk * _CHUNK / took))
        self._loops[loop] = now, chunk
        return min(done + chunk, _MOST)


def _answer(loop: int, first: int, token: Any, done: Any) -> Any:
    if int(token) == NOBODY:
        return np.int32(_MOST)
    watch = _watches.get(int(token))
    # A program whose watch is gone was given up by whoever waited for it.
    return np.int32(-1 if watch is None else watch.answer(loop, int(done), first))


def end_all() -> None:
    """The process ends, and with it all steps: programs that outlive it could not ask any more."""
    global _has_ended
    _has_ended = True


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Around a compilation: what a signal handler raises ends it for Python, and XLA goes on."""
    global _has_left_compiling
    try:
        yield
    except jax.errors.JaxRuntimeError:
        raise
    except BaseException:
        _has_left_compiling = True
        raise


def has_left_compiling() -> bool:
    """Whether XLA may still compile, in threads that are not Python's, what nobody waits for."""
    return _has_left_compiling


def _end() -> BaseException:
    """What ends a step then. A thread of the program has nobody to tell: it ends silently."""
    thread = threading.current_thread()
    if thread is threading.main_thread() or not thread.daemon or thread.name.startswith("headrace"):
        return CancelledError(None, None, "The process ends.")
    return SystemExit()


class LoopPolls:
    """How the loops of one program ask, while it is traced.

    Args:
        token: which `Watch` they ask: an integer scalar that the program is given.

    Attributes:
        used: how many loops ask.
    """

    def __init__(self, token: Any) -> None:
        self._token = token
        self.used = 0

    def of(self, seconds: float, most: int | None) -> LoopPoll | None:
        """How a loop asks; None for one that is certain to be short.

        Args:
            seconds: estimated, of one iteration; ``most``: how many there are, if that is known.
        """
        # To ask costs a callback, and so short a loop ends soon by itself.
        if most is not None and most * seconds <= SHORT_LOOP:
            return None
        self.used += 1
        first = int(min(max(1.0, _FIRST_CHUNK / seconds), _MOST))
        return LoopPoll(self._token, self.used, first)


class LoopPoll:
    """How one loop asks.

    Attributes:
        first: the iterations of its first chunk.
    """

    def __init__(self, token: Any, number: int, first: int) -> None:
        self._token = token
        self._number = number
        self.first = first

    def ask(self, done: Any) -> Any:
        """Up to which iteration to go on, or -1, as a traced int32."""
        form = jax.ShapeDtypeStruct((), jnp.int32)  # type: ignore[no-untyped-call]
        call = partial(_answer, self._number, self.first)
        return jax.pure_callback(call, form, self._token, done)


def is_ready(value: Any) -> bool:
    """Whether a value is there, rather than being computed."""
    return not isinstance(value, jax.Array) or value.is_ready()  # type: ignore[attr-defined]


def wait_until_ready(arrays: Sequence[Any], watch: Watch) -> None:
    """Wait for arrays that are being computed, but not beyond the deadline of the step.

    Who cancels a step does not wait for a kernel that is under way, and loops end by themselves; so
    without a deadline there is nothing to look at, and looking costs time.
    """
    if watch.context is None or watch.context.deadline is None:
        jax.block_until_ready(arrays)  # type: ignore[no-untyped-call]
        return
    # Short pauses first, so that what takes a moment is not made longer by looking.
    pause = _LOOK_FIRST
    for array in arrays:
        while not is_ready(array):
            try:
                left = watch.check()
            except BaseException:
                retire()
                raise
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 1.25, _LOOK)
