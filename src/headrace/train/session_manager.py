"""Sessions made ready: restored from a checkpoint, initialised, or waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace import logging
from headrace.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
)
from headrace.graph import dtypes
from headrace.graph.graph import Graph, get_default_graph
from headrace.session.session import Session
from headrace.train.checkpoint_state import get_checkpoint_state
from headrace.train.declared_variables import declared_in
from headrace.train.restoring import restore_newest, tasks_without_values, tell_what_is_lost

__all__ = ["SessionManager"]

#: Servers may hold what an earlier chief has told, until that of this program begins; seconds.
PATIENCE_WITH_OTHER_GRAPHS = 10.0
#: Before a model is looked at for the second time: a server may just be restored. Then twice as
#: long each time.
FIRST_PAUSE = 0.1


class Told:
    """One line of the log for each thing that is waited for, and one when waiting is over."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._last: str | None = None

    def waiting(self, what: str) -> None:
        """Say what is waited for, unless that was said last."""
        if what != self._last:
            self._last = what
            logging.info("Waiting for %s", what)

    def over(self, what: str) -> None:
        """Say that it is there, if it had to be waited for."""
        if self._last is not None:
            logging.info("%s after %.0f s.", what, self._clock() - self._began)


class SessionManager:
    """Makes sessions whose variables have values.

    Args:
        local_init_op: run in each new session: initialises what no checkpoint holds.
        ready_op: a string vector of what has no value yet; the session is ready if it is empty.
        ready_for_local_init_op: the same, of what must have values before ``local_init_op``.
        graph: the graph; the default graph if not given.
        recovery_wait_secs: at most this long between two looks for a checkpoint or a ready model;
            the first pauses are of 1, 2, 4 ... seconds.
        local_init_run_options, local_init_feed_dict: of the step that runs ``local_init_op``.

    Raises:
        ValueError: if ``ready_for_local_init_op`` is given without ``local_init_op``.

    >>> v = tf.Variable(3)
    >>> manager = tf.train.SessionManager()
    >>> with manager.prepare_session("", init_op=tf.global_variables_initializer()) as sess:
    ...     int(sess.run(v))
    3
    """

    #: Waiting; tests replace it.
    sleep: Callable[[float], None] = staticmethod(time.sleep)
    #: What tells the time.
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op, "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: dict[Any, Any] | None = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """A session restored from the latest checkpoint, or initialised if there is none.

        Args:
            master: where to run, as for ``tf.Session``; config: a ConfigProto.
            init_op: initialises; ``init_feed_dict`` are its feeds.
            saver: restores from ``checkpoint_dir`` or ``checkpoint_filename_with_path``.
            wait_for_checkpoint: wait at most ``max_wait_secs`` for one in ``checkpoint_dir``.
            init_fn: ``init_fn(session)``, called after ``init_op``.

        Raises:
            RuntimeError: if there is nothing to initialise with, or the model is not ready then.
            ValueError: if both a directory and a file name are given.
        """
        session, is_loaded = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        init_name = getattr(init_op, "name", None)
        if not is_loaded:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        done, message = self._run_local_init_op(session)
        if not done:
            raise RuntimeError(
                "Init operations did not make model ready for local_init.  Init op: "
                f"{init_name}, init fn: {init_fn}, error: {message}"
            )
        ready, message = readiness(self._ready_op, session, "Model not ready")
        if not ready:
            raise RuntimeError(
                f"Init operations did not make model ready.  Init op: {init_name}, init fn: "
                f"{init_fn}, local_init_op: {self._local_init_op}, error: {message}"
            )
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """A session, and whether it has been restored from a checkpoint and is ready.

        Arguments are those of `prepare_session`.
        """
        session, is_loaded = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        done, message = self._run_local_init_op(session)
        if not is_loaded:
            return session, False
        source = checkpoint_dir or checkpoint_filename_with_path
        ready = done
        if done:
            ready, message = readiness(self._ready_op, session, "Model not ready")
        if not ready:
            what = "ready" if done else "ready for local init"
            logging.info("Restoring model from %s did not make model %s: %s", source, what, message)
            return session, False
        logging.info("Restored model from %s", source)
        return session, True

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float = float("inf")
    ) -> Session:
        """A session whose variables somebody else initialises; waits until they have values.

        Raises:
            DeadlineExceededError: if they have none after ``max_wait_secs``.
            ValueError: if they have none after a while, and the chief's graph has other variables.
        """
        began = self.clock()
        limit = self.clock() + (float("inf") if max_wait_secs is None else max_wait_secs)
        pauses = self._pauses()
        told = Told(self.clock)
        while True:
            session, message = self.look(
                master, config, self.clock() - began >= PATIENCE_WITH_OTHER_GRAPHS
            )
            if session is not None:
                told.over("The model is ready")
                return session
            pause = next(pauses)
            if self.clock() + pause > limit:
                raise DeadlineExceededError(
                    None,
                    None,
                    f"Session was not ready after waiting {max_wait_secs} secs. {message}",
                )
            told.waiting(f"model to be ready: {message}")
            self.sleep(pause)

    def restore_lost(
        self, master: str, saver: Any, checkpoint_dir: str, config: Any = None
    ) -> Session | None:
        """A session in which the tasks that have lost their variables have restored their own.

        The others keep what they have learned since the checkpoint.

        Returns:
            None if that cannot be done: all tasks have lost them, what is missing is on no named
            task, the saver does not restore task by task, or the model is not ready then.
        """
        state = get_checkpoint_state(checkpoint_dir)
        if saver is None or state is None or not state.model_checkpoint_path:
            return None
        session = Session(master, graph=self._graph, config=config)
        try:
            lost = tasks_without_values(session, self._ready_for_local_init_op)
            if lost and saver.restores_tasks(session, lost):
                path = restore_newest(lambda path: saver.restore_tasks(session, path, lost), state)
                done, _ = self._run_local_init_op(session)
                if done and readiness(self._ready_op, session, "Model not ready")[0]:
                    tell_what_is_lost(session, lost, path)
                    return session
        except BaseException:
            session.close()
            raise
        session.close()
        return None

    def look(
        self, master: str, config: Any = None, compares: bool = False
    ) -> tuple[Session | None, str | None]:
        """A session if all variables have values now, else None and what is missing.

        Args:
            compares: whether to compare with what the chief has, if values are missing.

        Raises:
            ValueError: if values are missing that the chief does not give.
        """
        session = Session(master, graph=self._graph, config=config)
        ready, message = self._run_local_init_op(session)
        if ready:
            ready, message = readiness(self._ready_op, session, "Model not ready")
        if ready:
            return session, None
        declared = declared_in(self._graph)
        if declared is not None and compares:
            declared.check_waiting(session)
        session.close()
        return None, message

    def _pauses(self) -> Iterator[float]:
        """Seconds until each next look: what is waited for is mostly there soon."""
        pause = FIRST_PAUSE
        while True:
            yield min(pause, self._recovery_wait_secs)
            pause *= 2

    def _restored(
        self,
        master: str,
        saver: Any,
        directory: str | None,
        path: str | None,
        wait: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, bool]:
        """A new session, and whether a checkpoint was there to restore it from."""
        if directory and path:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        session = Session(master, graph=self._graph, config=config)
        if not saver or not (directory or path):
            return session, False
        if path:
            saver.restore(session, path)
            return session, True
        waited = 0.0
        pauses = self._pauses()
        told = Told(self.clock)
        state = get_checkpoint_state(directory)
        while not state or not state.model_checkpoint_path:
            if not wait or waited >= max_wait_secs:
                return session, False
            told.waiting(f"checkpoint to be available in {directory}.")
            pause = next(pauses)
            self.sleep(pause)
            waited += pause
            state = get_checkpoint_state(directory)
        told.over("A checkpoint is available")
        restored = restore_newest(lambda path: saver.restore(session, path), state)
        paths = list(state.all_model_checkpoint_paths)
        if restored in paths:
            del paths[paths.index(restored) + 1 :]
        saver.recover_last_checkpoints(paths)
        return session, True

    def _run_local_init_op(self, session: Any) -> tuple[bool, str | None]:
        """Whether it has run or there is none, else what it waits for."""
        if self._local_init_op is None:
            return True, None
        op = self._ready_for_local_init_op
        ready, message = readiness(op, session, "Model not ready for local init")
        if ready:
            logging.info("Running local_init_op.")
            session.run(
                self._local_init_op,
                feed_dict=self._local_init_feed_dict,
                options=self._local_init_run_options,
            )
            logging.info("Done running local_init_op.")
        return ready, message


def manager_of(scaffold: Any) -> SessionManager:
    """A manager of sessions of the default graph, with the operations of a finalised scaffold."""
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
    )


def readiness(op: Any, session: Any, what: str) -> tuple[bool, str | None]:
    """Whether nothing is missing according to ``op`` (None: nothing ever is), else what."""
    if op is None:
        return True, None
    try:
        missing = session.run(op)
    except FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            logging.warning("%s: error [%s]", what, error)
            raise
        return False, str(error)
    # Operations give None; ready ops of early programs gave integers.
    if missing is None or missing.dtype == dtypes.int32.np_dtype or missing.size == 0:
        return True, None
    names = ", ".join(name.decode() for name in missing.reshape(-1))
    return False, f"Variables not initialized: {names}"
