"""Monitored sessions: training and evaluation loops with hooks and recovery."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import OutOfRangeError
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state import replica_scope, share
from headrace.session.session import Session
from headrace.train.basic_session_run_hooks import StepCounterHook
from headrace.train.chief_candidate import Lease
from headrace.train.chief_duties import ChiefDuties, InheritedDuties, LeasedSessionCreator
from headrace.train.coordinator import Coordinator
from headrace.train.declared_variables import DeclaredVariables
from headrace.train.queue_runner import start_queue_runners
from headrace.train.saving_hooks import CheckpointSaverHook, SummarySaverHook
from headrace.train.scaffold import Scaffold
from headrace.train.session_layers import (
    CoordinatedSession,
    HookedSession,
    RecoverableSession,
    StepFunctionContext,
)
from headrace.train.session_manager import SessionManager, manager_of
from headrace.train.session_run_hook import SessionRunHook

__all__ = [
    "ChiefSessionCreator",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "Scaffold",
    "SessionCreator",
    "SingularMonitoredSession",
    "WorkerSessionCreator",
]

#: Marks arguments whose default depends on others.
USE_DEFAULT = object()
#: Hooks that write what one worker writes for all.
_WRITE = (CheckpointSaverHook, SummarySaverHook)


class SessionCreator:
    """Makes the sessions of a monitored session.

    >>> class Plain(tf.train.SessionCreator):
    ...     def create_session(self):
    ...         return tf.Session()
    >>> with tf.train.MonitoredSession(session_creator=Plain()) as sess:
    ...     int(sess.run(tf.constant(3)))
    3
    """

    def create_session(self) -> Any:
        """A session that is ready to use."""
        raise NotImplementedError(f"{type(self).__name__} has no create_session().")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that it restores or initialises itself.

    Args:
        scaffold: initialisers and saver; a `Scaffold()` if not given.
        master: where to run; config: a ConfigProto.
        checkpoint_dir, checkpoint_filename_with_path: where to restore from.

    >>> v = tf.Variable(3)
    >>> creator = tf.train.ChiefSessionCreator(config=tf.ConfigProto(log_device_placement=False))
    >>> with tf.train.MonitoredSession(creator) as sess:  # initialised, as nothing was saved
    ...     int(sess.run(v))
    3
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._has_made = False
        self._master = master
        self._config = config

    def create_session(self) -> Session:
        declared = DeclaredVariables.of_default_graph() if self._master else None
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = manager_of(self._scaffold)
        if self._has_made and self._master:
            # A session before this one was lost; its variables may be there all the same.
            kept, _ = self._session_manager.look(self._master, self._config)
            if kept is not None:
                return kept
        session = self._session_manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )
        if declared is not None:
            declared.tell(session)
        self._has_made = True
        return session


class WorkerSessionCreator(SessionCreator):
    """Makes sessions whose variables the chief initialises; waits for that.

    Args:
        scaffold, master, config: as for ChiefSessionCreator.
        max_wait_secs: how long to wait.

    >>> v = tf.Variable(3)
    >>> server = tf.train.Server.create_local_server()
    >>> chief = tf.train.ChiefSessionCreator(master=server.target).create_session()
    >>> worker = tf.train.WorkerSessionCreator(master=server.target)
    >>> with tf.train.MonitoredSession(worker) as sess:  # waits for the chief's variables
    ...     int(sess.run(v))
    3
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Session:
        if self._master:
            DeclaredVariables.of_default_graph()
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = manager_of(self._scaffold)
        return self._session_manager.wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


def _joins_workers(hook: Any) -> bool:
    """Whether workers wait for each other in a hook: first when they begin, last when they end."""
    return getattr(hook, "joins_workers", False)


class _CoordinatedCreator(SessionCreator):
    """Makes sessions with queue runners started and hooks told.

    Attributes:
        tf_sess: the plain session of the last one; coord: its coordinator.
    """

    def __init__(
        self, creator: Any, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float
    ) -> None:
        self._creator = creator
        self._hooks = hooks
        self._grace = stop_grace_period_secs
        self.tf_sess: Any = None
        self.coord: Coordinator | None = None

    def create_session(self) -> CoordinatedSession:
        self.tf_sess = self._creator.create_session()
        # The end of the input reaches the caller, who takes it for the end of the loop.
        self.coord = Coordinator(clean_stop_exception_types=())
        try:
            if get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS):
                start_queue_runners(sess=self.tf_sess, coord=self.coord)
            # Before the first checkpoint is written, workers have what they begin with.
            for hook in sorted(self._hooks, key=_joins_workers, reverse=True):
                hook.after_create_session(self.tf_sess, self.coord)
        except BaseException:
            # Nobody else knows it: what it has in a cluster, and its threads, would stay.
            self.coord.request_stop()
            self.tf_sess.close()
            raise
        hooked = HookedSession(self.tf_sess, self._hooks)
        return CoordinatedSession(hooked, self.coord, self._grace)

    def close(self) -> None:
        """No more sessions are wanted."""
        if isinstance(self._creator, LeasedSessionCreator):
            self._creator.close()


class _MonitoredSession:
    """What both kinds of monitored session do."""

    StepContext = StepFunctionContext

    def __init__(
        self,
        session_creator: Any,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or ())
        if not share.writes():
            self._hooks = [h for h in self._hooks if not isinstance(h, _WRITE)]
        for hook in self._hooks:
            hook.begin()
        self._creator = _CoordinatedCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        try:
            self._sess: Any = (
                RecoverableSession(self._creator)
                if should_recover
                else self._creator.create_session()
            )
        except BaseException:
            self._creator.close()
            raise

    @property
    def graph(self) -> Any:
        """The graph of the session; None when it is closed."""
        return None if self._tf_sess() is None else self._tf_sess().graph

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Run a step, as ``tf.Session.run``, with hooks around it."""
        return self._sess.run(
            fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata
        )

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call ``step_fn(step_context)``, which may run several steps.

        ``step_context.session`` is the plain session, ``step_context.run_with_hooks`` runs a step
        with hooks, ``step_context.request_stop()`` ends the loop.

        Raises:
            StopIteration: if the function asks for it (``with`` the session, that ends its block).
            ValueError: if it takes other arguments.
        """
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and "
                "`step_context` arguments if it's an instance method. "
                f"Got {names} instead."
            )
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def should_stop(self) -> bool:
        """Whether the loop should end: a hook or thread has asked for it, or it is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Call ``end`` of the hooks, stop all threads and close the session."""
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is not None and issubclass(kind, (OutOfRangeError, StopIteration)):
            # The end of the input ends the loop.
            kind = None
        self._close(kind)
        return kind is None

    def _close(self, failure: Any = None) -> None:
        try:
            if failure is None:
                for hook in sorted(self._hooks, key=_joins_workers):
                    hook.end(self._creator.tf_sess)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._creator.close()
                self._sess = None
                self._creator.tf_sess = None
                self._creator.coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        return self._creator.tf_sess is None

    def _tf_sess(self) -> Any:
        return self._creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session with hooks, that starts queue runners and survives the loss of tasks.

    Making it calls ``begin`` of the hooks, finalises the graph, makes and prepares the session and
    starts the queue runners. When a step raises AbortedError or UnavailableError, a new session is
    made in the same way (restored from the latest checkpoint) and the step is run again.

    At the end of its ``with`` block hooks, threads and session are closed. OutOfRangeError and
    StopIteration end the block without an error: the input is at its end.

    Args:
        session_creator: makes sessions; a `ChiefSessionCreator()` if not given.
        hooks: SessionRunHooks.
        stop_grace_period_secs: how long threads have to stop.

    >>> import headrace as tf
    >>> step = tf.train.get_or_create_global_step()
    >>> train_op = step.assign_add(1)
    >>> with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=3)]) as sess:
    ...     while not sess.should_stop():
    ...         value = sess.run(train_op)
    >>> int(value)
    3
    """

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A monitored session without recovery; `raw_session` gives the plain one.

    Args:
        hooks, stop_grace_period_secs: as for MonitoredSession.
        scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: as for
            ChiefSessionCreator.

    >>> step = tf.train.get_or_create_global_step()
    >>> train, hooks = step.assign_add(1), [tf.train.StopAtStepHook(last_step=2)]
    >>> with tf.train.SingularMonitoredSession(hooks=hooks) as sess:
    ...     while not sess.should_stop():
    ...         value = sess.run(train)
    ...     int(value), type(sess.raw_session()).__name__
    (2, 'Session')
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold=scaffold,
            master=master,
            config=config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The plain session."""
        return self._tf_sess()


def _has_own_variables() -> bool:
    """Whether each worker has all variables: those of a strategy that mirrors them on workers."""
    place = replica_scope.current()
    if place is None:
        return False
    extended = place.strategy.extended
    return bool(extended.experimental_between_graph and extended.experimental_should_init)


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
    asynchronous_checkpoints: bool = False,
    incremental_tables: bool = False,
    consistent_checkpoints: bool = False,
) -> MonitoredSession:
    """A MonitoredSession with the usual hooks: checkpoints, summaries and steps per second.

    Args:
        master: where to run; config: a ConfigProto.
        is_chief: whether this task initialises, restores and saves; others wait for it. Of tasks
            of a cluster that have a ``checkpoint_dir`` another one takes these duties over, when
            the chief has ended or was lost.
        checkpoint_dir: where to restore from and to save to; without it nothing is saved.
        scaffold: initialisers and saver.
        hooks: of every task; ``chief_only_hooks``: of the chief.
        save_checkpoint_secs, save_checkpoint_steps: how often; by default every 600 seconds.
        save_summaries_steps, save_summaries_secs: how often; by default every 100 steps.
        log_step_count_steps: how often to log the speed; None for never.
        max_wait_secs: how long others wait for the chief.
        summary_dir: where summaries go; ``checkpoint_dir`` if not given.
        asynchronous_checkpoints: write checkpoints while the training goes on: ``asynchronous`` of
            `CheckpointSaverHook`. Ours.
        consistent_checkpoints: checkpoints have all of each step of any worker, or nothing:
            ``consistent`` of `CheckpointSaverHook`. Ours.
        incremental_tables: of tables of embeddings, checkpoints have only rows that have changed
            since the one before: see `Saver`. For a saver that is made here. Ours.

    Raises:
        ValueError: if both seconds and steps are given.
    """
    master, is_chief, first, has_servers = _of_script(master, is_chief)
    steps, secs = _either(save_summaries_steps, save_summaries_secs, (100, None))
    saves, save_secs = _either(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    scaffold = scaffold or Scaffold()
    scaffold.incremental_tables = scaffold.incremental_tables or incremental_tables
    common = list(hooks or ())
    how = (asynchronous_checkpoints, consistent_checkpoints)
    chief = ChiefSessionCreator(
        scaffold=scaffold, checkpoint_dir=checkpoint_dir, master=master, config=config
    )

    def hooks_of_chief() -> list[SessionRunHook]:
        found = list(chief_only_hooks or ())
        where = summary_dir or checkpoint_dir
        if where and log_step_count_steps and log_step_count_steps > 0:
            found.append(StepCounterHook(output_dir=where, every_n_steps=log_step_count_steps))
        if where and ((steps and steps > 0) or (secs and secs > 0)):
            found.append(
                SummarySaverHook(
                    scaffold=scaffold, save_steps=steps, save_secs=secs, output_dir=where
                )
            )
        found += _saving(checkpoint_dir, saves, save_secs, scaffold, how)
        return found

    if _has_own_variables() or not has_servers:
        more = hooks_of_chief() if is_chief else _heir(hooks_of_chief, scaffold, checkpoint_dir)
        return MonitoredSession(chief, [*first, *more, *common], stop_grace_period_secs)
    if master and checkpoint_dir and Lease.of_default_graph() is not None:
        creator = LeasedSessionCreator(
            chief.create_session, scaffold, checkpoint_dir, master, config, is_chief, max_wait_secs
        )
        duties = ChiefDuties(hooks_of_chief, creator)
        return MonitoredSession(creator, [*first, duties, *common], stop_grace_period_secs)
    if is_chief:
        return MonitoredSession(chief, [*first, *hooks_of_chief(), *common], stop_grace_period_secs)
    worker = WorkerSessionCreator(
        scaffold=scaffold, master=master, config=config, max_wait_secs=max_wait_secs
    )
    return MonitoredSession(worker, [*first, *common], stop_grace_period_secs)


def _of_script(master: str, is_chief: bool) -> tuple[str, bool, list[SessionRunHook], bool]:
    """Where to run, whether as the chief, with which hooks first, whether variables are shared.

    That is for a worker of a plain script to say, if the program does not.
    """
    own = None if master else share.of(get_default_graph())
    if own is None:
        return master, is_chief, [], True
    return own.managed_target, own.is_chief, own.hooks(), own.has_servers


def _heir(
    make_hooks: Callable[[], list[SessionRunHook]], scaffold: Scaffold, directory: str | None
) -> list[SessionRunHook]:
    """The hooks of a worker that is not the chief, but may be the first of a script that lives."""
    own = share.of(get_default_graph())
    if own is None or directory is None:
        return []
    return [InheritedDuties(make_hooks, own, scaffold, directory)]


def _saving(
    directory: str | None, steps: Any, secs: Any, scaffold: Scaffold, how: tuple[bool, bool]
) -> list[SessionRunHook]:
    """The hook that saves checkpoints, if there is to be one."""
    if not directory or not ((secs and secs > 0) or (steps and steps > 0)):
        return []
    return [CheckpointSaverHook(directory, secs, steps, None, "model.ckpt", scaffold, None, *how)]


def _either(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """(steps, seconds), of which one may be left to its default."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    return (
        None if steps is USE_DEFAULT else steps,
        None if secs is USE_DEFAULT else secs,
    )
