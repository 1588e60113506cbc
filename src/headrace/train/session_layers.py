"""The layers of a monitored session: hooks, threads that stop together, recovery.

Each layer wraps the next one and ends in a plain session: recovery -> coordination -> hooks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headrace import logging
from headrace.errors import AbortedError, CancelledError, UnavailableError
from headrace.structured_logs import tell
from headrace.train.coordinator import Coordinator
from headrace.train.session_run_hook import (
    HookGroup,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

#: Errors after which a new session may succeed: a task was lost, or lost its state.
PREEMPTION_ERRORS = (AbortedError, UnavailableError)
#: Seconds before the third attempt to make a session, twice as many before each later one, and the
#: most.
_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class StepFunctionContext:
    """What `MonitoredSession.run_step_fn` hands to its function."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The plain session: its steps go without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As ``MonitoredSession.run``, but for recovery: it may be called once only."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Leave the loop around ``run_step_fn``. Raises StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class WrappedSession:
    """A session inside another object; closed, it has none."""

    def __init__(self, sess: Any) -> None:
        self._sess = sess
        self._wraps_layer = isinstance(sess, WrappedSession)

    @property
    def graph(self) -> Any:
        return self._sess.graph

    @property
    def sess_str(self) -> Any:
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Whether the session should not be used any more."""
        if self._check_stop():
            return True
        if self._sess is not None:
            return bool(self._wraps_layer and self._sess.should_stop())
        return True

    def _check_stop(self) -> bool:
        return False

    def close(self) -> None:
        """Close the session; one that has failed already is left alone."""
        if self._sess is not None:
            try:
                self._sess.close()
            except PREEMPTION_ERRORS as error:
                logging.error("An error occurred when attempting to close the session: %s", error)
            finally:
                self._sess = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run a step."""
        return self._sess.run(*args, **kwargs)

    def run_step_fn(
        self,
        step_fn: Callable[[StepFunctionContext], Any],
        raw_session: Any,
        run_with_hooks: Callable[..., Any] | None,
    ) -> Any:
        """Call a function of the user that runs steps."""
        return step_fn(StepFunctionContext(raw_session, run_with_hooks or self.run))


def leaves_cluster(sess: Any) -> bool:
    """Whether the task of this process, which is the session's master, is to leave its cluster."""
    return bool(getattr(getattr(sess, "_engine", None), "is_leaving", False))


class HookedSession(WrappedSession):
    """Calls hooks around each step."""

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._has_groups = any(isinstance(hook, HookGroup) for hook in hooks)
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop or leaves_cluster(self._sess)

    def _taking_part(self) -> Sequence[SessionRunHook]:
        """The hooks of the step that comes."""
        if not self._has_groups:
            return self._hooks
        found: list[SessionRunHook] = []
        for hook in self._hooks:
            found.extend(hook.taking_part() if isinstance(hook, HookGroup) else (hook,))
        return found

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Run a step with what the hooks add to it.

        Raises:
            RuntimeError: after a hook has asked to stop, and if a tensor is fed twice.
        """
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        wanted: dict[Any, Any] = {"caller": fetches}
        request = _Request(feed_dict, options, run_metadata)
        hooks = self._taking_part()
        for hook in hooks:
            added = hook.before_run(context)
            if added is not None:
                if added.fetches is not None:
                    wanted[hook] = added.fetches
                request.add(added)
        values = self._sess.run(
            wanted,
            feed_dict=request.feeds,
            options=request.options,
            run_metadata=request.metadata,
        )
        for hook in hooks:
            given = SessionRunValues(values.get(hook), request.options, request.metadata)
            hook.after_run(context, given)
        self._should_stop = self._should_stop or context.stop_requested
        return values["caller"]


class _Request:
    """Feeds and options of a step: those of the caller and those of hooks."""

    def __init__(self, feed_dict: dict[Any, Any] | None, options: Any, metadata: Any) -> None:
        self.feeds = feed_dict
        self.options = options
        self.metadata = metadata
        self._user = feed_dict
        self._hooked: dict[Any, Any] = {}

    def add(self, added: SessionRunArgs) -> None:
        """Add what a hook asks for."""
        if added.feed_dict:
            if not self._hooked.keys().isdisjoint(added.feed_dict):
                raise RuntimeError("Same tensor is fed by two hooks.")
            if self._user and not self._user.keys().isdisjoint(added.feed_dict):
                raise RuntimeError("Same tensor is fed by a SessionRunHook and user.")
            self._hooked.update(added.feed_dict)
            self.feeds = {**self._hooked, **(self._user or {})}
        # A step that nobody wants to know more about is cheaper.
        if added.options is not None and added.options.ByteSize():
            self._merge(added.options)

    def _merge(self, options: Any) -> None:
        from headrace.graph.proto import RunMetadata, RunOptions

        merged = RunOptions()
        if self.options is not None:
            merged.CopyFrom(self.options)
        level = max(merged.trace_level, options.trace_level)
        timeout = max(merged.timeout_in_ms, options.timeout_in_ms)
        merged.MergeFrom(options)
        merged.trace_level, merged.timeout_in_ms = level, timeout
        self.options = merged
        if self.metadata is None:
            self.metadata = RunMetadata()


class CoordinatedSession(WrappedSession):
    """Stops with its threads: of queue runners, and those that hooks have started."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._grace = stop_grace_period_secs

    def _check_stop(self) -> bool:
        # An error of a thread comes out here too, not only when the session is closed.
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except Exception as error:
                # The error of a thread, if there is one, is the cause and must come out.
                logging.debug("Ignored while closing: %s", error)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._sess.run(*args, **kwargs)
        except PREEMPTION_ERRORS:
            raise
        except Exception as error:
            # A thread may have lost its task first: that can be recovered from.
            try:
                self._coord.raise_requested_exception()
            except PREEMPTION_ERRORS:
                raise
            except Exception as cause:
                if isinstance(error, CancelledError) or self._is_closed():
                    # The thread has closed the session, so that the step would not wait for it.
                    raise
                logging.debug("A thread has failed too: %s", cause)
            raise error

    def _is_closed(self) -> bool:
        hooked = self._sess
        return bool(getattr(getattr(hooked, "_sess", hooked), "_closed", False))


class RecoverableSession(WrappedSession):
    """Makes a new session when the old one is lost, and repeats the step.

    Args:
        creator: makes sessions.
        pause: waits for some seconds.
    """

    def __init__(self, creator: Any, pause: Callable[[float], Any] | None = None) -> None:
        self._creator = creator
        self._pause = pause or threading.Event().wait
        super().__init__(self._create())

    def _create(self) -> Any:
        attempt = 0
        while True:
            try:
                return self._creator.create_session()
            except PREEMPTION_ERRORS as error:
                # The first time it is what happens when a task is lost.
                log = logging.warning if attempt else logging.info
                log(
                    "An error was raised while a session was being created. This may be due to a "
                    "preemption of a connected worker or parameter server. A new session will be "
                    "created. Error: %s",
                    error,
                )
                if attempt:
                    self._pause(min(_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE))
                attempt += 1

    def _renew(self, error: Exception) -> None:
        tell(
            logging.get_logger(),
            "session_recovered",
            "An error was raised. This may be due to a preemption in a connected worker or "
            "parameter server. The current session will be closed and a new session will be "
            "created. Error: %s",
            error,
            fields={"error": type(error).__name__},
        )
        self.close()
        self._sess = self._create()

    def _check_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return bool(self._sess._check_stop())
        except PREEMPTION_ERRORS as error:
            self._renew(error)
            return False
        except Exception as error:
            # A thread has failed: closing the session reports it.
            logging.debug("While asking whether to stop: %s", error)
            return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._repeat(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(
        self,
        step_fn: Callable[[StepFunctionContext], Any],
        raw_session: Any,
        run_with_hooks: Callable[..., Any] | None,
    ) -> Any:
        return self._repeat(
            lambda: self._sess.run_step_fn(
                step_fn, self._creator.tf_sess or raw_session, run_with_hooks
            )
        )

    def _repeat(self, step: Callable[[], Any]) -> Any:
        while True:
            if self._sess is None:
                self._sess = self._create()
            try:
                return step()
            except PREEMPTION_ERRORS as error:
                self._renew(error)
