"""A worker as a candidate for the chief's duties, which are a lease on a server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import logging
from headrace.errors import DeadlineExceededError, OpError
from headrace.graph.devices import DeviceSpec
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import ConfigProto, RunOptions
from headrace.ops.core.build import raw
from headrace.session.session import Session

__all__ = ["ChiefCandidate", "Lease"]

#: How long candidates wait for a chief that has never come; seconds.
PATIENCE_WITH_CHIEF = 4.0
#: Who cannot reach the lease tries again so often; seconds.
_AGAIN = 0.5
#: How long to try to say that a candidate leaves; a lost session says it as well. Milliseconds.
_LEAVING = RunOptions(timeout_in_ms=1000)


class Lease(NamedTuple):
    """Where the lease of a job is."""

    device: str
    container: str
    name: str

    @classmethod
    def of_default_graph(cls) -> Lease | None:
        """On the task of the first variable; None if no task is named for it.

        Several jobs may share servers: those that train the same variables have one lease.
        """
        graph = get_default_graph()
        variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if not variables:
            return None
        spec = DeviceSpec.from_string(min(variables, key=lambda v: str(v.op.name)).device or "")
        if spec.job is None:
            return None
        device = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()
        trained = sorted(
            f"{v.op.name} {v.shape}" for v in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        )
        digest = hashlib.sha256("\n".join(trained).encode()).hexdigest()[:16]
        return cls(device, graph._container, f"chief_lease/{digest}")


class ChiefCandidate:
    """Stands for the lease as long as it is open, in a session and with threads of its own.

    Args:
        master, config: as for ``tf.Session``.
        lease: what it stands for.
        is_chief: whether the program names this worker as the chief: others wait for it first.
        patience: how long they do; seconds.
    """

    def __init__(
        self,
        master: str,
        config: Any,
        lease: Lease,
        is_chief: bool,
        patience: float = PATIENCE_WITH_CHIEF,
    ) -> None:
        self._master = master
        self._is_chief = is_chief
        self._patience = RunOptions(timeout_in_ms=int(1000 * patience))
        self._config = ConfigProto()
        if config is not None:
            self._config.CopyFrom(config)
        self._config.operation_timeout_in_ms = 0  # requests wait as long as the worker lives
        self._graph = Graph()
        with self._graph.as_default(), self._graph.device(lease.device):
            handle = raw.ChiefLease(container=lease.container, shared_name=lease.name)
            self._requests: dict[tuple[str, int], Any] = {
                (name, value): raw.ChiefLeaseRequest(handle, value, request=name)
                for name, values in {
                    "BEGIN": (0, 1),
                    "CLAIM": (0,),
                    "HOLD": (0, 1),
                    "LEAVE": (0,),
                    "PASS_ON": (0,),
                    "RESTORED": (0,),
                    "STAND": (int(is_chief),),
                    "STANDS": (0,),
                    "TORN": (0,),
                }.items()
                for value in values
            }
        self._graph.finalize()
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._is_known = False
        self._follows = False
        self._has_held = False
        self._holds = False

    @property
    def holds(self) -> bool:
        """Whether this worker has the lease, as far as it knows."""
        return self._holds

    def stand(self) -> bool:
        """Begin to stand; whether the lease is held, once that is known."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="chief_lease", daemon=True)
            self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._is_known)
            return self._holds

    def wait(self, seconds: float, until: bool) -> bool:
        """Wait so long at most for the lease to be held or not, and return which."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._holds == until, seconds)
            return self._holds

    def settle(self, seconds: float) -> bool:
        """Whether the lease is held; waits so long at most for the server to be reached again."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._follows, seconds)
            return self._holds

    def begin(self, restores: bool) -> bool:
        """Begin the duties, with the variables as they are or restored; whether that is right."""
        return self._holds and bool(self._ask("BEGIN", int(restores)))

    def restored(self) -> bool:
        """The variables are restored; whether the lease was held all the time."""
        return bool(self._ask("RESTORED"))

    def pass_on(self) -> None:
        """Let another candidate try, as this one finds no checkpoint to begin with."""
        self._ask("PASS_ON")

    def is_torn(self) -> bool:
        """Whether variables are being restored, or were when a chief died."""
        return bool(self._ask("TORN"))

    def close(self) -> None:
        """Stand no longer."""
        with self._changed:
            self._is_over = True
            self._holds = False
            self._changed.notify_all()
        session = self._session
        if session is not None:
            try:
                session.run(self._requests["LEAVE", 0], options=_LEAVING)
            except (OpError, RuntimeError) as error:
                logging.debug("The lease could not be left: %s", error)
            session.close()
        if self._thread is not None:
            self._thread.join(_AGAIN)

    def _ask(self, name: str, value: int = 0) -> int:
        """What the lease answers; 0 if it cannot be reached now."""
        session = self._session
        if session is None:
            return 0
        try:
            return int(session.run(self._requests[name, value]))
        except (OpError, RuntimeError) as error:
            logging.debug("The lease did not answer %s: %s", name, error)
            return 0

    def _set(self, holds: bool, follows: bool) -> None:
        with self._changed:
            self._is_known = True
            self._follows = follows
            self._holds = holds and not self._is_over
            self._has_held |= holds
            self._changed.notify_all()

    def _serve(self) -> None:
        """Stand until the end; again after the session with the server was lost."""
        while not self._is_over:
            try:
                self._follow()
            except (OpError, RuntimeError) as error:
                logging.debug("Standing for the chief's duties ended: %s", error)
            self._set(False, follows=False)
            with self._changed:
                self._changed.wait_for(lambda: self._is_over, _AGAIN)

    def _follow(self) -> None:
        """Stand in a new session, and keep up with who holds the lease."""
        session = Session(self._master, graph=self._graph, config=self._config)
        self._session = session
        standing = threading.Thread(target=self._stand, args=(session,), daemon=True)
        standing.start()
        try:
            run: Callable[..., Any] = session.run
            holds = bool(run(self._requests["STANDS", 0]))
            if self._has_held and not holds:
                # The server was started again, and knows nothing of who held it before.
                run(self._requests["CLAIM", 0])
                holds = bool(run(self._requests["STANDS", 0]))
            while not self._is_over:
                self._set(holds, follows=True)
                try:
                    run(
                        self._requests["HOLD", int(not holds)],
                        options=None if holds else self._patience,
                    )
                    holds = not holds
                except DeadlineExceededError:
                    run(self._requests["CLAIM", 0])
        finally:
            self._session = None
            session.close()
            standing.join()

    def _stand(self, session: Session) -> None:
        try:
            session.run(self._requests["STAND", int(self._is_chief)])
        except (OpError, RuntimeError) as error:
            logging.debug("Standing for the chief's duties ended: %s", error)
        session.close()  # so that nothing waits that is of no use without it
