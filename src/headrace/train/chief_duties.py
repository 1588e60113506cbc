"""Sessions of workers any of which may have the chief's duties: whoever holds the lease."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace import logging
from headrace.errors import AbortedError, DeadlineExceededError
from headrace.ops.state import share
from headrace.structured_logs import tell
from headrace.train.checkpoint_state import get_checkpoint_state
from headrace.train.chief_candidate import ChiefCandidate, Lease
from headrace.train.declared_variables import DeclaredVariables, declared_in
from headrace.train.saving_hooks import CheckpointSaverHook
from headrace.train.scaffold import Scaffold
from headrace.train.session_layers import PREEMPTION_ERRORS
from headrace.train.session_manager import (
    FIRST_PAUSE,
    PATIENCE_WITH_OTHER_GRAPHS,
    Told,
    manager_of,
)
from headrace.train.session_run_hook import HookGroup, SessionRunHook

__all__ = ["ChiefDuties", "InheritedDuties", "LeasedSessionCreator"]

#: How long between two looks at variables that have no values; seconds.
_PAUSE = 1.0
#: How long a worker waits at its end to know whether it has the duties again; seconds.
_SETTLING = 5.0
#: How often a worker looks whether the chief was lost; seconds. It takes longer if nobody answers.
_LOOK = 2.0


class LeasedSessionCreator:
    """Makes sessions: restores what has no values if the worker holds the lease, else waits.

    The chief that the program names initialises what no checkpoint has, as without a lease; others
    only restore, so that a worker that does not see the chief's files begins nothing anew.

    Args:
        restored: ``restored()`` makes a session whose variables it restores or initialises.
        scaffold, checkpoint_dir, master, config: as for ``ChiefSessionCreator``.
        is_chief: whether the program names this worker as the chief.
        max_wait_secs: how long to wait for another one's values.

    Attributes:
        candidate: this worker, as it stands for the lease; None before the first session.
        has_restored: whether this worker gave the variables of the last session their values.
    """

    #: What tells the time.
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        restored: Callable[[], Any],
        scaffold: Scaffold,
        checkpoint_dir: str,
        master: str,
        config: Any,
        is_chief: bool,
        max_wait_secs: float,
    ) -> None:
        self._restored = restored
        self.scaffold = scaffold
        self.checkpoint_dir = checkpoint_dir
        self._master = master
        self._config = config
        self.is_chief = is_chief
        self._max_wait_secs = max_wait_secs
        self._is_first = True
        self.has_restored = False
        self.candidate: ChiefCandidate | None = None

    def create_session(self) -> Any:
        """A session whose variables have values.

        Raises:
            DeadlineExceededError: if they have none after ``max_wait_secs``.
            ValueError: if they have none, and the chief's graph has other variables.
        """
        if self.candidate is None:
            lease = Lease.of_default_graph()
            assert lease is not None, "made for a graph with variables on a task"
            self.candidate = ChiefCandidate(self._master, self._config, lease, self.is_chief)
        DeclaredVariables.of_default_graph()
        self.scaffold.finalize()
        self.has_restored = False
        if self.candidate.stand() and self.is_chief and self._is_first:
            # A new run of the program begins where its checkpoint ends, whatever servers hold.
            made = self._restore(self.candidate)
        else:
            made = None
        self._is_first = False
        return made if made is not None else self._wait(self.candidate)

    def close(self) -> None:
        """Stand for the lease no longer."""
        if self.candidate is not None:
            self.candidate.close()

    def _wait(self, candidate: ChiefCandidate) -> Any:
        """A session, once there are values: of another worker, or those that this one restores."""
        manager = manager_of(self.scaffold)
        began, told, pause = self.clock(), Told(self.clock), FIRST_PAUSE
        while True:
            waited = self.clock() - began
            session, message = manager.look(
                self._master, self._config, waited >= PATIENCE_WITH_OTHER_GRAPHS
            )
            if session is not None and not candidate.is_torn():
                told.over("The model is ready")
                return session
            if session is not None:
                session.close()
                message = "another worker restores it"
            if candidate.holds:
                made = self._restore(candidate)
                if made is not None:
                    return made
            if waited > self._max_wait_secs:
                raise DeadlineExceededError(
                    None,
                    None,
                    f"Session was not ready after waiting {self._max_wait_secs} secs. {message}",
                )
            told.waiting(f"model to be ready: {message}")
            candidate.wait(pause, until=not candidate.holds)
            pause = min(2 * pause, _PAUSE)

    def _restore(self, candidate: ChiefCandidate) -> Any:
        """A session that the lease's holder has restored; None if it is not for this worker."""
        if not self.is_chief:
            state = get_checkpoint_state(self.checkpoint_dir)
            if state is None or not state.model_checkpoint_path:
                candidate.pass_on()
                return None
        was_torn = candidate.is_torn()
        if not candidate.begin(restores=True):
            return None
        session = None
        if not (was_torn or self._is_first):
            session = manager_of(self.scaffold).restore_lost(
                self._master, self.scaffold.saver, self.checkpoint_dir, self._config
            )
        session = session or self._restored()
        if candidate.restored():
            self.has_restored = True
            return session
        session.close()
        return None


class ChiefDuties(HookGroup):
    """The hooks of a chief, which take part in the steps of the worker that holds the lease.

    A worker that gets the lease later than its session calls ``begin`` of its hooks then, so that
    those of workers that never do have no effects.

    Args:
        make_hooks: ``make_hooks()`` gives the hooks of a chief.
        creator: of the sessions; knows who holds the lease.
    """

    def __init__(
        self, make_hooks: Callable[[], list[SessionRunHook]], creator: LeasedSessionCreator
    ) -> None:
        self._make_hooks = make_hooks
        self._creator = creator
        self._hooks: list[SessionRunHook] = []
        self._has_begun = False
        self._is_on_duty = False
        self._was_on_duty = False
        self._session: Any = None
        self._coord: Any = None

    def begin(self) -> None:
        if self._creator.is_chief:
            self._begin()

    def _begin(self) -> None:
        self._has_begun = True
        with share.on_duty():
            self._hooks = self._make_hooks()
            for hook in self._hooks:
                hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._session, self._coord = session, coord
        self._is_on_duty = False
        self._keep_up()

    def taking_part(self) -> Sequence[SessionRunHook]:
        self._keep_up()
        return self._hooks if self._is_on_duty else ()

    def end(self, session: Any) -> None:
        candidate = self._creator.candidate
        if self._was_on_duty and not self._is_on_duty and candidate is not None:
            # If its connection broke a moment ago, nobody else may write the last checkpoint.
            candidate.settle(_SETTLING)
            self._keep_up()
        if self._is_on_duty:
            for hook in self._hooks:
                hook.end(session)

    def _keep_up(self) -> None:
        """Begin or end to be on duty."""
        candidate = self._creator.candidate
        holds = candidate is not None and candidate.holds
        if holds == self._is_on_duty:
            return
        if not holds:
            self._is_on_duty = False
            text = "Another worker may have the chief's duties now."
            tell(logging.get_logger(), "chief_lost", text)
            return
        assert candidate is not None
        try:
            if (self._creator.is_chief or self._is_same_model()) and self._may_begin(candidate):
                self._take_over()
                self._is_on_duty = self._was_on_duty = True
        except PREEMPTION_ERRORS:
            raise
        except Exception as error:
            if self._creator.is_chief:
                raise
            logging.error("This worker cannot take over the chief's duties: %s", error)
            candidate.close()

    def _may_begin(self, candidate: ChiefCandidate) -> bool:
        if candidate.begin(restores=False):
            return True
        if candidate.holds and candidate.is_torn():
            raise AbortedError(
                None,
                None,
                "The chief was lost while it restored variables: this worker restores them again.",
            )
        return False

    def _is_same_model(self) -> bool:
        """Whether this worker has the variables that the chief had; else it never stands again."""
        declared = declared_in(self._session.graph)
        if declared is None or declared.is_same(self._session):
            return True
        logging.warning(
            "This worker cannot take over the chief's duties: its graph has other variables than "
            "the chief's."
        )
        assert self._creator.candidate is not None
        self._creator.candidate.close()
        return False

    def _take_over(self) -> None:
        creator, graph = self._creator, self._session.graph
        with graph.as_default():
            if not self._has_begun:
                with _open(graph):
                    self._begin()
            if not creator.has_restored:
                _go_on(self._hooks, creator.scaffold, creator.checkpoint_dir)
            for hook in self._hooks:
                hook.after_create_session(self._session, self._coord)


class InheritedDuties(HookGroup):
    """The hooks of a chief in another worker, where each worker has all variables.

    They take part once the chief was lost, and this is the first worker that lives.

    Args:
        make_hooks: ``make_hooks()`` gives the hooks of a chief.
        own: this worker's share; knows who the chief is.
        scaffold, checkpoint_dir: as for ``ChiefSessionCreator``.
    """

    #: What tells the time.
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        make_hooks: Callable[[], list[SessionRunHook]],
        own: share.WorkerShare,
        scaffold: Scaffold,
        checkpoint_dir: str,
    ) -> None:
        self._make_hooks, self._own = make_hooks, own
        self._scaffold, self._checkpoint_dir = scaffold, checkpoint_dir
        self._hooks: list[SessionRunHook] = []
        self._session: Any = None
        self._coord: Any = None
        self._next_look = 0.0

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._session, self._coord = session, coord
        for hook in self._hooks:
            hook.after_create_session(session, coord)

    def taking_part(self) -> Sequence[SessionRunHook]:
        if not self._hooks and (began := self.clock()) >= self._next_look:
            self._own.find_chief()
            now = self.clock()
            self._next_look = now + max(_LOOK, 20 * (now - began))
            self._keep_up()
        return self._hooks

    def end(self, session: Any) -> None:
        self._keep_up()
        for hook in self._hooks:
            hook.end(session)

    def _keep_up(self) -> None:
        if self._hooks or not self._own.is_chief:
            return
        self._hooks = self._make_hooks()
        with self._session.graph.as_default():
            with _open(self._session.graph):
                for hook in self._hooks:
                    hook.begin()
            _go_on(self._hooks, self._scaffold, self._checkpoint_dir)
            for hook in self._hooks:
                hook.after_create_session(self._session, self._coord)


@contextlib.contextmanager
def _open(graph: Any) -> Iterator[None]:
    """Let hooks of a graph that is final begin."""
    graph._unsafe_unfinalize()
    try:
        yield
    finally:
        graph.finalize()


def _go_on(hooks: Sequence[SessionRunHook], scaffold: Scaffold, checkpoint_dir: str) -> None:
    """Have hooks go on with the files of the chief before."""
    tell(logging.get_logger(), "chief_taken", "This worker takes over the chief's duties.")
    state = get_checkpoint_state(checkpoint_dir)
    if state is not None and scaffold.saver is not None:
        # Old ones are removed as if one chief had written all of them.
        scaffold.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    for hook in hooks:
        if isinstance(hook, CheckpointSaverHook):
            hook.goes_on()
