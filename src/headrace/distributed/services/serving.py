"""What the calls of a server may know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.control import Controls
from headrace.distributed.services.members import Members
from headrace.distributed.services.task import Task
from headrace.graph.proto import DeviceAttributes as DeviceMessage
from headrace.placement.devices import DeviceAttributes

Found = TypeVar("Found")


class Copies(Protocol):
    """What a server does for copies of variables."""

    @property
    def hosted(self) -> Sequence[Serving]:
        """The servers in this process for other ones' tasks."""

    def served_at(self, task: str, timeout: float) -> str:
        """The address where a task is served in the place of its own server; "" if nowhere."""

    @property
    def copy_stage(self) -> str:
        """How far the copy of the own task is; "" without one."""

    def view(self, request: pb.ViewRequest) -> pb.ViewResponse:
        """Answer a control call about copies."""


class Serving(Protocol):
    """A server that runs, as `tf.train.Server` is one.

    Attributes:
        task: the task that it serves; members: what it knows of its cluster.
        incarnation: which start of the task this is.
        began: when, by the monotonic clock.
    """

    task: Task
    members: Members
    incarnation: int
    began: float

    @property
    def standbys(self) -> Copies | None:
        """What it does for copies of variables; None while it starts."""

    @property
    def address(self) -> str:
        """``host:port``."""

    @property
    def metrics_address(self) -> str:
        """``host:port`` where Prometheus finds metrics; "" where there are none."""

    @property
    def cluster(self) -> ClusterSpec:
        """All tasks that it was started with."""

    @property
    def first_cluster(self) -> ClusterSpec:
        """The cluster as it was started."""

    def where_served(
        self, task: str, address: str, timeout: float, call: Callable[[str, float], Found]
    ) -> Found:
        """Call a task at its address or, where that is in vain, where its copy is served."""

    @property
    def controls(self) -> Controls:
        """How other tasks' control planes are called."""

    def session_config(self, config: Any) -> Any:
        """The ConfigProto of a session, with the defaults of the server."""

    def ask_to_stop(self) -> None:
        """Stop soon: once the call is answered."""


def device_message(device: DeviceAttributes) -> Any:
    """A device as a message."""
    return DeviceMessage(
        name=device.name,
        device_type=device.device_type,
        memory_limit=device.memory_limit_bytes,
        incarnation=device.incarnation,
    )


def device_of(message: Any) -> DeviceAttributes:
    """The device of another task that a message describes."""
    return DeviceAttributes(
        message.name, message.device_type, message.memory_limit, None, message.incarnation
    )
