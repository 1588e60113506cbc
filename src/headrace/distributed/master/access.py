"""What a master and its sessions use of their cluster."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable

from headrace.distributed.links.peers import RETRY_SECONDS, Peers, may_come
from headrace.distributed.master.alone import AloneSteps
from headrace.distributed.master.held_steps import HeldSteps, PlanHolder
from headrace.distributed.master.machine import Farewells
from headrace.distributed.master.next_trace import NextTrace
from headrace.distributed.master.registrations import Registrations
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps.steps import Steps
from headrace.distributed.steps.tally import StepTally
from headrace.distributed.transport.base import PipeBroken
from headrace.distributed.wire.messages import pack
from headrace.distributed.worker.worker import Worker
from headrace.errors import OpError
from headrace.placement.devices import DeviceAttributes
from headrace.step.moved import MovedVariables

#: ``ask(task, address, timeout)``: incarnation and devices of a task, over the control plane.
AskDevices = Callable[[str, str, float], tuple[int, list[DeviceAttributes]]]


class ClusterAccess:
    """The own task and the others, as a master reaches them.

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
        self.task = task
        self.incarnation = incarnation
        self.addresses = addresses
        #: Whether this task is to leave the cluster: its programs stop soon.
        self.is_leaving = False
        self.worker = worker
        self.steps = steps
        self.peers = peers
        #: Where variables are that were moved, as the record of the cluster says.
        self.moved = MovedVariables()
        self.registrations = Registrations()
        #: Of the steps of all sessions.
        self.tally = StepTally()
        self.next_trace = NextTrace()
        self.held_steps = HeldSteps(task, self.moved, self.open_sessions)
        self.alone = AloneSteps(task, addresses, peers)
        self._ask_devices = ask_devices
        self._closed = threading.Event()
        self._farewells = Farewells(peers.timing.orphan, 2 * peers.timing.silence)

    def open_sessions(self) -> Iterable[PlanHolder]:
        """All open sessions of the master."""
        return ()

    def devices_of(self, task: str, timeout: float) -> tuple[int, list[DeviceAttributes]]:
        """Incarnation and devices of a task; waits for it.

        Raises:
            UnavailableError: if it does not answer within ``timeout`` seconds.
        """
        if task == self.task:
            return self.incarnation, self.worker.devices
        address = self.addresses.of(task)
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, end - time.monotonic())
            link = self.peers.link(task, address, left)
            try:
                incarnation, devices = self._ask_devices(task, address, max(0.05, left))
            except OpError as error:
                if not may_come(error) or time.monotonic() >= end:
                    raise
                self._closed.wait(RETRY_SECONDS)  # the link may be that of a task that is gone
                continue
            if incarnation == link.peer.incarnation:
                return incarnation, devices
            self.peers.started_again(task, incarnation)

    def tell(self, task: str, incarnation: int, message: pb.DropPlans) -> None:
        """Let a start of a task forget plans, now or when it can be reached."""
        now = time.monotonic()
        self._farewells.add(task, incarnation, message, now)
        self._send_farewells(now)

    def _send_farewells(self, now: float) -> None:
        for link, message in self._farewells.due(now, self.peers.known):
            with contextlib.suppress(PipeBroken):
                link.send(pack(message), block=False)
