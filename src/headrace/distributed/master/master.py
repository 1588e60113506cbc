"""The master of a server: the sessions of its clients, and what their steps need."""

from __future__ import annotations

import threading
from typing import Any

from headrace.distributed.links.peers import Peers
from headrace.distributed.master.access import AskDevices, ClusterAccess
from headrace.distributed.master.machine import Presence
from headrace.distributed.master.session import MasterSession
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps.steps import Steps
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.failures import to_error
from headrace.distributed.worker.worker import Worker
from headrace.errors import AbortedError, CancelledError
from headrace.executor.threads import step_threads


class Master(ClusterAccess):
    """Sessions of one server.

    Args:
        task: the own task; ``addresses``: of all tasks of the cluster.
        worker: the worker of the own task.
    """

    def __init__(
        self,
        task: str,
        incarnation: int,
        addresses: Addresses,
        worker: Worker,
        steps: Steps,
        peers: Peers,
        ask_devices: AskDevices,
    ) -> None:
        super().__init__(task, incarnation, addresses, worker, steps, peers, ask_devices)
        self._sessions: dict[int, MasterSession] = {}
        self._presence = Presence(peers.timing.orphan)
        self._lock = threading.Lock()

    def open_session(self, graph: Any, config: Any, client: str) -> MasterSession:
        """A new session for a client."""
        session = MasterSession(self, self.steps.number(), graph, config, client)
        with self._lock:
            self._sessions[session.number] = session
        return session

    def session(self, number: int) -> MasterSession:
        """The session of a number.

        Raises:
            AbortedError: if there is none: it was closed, or the server was started again.
        """
        found = self._sessions.get(number)
        if found is None:
            raise AbortedError(
                None,
                None,
                f"Session {number:016x} is not found at {self.task}: it was closed, or the server "
                "was started again. Make a new session.",
            )
        return found

    def open_sessions(self) -> list[MasterSession]:
        return self.sessions()

    def sessions(self) -> list[MasterSession]:
        """All open sessions."""
        with self._lock:
            return list(self._sessions.values())

    def close_session(self, session: MasterSession) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session.number, None)
        session.close()

    # -- events -----------------------------------------------------------------------------------

    def registered(self, link: Link, message: pb.Registered, buffers: list[Any]) -> None:
        """A task has taken its part of a plan, or not."""
        error = to_error(message.failure) if message.HasField("failure") else None
        self.registrations.registered(message.plan, link.peer.task, error)

    def peer_lost(self, peer: str, reason: str) -> None:
        """A link to a task, or to a client, is gone.

        A client gets no answer any more to the steps that it has asked for. It may come back, and
        finds its sessions.
        """
        self.registrations.peer_lost(peer, reason)
        for session in self.sessions():
            if session.client == peer:
                text = f"The connection to the client was lost: {reason}"
                self.steps.cancel_of(session, CancelledError(None, None, text))

    def tick(self, now: float) -> None:
        """Time has passed."""
        self._send_farewells(now)
        self.held_steps.tick(now)
        self.alone.tick(now)
        sessions = self.sessions()
        clients = {s.client for s in sessions if s.client}
        gone = self._presence.gone(clients, now, lambda c: self.peers.known(c) is not None)
        for session in sessions:
            if session.client in gone:
                step_threads.submit(self.close_session, session)

    def close(self) -> None:
        """End all sessions."""
        self._closed.set()
        for session in self.sessions():
            self.close_session(session)
