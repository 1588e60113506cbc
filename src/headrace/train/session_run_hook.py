"""Hooks: what they may do around each step of a monitored session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunArgs(NamedTuple):
    """What a hook adds to a step: fetches, feeds and RunOptions.

    >>> loss = tf.constant(0.5)
    >>> args = tf.train.SessionRunArgs({"loss": loss})
    >>> args.feed_dict, sorted(args.fetches)
    (None, ['loss'])
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a step gave: the values of the hook's fetches, RunOptions and RunMetadata.

    >>> values = tf.train.SessionRunValues(results=0.5, options=None, run_metadata=None)
    >>> values.results  # as `after_run` of a hook gets them
    0.5
    """

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """A step that is under way.

    Args:
        original_args: fetches and feeds of the caller, without those of hooks.
        session: the session that runs it.

    >>> with tf.Session() as sess:
    ...     context = tf.train.SessionRunContext(tf.train.SessionRunArgs(None), sess)
    ...     context.session is sess, context.stop_requested
    ...     context.request_stop()
    ...     context.stop_requested
    (True, False)
    True
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """Fetches and feeds of the caller."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session; hooks may run steps of their own in it."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook has asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Make ``should_stop()`` of the monitored session true, after this step."""
        self._stop_requested = True


class SessionRunHook:
    """Base of hooks, whose methods a monitored session calls:

    * `begin` once, before the graph is finalised: it may add operations;
    * `after_create_session` for each session, also after recovery from a failure;
    * `before_run` and `after_run` around each step;
    * `end` once, unless a step has failed.

    >>> class Report(tf.train.SessionRunHook):
    ...     def before_run(self, run_context):
    ...         return tf.train.SessionRunArgs(loss)
    ...     def after_run(self, run_context, run_values):
    ...         print("loss", run_values.results)
    >>> loss, train = tf.constant(0.5), tf.no_op()
    >>> with tf.train.MonitoredSession(hooks=[Report()]) as sess:
    ...     sess.run(train)
    loss 0.5
    """

    def begin(self) -> None:
        """The graph may still be changed."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """A session has been made and its variables have values; the graph is final.

        Args:
            coord: the Coordinator of the threads of the session.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """What to add to the step that comes, or None."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """The step has succeeded. ``run_values.results`` has what `before_run` asked for."""

    def end(self, session: Any) -> None:
        """All steps are done; ``session`` can run a last one."""


class HookGroup(SessionRunHook):
    """Hooks that take part in some steps and not in others."""

    def taking_part(self) -> Sequence[SessionRunHook]:
        """Those that take part in the step that comes."""
        raise NotImplementedError(f"{type(self).__name__} has no taking_part().")
