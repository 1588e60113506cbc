"""Sessions on a cluster, from a process that may or may not be one of its tasks."""

from __future__ import annotations

import atexit
import itertools
import logging
import math
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.links.liveness import answers
from headrace.distributed.links.peers import CLIENT, NOTICE_SECONDS, RETRY_SECONDS, Peers
from headrace.distributed.master.plans import ClusterPlan
from headrace.distributed.master.session import MasterSession
from headrace.distributed.master.traces import run_traced
from headrace.distributed.protocol import control_pb2 as cpb
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.control import Controls
from headrace.distributed.services.dialling import ask_endpoint, dial
from headrace.distributed.services.server import local_server, was_stopped
from headrace.distributed.services.serving import device_of
from headrace.distributed.services.task import Task
from headrace.distributed.transport.base import PeerInfo, Pipe, PipeBroken
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.failures import to_error, to_failure, unavailable
from headrace.distributed.wire.messages import pack, unpack
from headrace.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    UnavailableError,
    UnimplementedError,
)
from headrace.executor.errands import Limit
from headrace.graph.graph_def import graph_to_graph_def
from headrace.graph.proto import ConfigProto, GraphDef, RunMetadata, RunOptions
from headrace.settings import flags
from headrace.step.request import DistantPlan, PlanRequest

_log = logging.getLogger("headrace.distributed")

#: Nodes of a graph travel in messages of about so many bytes.
_PIECE_BYTES = 64 << 20
#: A control call that only asks takes at most so many seconds.
_CALL_SECONDS = 30.0
#: The master is told for so many seconds that a session is closed; so many when the program ends.
_CLOSE_SECONDS, _LAST_SECONDS = 5.0, 1.0
#: A control call gets at least so many seconds.
_LEAST_SECONDS = 0.05


def open_engine(target: str, graph: Any, config: Any) -> Any:
    """The engine of a session on ``grpc://host:port``; nothing is asked of the network yet."""
    address = _address(target)
    server = local_server(address)
    if server is not None:
        return OwnMasterEngine(server.task, graph, server.session_config(config))
    return OtherMasterEngine(address, graph, config)


def reset(target: str, containers: list[str] | None, config: Any) -> None:
    """Clear containers of the tasks behind a target. See `Session.reset`."""
    filters = list(config.device_filters) if config is not None else []
    request = cpb.ResetRequest(containers=containers or [], device_filters=filters)
    controls = Controls(Security.from_environment())
    try:
        controls.at(_address(target)).call("Reset", request, _CALL_SECONDS)
    finally:
        controls.close()


def _address(target: str) -> str:
    address = target.partition("://")[2].rstrip("/")
    try:
        split_address(address)
    except ValueError:
        raise ValueError(
            f"Session target {target!r} is not of the form grpc://host:port."
        ) from None
    return address


class _ClusterEngine:
    """What both kinds of engine share."""

    #: The master answers so much later at most, and names the tasks that it has waited for.
    grace = 0.3

    def leave(self) -> None:
        """The master gives the step up by its own clock."""

    def partial_run(self, request: PlanRequest) -> Any:
        raise UnimplementedError(
            None,
            None,
            "partial_run is for sessions of one process; on a cluster run the parts as steps.",
        )


class OwnMasterEngine(_ClusterEngine):
    """A session whose master is a task of this process: values go by reference.

    Args:
        config: a ConfigProto with the defaults of the task's server merged in.
    """

    def __init__(self, task: Task, graph: Any, config: Any) -> None:
        self.graph = graph
        self._master = task.master
        self._session: MasterSession = self._master.open_session(graph, config, "")

    def plan(self, request: PlanRequest) -> Any:
        made = self._named(self._session.plan, request)
        return _OwnMasterPlan(self, made)

    def run_with_options(
        self, plan: Any, feeds: Any, options: Any, run_metadata: Any, limit: Limit | None
    ) -> Any:
        return self._named(run_traced, plan.plan, feeds, options, run_metadata, limit)

    @property
    def tasks(self) -> list[str]:
        """All tasks of the cluster, whether they answer or not, and the session may use them."""
        return list(self._master.addresses)

    @property
    def moved(self) -> Mapping[str, str]:
        """Where variables are that are not where their devices say, see `MovedVariables.tasks`."""
        return self._master.moved.tasks

    @property
    def is_leaving(self) -> bool:
        """Whether this process is to leave the cluster: its training loop stops."""
        return self._master.is_leaving

    def waits_for(self) -> str:
        """See `SessionEngine`."""
        return str(self._master.peers.waits_for())

    def list_devices(self) -> list[Any]:
        """The devices of all tasks that answer."""
        return self._session.list_devices()

    def close(self) -> None:
        """End the session; shared variables stay on the servers."""
        self._master.close_session(self._session)

    def _named(self, call: Callable[..., Any], *args: Any) -> Any:
        """Call, and let errors that came from other tasks name this graph's operations."""
        try:
            return call(*args)
        except OpError as error:
            raise named(error, self.graph) from error.__cause__


class _OwnMasterPlan(DistantPlan):
    """A plan of a session whose master is in this process."""

    def __init__(self, engine: OwnMasterEngine, plan: ClusterPlan) -> None:
        self.engine = engine
        self.plan = plan

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        try:
            return self.plan.run(feeds)
        except OpError as error:
            raise named(error, self.engine.graph) from error.__cause__

    def describe(self) -> str:
        return self.plan.describe()


def named(error: OpError, graph: Any) -> OpError:
    """The same error with the operation of ``graph`` that it names."""
    if error.op is None or getattr(error.op, "graph", None) is graph:
        return error
    return to_error(to_failure(error, getattr(error, "task", "")), graph)


class OtherMasterEngine(_ClusterEngine):
    """A session whose master is the server of another process."""

    #: Its answer comes over the network, and from a machine that may be busy.
    grace = 1.0

    def __init__(self, address: str, graph: Any, config: Any) -> None:
        self.address = address
        self.graph = graph
        self.config = ConfigProto() if config is None else config
        self._security = Security.from_environment()
        self._security.check_address(split_address(address)[0])
        self._controls = Controls(self._security)
        self._me = PeerInfo(f"{CLIENT}{uuid.uuid4()}", secrets.randbits(63) | 1)
        self._peers: Peers | None = None
        self._task = ""
        self._session = 0
        #: Which start of the master has the session.
        self._incarnation = 0
        self._version = 0
        self._mutations = graph._mutations
        self._requests = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._lock = threading.RLock()
        _open_engines.add(self)

    # -- the session ------------------------------------------------------------------------------

    def _open(self, timeout: float | None = None) -> int:
        """The session at the master, made on first use; waits for the master."""
        limit = self._limit(timeout)
        with self._lock:
            if not self._session:
                self._task = self._find_master(limit)
                if self._peers is None:
                    self._peers = Peers(self, self._dial, probe=self._probe)
                    self._peers.start()
                link = self._peers.link(self._task, self.address, limit)
                self._incarnation = link.peer.incarnation
                request = cpb.CreateSessionRequest(config=self.config, client=self._me.task)
                self._session = self._call("CreateSession", request).session
            return self._session

    def _limit(self, timeout: float | None) -> float:
        """How many seconds to wait for a task."""
        if timeout is not None:
            return timeout
        limit = self.config.operation_timeout_in_ms
        return limit / 1e3 if limit > 0 else flags.connect_timeout

    def _find_master(self, limit: float) -> str:
        began = time.monotonic()
        noticed = -math.inf
        while True:
            try:
                patience = min(max(limit, _LEAST_SECONDS), _CALL_SECONDS)
                return str(ask_endpoint(self._controls, self.address, "", patience).task)
            except (UnavailableError, DeadlineExceededError) as error:
                if was_stopped(self.address):
                    raise FailedPreconditionError(
                        None,
                        None,
                        f"The server of this process at {self.address} was stopped, by SIGTERM, "
                        "`stop()` or `headrace shutdown`, and no other one is there. Where a task "
                        "only serves, let its program end after `join()`.",
                    ) from None
                now = time.monotonic()
                if now - began > limit:
                    reason = f"no answer for {now - began:.0f} s ({error.message})"
                    raise unavailable(f"at {self.address}", None, reason) from None
                if now - noticed > NOTICE_SECONDS:
                    noticed = now
                    _log.warning("Waiting for the server at %s: %s", self.address, error.message)
                threading.Event().wait(min(RETRY_SECONDS, limit / 5))

    def _dial(
        self, address: str, task: str, timeout: float, *, fallback: bool = True
    ) -> tuple[Pipe, PeerInfo]:
        return dial(
            self._controls, address, task, self._me, self._security, timeout, fallback=fallback
        )

    def _probe(self, task: str, timeout: float) -> bool:
        return answers(self.address, self._security, timeout)

    def _call(self, name: str, request: Any, timeout: float = _CALL_SECONDS) -> Any:
        return self._controls.at(self.address).call(name, request, timeout)

    def _link(self) -> Link:
        """The link to the master; made again where it was lost, for the session outlives it.

        Raises:
            UnavailableError: if the master cannot be reached.
            AbortedError: if it was started again, or the session is closed.
        """
        peers = self._peers
        if peers is None or not self._session:
            raise AbortedError(None, None, "The session is closed.")
        link = peers.known(self._task)
        if link is None:
            link = peers.link(self._task, self.address, peers.timing.reconnect)
        if link.peer.incarnation != self._incarnation:
            raise AbortedError(
                None,
                None,
                f"{self._task} at {self.address} was started again, and has lost the session. "
                "Make a new session.",
            )
        return link

    def waits_for(self) -> str:
        """See `SessionEngine`; which tasks the master waits for, it says itself."""
        return "" if self._peers is None else str(self._peers.waits_for())

    # -- plans ------------------------------------------------------------------------------------

    def plan(self, request: PlanRequest) -> Any:
        """The plan for one kind of step, made by the master."""
        try:
            with self._lock:
                session = self._open(request.timeout)
                self._extend()
            message = cpb.MakePlanRequest(
                session=session,
                fetches=[t.name for t in request.fetches],
                feeds=[t.name for t in request.feeds],
                targets=[o.name for o in request.targets],
                timeout=request.timeout or 0.0,
                last=request.last,
            )
            # The master waits for its tasks, one after the other at worst, and names them.
            answer = self._call(
                "MakePlan", message, 3 * self._limit(request.timeout) + _CALL_SECONDS
            )
        except OpError as error:
            raise named(error, self.graph) from None
        return _OtherMasterPlan(self, answer.plan, answer.description)

    def _extend(self) -> None:
        """Send the master what the graph has grown by."""
        graph = self.graph
        if graph._mutations != self._mutations:
            self._mutations, self._version = graph._mutations, 0
        if self._version == graph.version and self._version:
            return
        whole = graph_to_graph_def(graph, self._version or None, own_checks=True)
        pieces = _pieces(whole)
        for i, piece in enumerate(pieces):
            request = cpb.ExtendGraphRequest(
                session=self._session,
                from_version=self._version,
                graph=piece,
                more=i + 1 < len(pieces),
            )
            self._version = self._call("ExtendGraph", request, 600.0).version

    def run_plan(
        self, plan: int, feeds: Sequence[Any], options: Any, run_metadata: Any
    ) -> list[Any]:
        """Run a step of a plan."""
        request = next(self._requests)
        metas, buffers = codec.encode_many(feeds)
        message = pb.RunStep(request=request, session=self._session, plan=plan, feeds=metas)
        if options is not None:
            message.options = options.SerializeToString()
        message.metadata = run_metadata is not None
        waiting = self._waiting[request] = _Waiting()
        try:
            self._link().send(pack(message), buffers)
            result, values = waiting.result()
        except PipeBroken as error:
            raise unavailable(self._task, None, error.reason) from None
        finally:
            del self._waiting[request]
        if result.HasField("failure"):
            raise to_error(result.failure, self.graph)
        if run_metadata is not None:
            run_metadata.CopyFrom(RunMetadata.FromString(result.metadata))
        return values

    def run_with_options(
        self, plan: Any, feeds: Any, options: Any, run_metadata: Any, limit: Limit | None
    ) -> Any:
        return self.run_plan(plan.number, feeds, options or RunOptions(), run_metadata)

    def list_devices(self) -> list[Any]:
        """The devices of all tasks that answer the master."""
        request = cpb.ListDevicesRequest(session=self._open())
        return [device_of(d) for d in self._call("ListDevices", request).devices]

    def close(self, patience: float = _CLOSE_SECONDS) -> None:
        """End the session; shared variables stay on the servers."""
        with self._lock:
            session, self._session = self._session, 0
            try:
                if session:
                    request = cpb.CloseSessionRequest(session=session)
                    self._call("CloseSession", request, patience)
            except OpError as error:
                _log.info("The session was not closed at its master: %s", error.message)
            if self._peers is not None:
                self._peers.close()
            self._controls.close()
            _open_engines.discard(self)
            for waiting in list(self._waiting.values()):
                waiting.fail(CancelledError(None, None, "The session was closed while a step ran."))

    # -- events of the link -----------------------------------------------------------------------

    def on_frame(self, link: Link, head: bytes, buffers: list[Any]) -> None:
        """The result of a step."""
        message = unpack(head)
        waiting = self._waiting.get(message.request)
        if waiting is not None:
            waiting.set(message, codec.decode_many(message.fetches, buffers))

    def on_lost(self, link: Link, reason: str) -> None:
        """The master is gone."""
        for waiting in list(self._waiting.values()):
            waiting.fail(unavailable(self._task, None, reason))

    def on_tick(self, now: float) -> None:
        """Time has passed; nothing depends on it."""


#: Those that no program has closed.
_open_engines: WeakSet[OtherMasterEngine] = WeakSet()


@atexit.register
def _close_at_exit() -> None:
    """Masters keep sessions whose clients are away: tell them that this one will not come back."""
    for engine in list(_open_engines):
        engine.close(_LAST_SECONDS)


class _OtherMasterPlan(DistantPlan):
    def __init__(self, engine: OtherMasterEngine, number: int, text: str) -> None:
        self.engine = engine
        self.number = number
        self._text = text

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        return self.engine.run_plan(self.number, feeds, None, None)

    def describe(self) -> str:
        return self._text


class _Waiting:
    """A step whose result is on its way."""

    def __init__(self) -> None:
        self._there = threading.Event()
        self._result: Any = None
        self._error: OpError | None = None

    def set(self, message: Any, values: list[Any]) -> None:
        self._result = (message, values)
        self._there.set()

    def fail(self, error: OpError) -> None:
        self._error = error
        self._there.set()

    def result(self) -> tuple[Any, list[Any]]:
        self._there.wait()
        if self._error is not None:
            raise self._error
        result: tuple[Any, list[Any]] = self._result
        return result


def _pieces(graph: Any) -> list[Any]:
    """A GraphDef in messages of limited size; the functions come with the first."""
    if graph.ByteSize() <= _PIECE_BYTES:
        return [graph]
    pieces = [GraphDef(versions=graph.versions, library=graph.library)]
    size = 0
    for node in graph.node:
        if size > _PIECE_BYTES:
            pieces.append(GraphDef())
            size = 0
        pieces[-1].node.append(node)
        size += node.ByteSize()
    return pieces
