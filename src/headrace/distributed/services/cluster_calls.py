"""The control calls by which a cluster changes: somebody joins, or asks for another size."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from headrace.distributed.cluster.cluster_spec import SERVERS, ClusterSpec, split_address, task_name
from headrace.distributed.links.peers import RETRY_SECONDS
from headrace.distributed.membership.changes import admitted, indices, leaving, missing
from headrace.distributed.membership.messages import accepted_to_message, record_to_message
from headrace.distributed.membership.record import MOST_TASKS, ClusterRecord, changed
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.throttled import Throttled
from headrace.distributed.services.control import Control, Handler
from headrace.distributed.services.dialling import ask_endpoint, release
from headrace.distributed.services.members import Members
from headrace.distributed.services.serving import Serving
from headrace.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    UnimplementedError,
    suggest,
)
from headrace.graph.devices import DeviceSpec

__all__ = ["ClusterCalls", "ask_to_join", "host_towards"]

_complaints = Throttled(logging.getLogger("headrace.distributed"))
_LEAST_SECONDS = 0.05
#: A task that does not answer for so many seconds, to whoever could take its place, is dead.
_ALIVE_SECONDS = 2.0
#: Jobs that a task may join although the cluster was started without them.
_JOBS = ("chief", "evaluator", SERVERS, "worker")


class ClusterCalls:
    """Answers the calls at one task.

    Args:
        server: that of the task.
        wait_until_ready: waits until the server is complete.
    """

    def __init__(self, server: Serving, wait_until_ready: Callable[[], None]) -> None:
        self._server = server
        self._wait_until_ready = wait_until_ready

    def handlers(self) -> dict[str, Handler]:
        """The calls by name."""
        return {"Members": self._vote, "Join": self._join, "Resize": self._resize}

    @property
    def _members(self) -> Members:
        self._wait_until_ready()
        return self._server.members

    def _vote(self, request: pb.MembersRequest) -> pb.MembersResponse:
        """Take part in a vote, or tell what is known."""
        return self._members.answer(request)

    # -- joining ----------------------------------------------------------------------------------

    def _join(self, request: pb.JoinRequest) -> pb.JoinResponse:
        """Make a process a task of this cluster."""
        members, job = self._members, request.job
        self._check(request)
        addresses = members.addresses
        index = None if request.index < 0 else request.index
        # Who wants any index may have that of one that has joined and died.
        which = indices(job, members.record.tasks) if index is None else [index]
        asked = [task_name(job, i) for i in which]
        dead = self._dead({t: addresses[t] for t in asked if t in addresses})

        def admit(record: ClusterRecord) -> ClusterRecord:
            return admitted(record, job, index, request.address, addresses, dead)

        record = members.change(admit)
        task = next(t for t, a in record.tasks.items() if a == request.address)
        return pb.JoinResponse(
            task=task,
            chosen=accepted_to_message(members.chosen),
            cluster=self._server.first_cluster.as_cluster_def(),
        )

    def _check(self, request: pb.JoinRequest) -> None:
        if request.package_version != release():
            raise FailedPreconditionError(
                None,
                None,
                f"The cluster runs Headrace {release()}, and the process at {request.address} that "
                f"wants to join it {request.package_version or 'of an unknown release'}: "
                "operations may compute other results there. Use the same release everywhere.",
            )
        try:
            ClusterSpec({request.job: {max(request.index, 0): request.address}})
        except ValueError as error:
            raise InvalidArgumentError(None, None, str(error)) from None
        known = sorted({*self._server.cluster.jobs, *_JOBS})
        if request.job not in known:
            raise InvalidArgumentError(
                None,
                None,
                f"There is no job {request.job!r} to join: there are {', '.join(known)}."
                f"{suggest(request.job, known)}",
            )

    def _dead(self, tasks: Mapping[str, str]) -> set[str]:
        """Those of some tasks that do not answer."""

        controls = self._server.controls

        def answers(task: str, address: str) -> bool:
            try:
                return bool(ask_endpoint(controls, address, "", _ALIVE_SECONDS).task == task)
            except OpError:
                return False

        if not tasks:
            return set()
        with ThreadPoolExecutor(len(tasks)) as pool:
            found = pool.map(answers, tasks, tasks.values())
            return {task for task, alive in zip(tasks, found, strict=True) if not alive}

    def _served(self) -> set[str]:
        """The servers that are dead, and whose copies are served: those leave as others do."""
        cluster, copies = self._server.first_cluster, self._server.standbys
        if not cluster.replicas or copies is None:
            return set()
        addresses = self._members.addresses
        servers = {t: a for t, a in addresses.items() if indices(SERVERS, [t])}
        return {t for t in self._dead(servers) if copies.served_at(t, _ALIVE_SECONDS)}

    # -- another size -----------------------------------------------------------------------------

    def _resize(self, request: pb.ResizeRequest) -> pb.ResizeResponse:
        """Ask for another number of tasks."""
        members, wanted = self._members, dict(request.wanted)
        addresses = members.addresses
        for job, count in wanted.items():
            self._check_size(job, count)

        def resize(record: ClusterRecord) -> ClusterRecord:
            if all(record.wanted.get(job) == count for job, count in wanted.items()):
                return record
            is_sharing = record.is_sharing or SERVERS in wanted
            return changed(record, is_sharing, wanted=wanted)

        record = members.change(resize)
        too_many = leaving(record.wanted, addresses)
        # Those that are dead do not leave by themselves.
        dead = self._dead({t: addresses[t] for t in too_many}) - self._served()
        while dead & addresses.keys():
            record = members.remove(sorted(dead & addresses.keys()))
        return pb.ResizeResponse(
            record=record_to_message(record),
            leaving=[t for t in too_many if t not in dead],
            missing=missing(record.wanted, addresses),
        )

    def _check_size(self, job: str, count: int) -> None:
        joined = {str(DeviceSpec.from_string(t).job) for t in self._members.addresses}
        jobs = list(dict.fromkeys([*self._server.cluster.jobs, *sorted(joined)]))
        if job not in jobs:
            text = f"The cluster has no job {job!r}: it has {', '.join(jobs)}."
            raise InvalidArgumentError(None, None, text)
        if count < 1:
            raise InvalidArgumentError(
                None,
                None,
                f"A training needs at least one task of the job {job!r}, not {count}. "
                "`headrace shutdown` ends it.",
            )
        if count > MOST_TASKS:
            text = f"A job has {MOST_TASKS} tasks at most: {count} of {job!r} are not possible."
            raise InvalidArgumentError(None, None, text)
        first = self._server.first_cluster
        if job == SERVERS and first.replicas and count < first.num_tasks(SERVERS):
            raise UnimplementedError(
                None,
                None,
                f"The cluster was started with {first.num_tasks(SERVERS)} parameter servers, which "
                f"keep the copies of all (replicas=1): of those that have joined since then any "
                f"may leave, but {count} are less. Save a checkpoint, and restore it on a cluster "
                "with fewer.",
            )


def ask_to_join(
    control: Control,
    job: str,
    index: int | None,
    address: str,
    timeout: float,
    wait: Callable[[float], object],
) -> pb.JoinResponse:
    """Become a task of the cluster that a control plane belongs to; waits for it.

    Args:
        job, index: which task; None for any that is free.
        address: where this process listens.
        timeout: seconds; wait: waits for so many.

    Raises:
        UnavailableError: if nobody is there, or the tasks there do not agree in time.
        AlreadyExistsError: if it has such a task, which lives.
        FailedPreconditionError: if it is of another release.
        InvalidArgumentError: if it has no such job.
    """
    request = pb.JoinRequest(
        job=job,
        index=-1 if index is None else index,
        address=address,
        package_version=release(),
    )
    end = time.monotonic() + timeout
    while True:
        try:
            left = max(end - time.monotonic(), _LEAST_SECONDS)
            answer: pb.JoinResponse = control.call("Join", request, left)
            return answer
        except UnavailableError as error:
            if time.monotonic() + RETRY_SECONDS >= end:
                raise
            _complaints.warning((control.address,), "%s cannot join yet: %s", address, error)
        wait(RETRY_SECONDS)


def host_towards(address: str) -> str:
    """The address of this machine on the way to ``host:port``: where others may find it."""
    host, port = split_address(address)
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as found:
        found.connect(place)  # nothing is sent
        return str(found.getsockname()[0])
