"""One task of a cluster: its worker, its master, and its links to the others.

What comes over links is told apart here and handed to whom it concerns. How links come about is the
server's business (``distributed.services.server``); tests connect tasks within one process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from headrace.distributed.collective.collectives import TaskCollectives
from headrace.distributed.links.liveness import Probe
from headrace.distributed.links.peers import Dial, Peers
from headrace.distributed.links.timing import DEFAULT_TIMING, Timing
from headrace.distributed.master.access import AskDevices
from headrace.distributed.master.clients import ClientFrames
from headrace.distributed.master.master import Master
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.services.moves import Moves
from headrace.distributed.steps.steps import Steps
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.distributed.transport.link import Link
from headrace.distributed.wire.messages import unpack
from headrace.distributed.worker.frames import WorkerFrames
from headrace.distributed.worker.worker import Worker
from headrace.executor.resources import ResourceStore
from headrace.placement.devices import DeviceAttributes
from headrace.structured_logs import tell

_log = logging.getLogger("headrace.distributed")


class CopyListener(Protocol):
    """Who hears of messages about copies, and of lost links."""

    def on_frame(self, link: Link, message: Any, buffers: list[Any]) -> None: ...

    def on_lost(self, link: Link) -> None: ...


class Task:
    """A member of a cluster.

    Args:
        me: its full name, incarnation and address.
        addresses: of all tasks.
        devices: what it can run on.
        dial: see `Peers`; ``ask_devices``: see `Master`.
        timing: how long to wait for others.
        probe: see `Peers`.
    """

    def __init__(
        self,
        me: PeerInfo,
        addresses: Addresses,
        devices: list[DeviceAttributes],
        dial: Dial,
        ask_devices: AskDevices,
        timing: Timing = DEFAULT_TIMING,
        probe: Probe | None = None,
    ) -> None:
        self.me = me
        #: What it does for copies; set by whoever has them.
        self.standbys: CopyListener | None = None
        self.store = ResourceStore()
        self.peers = Peers(self, dial, timing, probe=probe)
        self.peers.is_elsewhere = addresses.is_elsewhere
        self.worker = Worker(me.task, self.store, devices, self.peers)
        self.collectives = TaskCollectives(me, addresses, self.peers)
        self.worker.collectives = self.collectives
        self.steps = Steps(me.task, self.worker, self.peers)
        self.worker.bodies.steps = self.steps
        self.master = Master(
            me.task, me.incarnation, addresses, self.worker, self.steps, self.peers, ask_devices
        )
        self.moves = Moves(me.task, self.worker, self.master)
        self._frames = frames = WorkerFrames(self.worker)
        clients = ClientFrames(self.master)
        self._handlers: dict[type, Callable[[Link, Any, list[Any]], None]] = {
            pb.RunPart: frames.run_part,
            pb.Tensors: self._tensors,
            pb.CancelStep: frames.cancel_step,
            pb.RegisterPart: frames.register_part,
            pb.DropPlans: frames.drop_plans,
            pb.LinkLost: self.steps.link_lost,
            pb.PartDone: self.steps.part_done,
            pb.Registered: self.master.registered,
            pb.RunStep: clients.run_step,
            pb.Collective: self.collectives.on_message,
            **dict.fromkeys((pb.MoveTold, pb.MoveCopy, pb.MoveSaid), self.moves.on_frame),
            **dict.fromkeys((pb.HoldSteps, pb.StepsHeld), self.moves.on_hold),
            **dict.fromkeys((pb.Follow, pb.Copy, pb.CopyRole, pb.CopyKept), self._on_copy),
        }
        self.peers.start()

    def adopt(self, pipe: Pipe, peer: PeerInfo) -> None:
        """A peer has connected."""
        self.peers.adopt(pipe, peer)

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None:
        """A frame has arrived. Errors that leave this break the link: the peer makes no sense."""
        message = unpack(head)
        self._handlers[message.__class__](link, message, buffers)

    def _tensors(self, link: Link, message: pb.Tensors, buffers: list[Any]) -> None:
        self._frames.tensors(link, message, buffers)
        if message.done:
            self.steps.part_ran(link, message.step)

    def _on_copy(self, link: Link, message: Any, buffers: list[Any]) -> None:
        if self.standbys is not None:
            self.standbys.on_frame(link, message, buffers)

    def on_lost(self, link: Link, reason: str) -> None:
        """A link is gone."""
        peer = link.peer.task
        told = {"peer": peer, "reason": reason}
        text = "Task %s lost %s: %s"
        tell(_log, "peer_lost", text, *(self.me.task, peer, reason), task=self.me.task, fields=told)
        self.worker.peer_lost(peer, reason)
        self.steps.peer_lost(peer, reason)
        self.collectives.peer_lost(peer)
        self.moves.lost(link)
        if self.standbys is not None:
            self.standbys.on_lost(link)
        self.master.peer_lost(peer, reason)

    def on_tick(self, now: float) -> None:
        """Time has passed."""
        self.worker.tick(now)
        self.steps.tick(now)
        self.master.tick(now)
        self.moves.tick(now)
        self.collectives.on_tick(now)

    def close(self) -> None:
        """Give up all steps and links."""
        self.moves.close()
        self.master.close()
        self.steps.close()
        self.collectives.close()
        self.worker.close()
        self.peers.close()
        self.steps.abandon()
