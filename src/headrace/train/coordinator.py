"""Threads that stop together: Coordinator and LooperThread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace import logging
from headrace.errors import OutOfRangeError

__all__ = ["Coordinator", "LooperThread"]

#: How often `Coordinator.join` looks whether a thread has ended, in seconds.
_LOOK_EVERY = 0.02


class Coordinator:
    """Lets any of several threads ask all of them to stop, and hands on the exception that did.

    Each thread runs ``while not coord.should_stop(): ...``, best inside
    ``with coord.stop_on_exception()``; the main thread calls `request_stop` and `join`.

    Args:
        clean_stop_exception_types: a tuple of exceptions that mean an orderly end, which `join`
            does not raise; by default ``(OutOfRangeError,)``, the end of the input.

    >>> import threading
    >>> coord = tf.train.Coordinator()
    >>> def work():
    ...     while not coord.should_stop():
    ...         coord.request_stop()
    >>> thread = threading.Thread(target=work)
    >>> thread.start()
    >>> coord.join([thread])  # raises what a thread has raised
    >>> coord.should_stop()
    True
    """

    def __init__(self, clean_stop_exception_types: tuple[type, ...] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._exception: BaseException | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask the threads to stop.

        Args:
            ex: why, an exception or a tuple of ``sys.exc_info()``; `join` raises the first one
                given, unless its type means an orderly end.

        Raises:
            ex: if the threads have been joined already, so that nobody else would report it.
            ValueError: if ``ex`` is a tuple without an exception.
        """
        error = _exception_of(ex)
        with self._lock:
            if isinstance(error, self._clean_stop_exception_types):
                error = None
            if self._joined:
                if error is not None:
                    raise error
                return
            if self._stop_event.is_set():
                return
            if error is not None and self._exception is None:
                logging.info("Error reported to Coordinator: %s, %s", type(error), error)
                self._exception = error
            self._stop_event.set()

    def clear_stop(self) -> None:
        """Forget the request to stop, its exception and that threads have been joined."""
        with self._lock:
            self._joined = False
            self._exception = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop has been requested."""
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context that turns an exception of its body into a request to stop."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested, at most ``timeout`` seconds; whether it has been."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Add a thread that `join` waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended.

        It waits without limit until a stop is requested, and from then on for as long as
        ``stop_grace_period_secs``. Afterwards the coordinator may be used again.

        Args:
            threads: further threads beside the registered ones.
            ignore_live_threads: whether threads that outlive the grace period are no error.

        Raises:
            The exception given to `request_stop`, if any.
            RuntimeError: if threads outlive the grace period.
        """
        with self._lock:
            waited = self._registered_threads.union(threads or ())
        alive = [t for t in waited if t.is_alive()]
        while alive and not self._stop_event.is_set():
            alive[0].join(_LOOK_EVERY)
            alive = [t for t in alive if t.is_alive()]
        limit = time.monotonic() + stop_grace_period_secs
        for thread in alive:
            thread.join(max(0.0, limit - time.monotonic()))
        stragglers = sorted(t.name for t in alive if t.is_alive())
        with self._lock:
            self._joined = True
            self._registered_threads = set()
            error = self._exception
        if error is not None:
            raise error
        if stragglers:
            message = f"Coordinator stopped with threads still running: {' '.join(stragglers)}"
            if not ignore_live_threads:
                raise RuntimeError(message)
            logging.info("%s", message)

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the exception given to `request_stop`, if there is one."""
        with self._lock:
            if self._exception is not None:
                raise self._exception


def _exception_of(ex: Any) -> BaseException | None:
    """The exception in what `request_stop` was given."""
    if ex is None or isinstance(ex, BaseException):
        return ex
    if isinstance(ex, tuple) and len(ex) == 3 and isinstance(ex[1], BaseException):
        return ex[1].with_traceback(ex[2])
    raise ValueError(f"ex must be an exception, or a tuple of sys.exc_info(), not {ex!r}")


class LooperThread(threading.Thread):
    """A thread that calls a function again and again until its coordinator stops.

    Args:
        coord: the Coordinator; an exception of the function stops all its threads.
        timer_interval_secs: from the start of one call to the next, in seconds; with None the
            calls follow each other at once.
        target: the function; without one, override `run_loop`.
        args, kwargs: its arguments.

    Raises:
        ValueError: if ``coord`` is no Coordinator, or arguments are given without a target.

    >>> coord = tf.train.Coordinator()
    >>> looper = tf.train.LooperThread.loop(coord, None, target=coord.request_stop)
    >>> coord.join([looper])
    >>> coord.should_stop()
    True
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' need a 'target' that takes them.")
        super().__init__(daemon=True)
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._call = target
        self._call_args = tuple(args or ())
        self._call_kwargs = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Make such a thread and start it."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                # The first call comes at once.
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once before the first call."""

    def stop_loop(self) -> None:
        """Called once after the last call."""

    def run_loop(self) -> None:
        """One call of the function."""
        if self._call is not None:
            self._call(*self._call_args, **self._call_kwargs)
