"""The master of a server: the sessions of its clients, and what their steps need."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from headrace.distributed.failures import to_error
from headrace.distributed.master.session import MasterSession, Registrations
from headrace.distributed.peers import Peers
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps import Steps
from headrace.distributed.transport.link import Link
from headrace.distributed.worker.worker import Worker
from headrace.errors import AbortedError
from headrace.placement.devices import DeviceAttributes

#: ``ask(task, address, timeout)``: incarnation and devices of a task, over the control plane.
AskDevices = Callable[[str, str, float], tuple[int, list[DeviceAttributes]]]


class Master:
    """Sessions of one server.

    Args:
        task: the own task; ``addresses``: of all tasks of the cluster.
        worker: the worker of the own task.
    """

    def __init__(
        self,
        task: str,
        incarnation: int,
        addresses: Mapping[str, str],
        worker: Worker,
        steps: Steps,
        peers: Peers,
        ask_devices: AskDevices,
    ) -> None:
        self.task = task
        self.incarnation = incarnation
        self.addresses = dict(addresses)
        self.worker = worker
        self.steps = steps
        self.peers = peers
        self.registrations = Registrations()
        self._ask_devices = ask_devices
        self._sessions: dict[int, MasterSession] = {}
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

    def sessions(self) -> list[MasterSession]:
        """All open sessions."""
        with self._lock:
            return list(self._sessions.values())

    def close_session(self, session: MasterSession) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session.number, None)
        session.close()

    def devices_of(self, task: str, timeout: float) -> tuple[int, list[DeviceAttributes]]:
        """Incarnation and devices of a task; waits for it.

        Raises:
            UnavailableError: if it does not answer within ``timeout`` seconds.
        """
        if task == self.task:
            return self.incarnation, self.worker.devices
        link = self.peers.link(task, self.addresses[task], timeout)
        incarnation, devices = self._ask_devices(task, self.addresses[task], timeout)
        if incarnation != link.peer.incarnation:
            link = self.peers.link(task, self.addresses[task], timeout)
        return link.peer.incarnation, devices

    # -- events -----------------------------------------------------------------------------------

    def registered(self, link: Link, message: pb.Registered, buffers: list[Any]) -> None:
        """A task has taken its part of a plan, or not."""
        error = to_error(message.failure) if message.HasField("failure") else None
        self.registrations.registered(message.plan, link.peer.task, error)

    def peer_lost(self, peer: str, reason: str) -> None:
        """A task, or a client, is gone."""
        self.registrations.peer_lost(peer, reason)
        for session in self.sessions():
            if session.client == peer:
                self.close_session(session)

    def close(self) -> None:
        """End all sessions."""
        for session in self.sessions():
            self.close_session(session)
