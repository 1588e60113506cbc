"""`tf.train.Server`: a process as a task of a cluster."""

from __future__ import annotations

import atexit
import contextlib
import logging
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from headrace.distributed.cluster.cluster_spec import (
    SERVERS,
    ClusterSpec,
    join_address,
    split_address,
    task_name,
)
from headrace.distributed.links.liveness import answers
from headrace.distributed.links.peers import may_come
from headrace.distributed.membership.addresses import Addresses
from headrace.distributed.membership.changes import by_weight
from headrace.distributed.membership.messages import accepted_of
from headrace.distributed.membership.record import GONE, ClusterRecord
from headrace.distributed.membership.voting import Accepted
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.calls import MasterService
from headrace.distributed.services.cluster_calls import ClusterCalls, ask_to_join, host_towards
from headrace.distributed.services.control import PROTOCOL_VERSION, Controls, ControlServer, Handler
from headrace.distributed.services.definitions import (
    contact_of,
    joined_def,
    joining_def,
    own_address,
    server_def,
)
from headrace.distributed.services.dialling import ask_endpoint, check_only_one, dial, release
from headrace.distributed.services.members import Members
from headrace.distributed.services.metrics import MetricsServer, metrics_port_of
from headrace.distributed.services.moved_record import MovedRecord
from headrace.distributed.services.operation_calls import OperationCalls
from headrace.distributed.services.serving import Found, device_message, device_of
from headrace.distributed.services.shares import Shares
from headrace.distributed.services.sigterm import on_sigterm
from headrace.distributed.services.standbys import Standbys
from headrace.distributed.services.status import statuses
from headrace.distributed.services.task import Task
from headrace.distributed.transport import connect, grpc_pipe
from headrace.distributed.transport.base import PeerInfo, Pipe
from headrace.errors import AbortedError, FailedPreconditionError, OpError, UnavailableError
from headrace.executor.resources import ResourceHandle
from headrace.executor.threads import step_threads
from headrace.graph.devices import DeviceSpec
from headrace.graph.proto import ConfigProto, ServerDef
from headrace.ops.state import share
from headrace.placement.devices import DeviceAttributes, local_devices
from headrace.settings import flags
from headrace.structured_logs import tell, this_task

_log = logging.getLogger("headrace.distributed")

#: Servers of this process by their address: sessions in it use them without a network.
_local: weakref.WeakValueDictionary[str, Server] = weakref.WeakValueDictionary()

_PROTOCOLS = ("grpc", "grpc+rdma")
#: A task whose copy may be served elsewhere is waited for so long at its own address.
_HOME_SECONDS = 1.0
#: Who leaves a cluster tells the others so within so many seconds.
_LEAVE_SECONDS = 1.0


#: Addresses of servers of this process that have stopped.
_stopped: set[str] = set()


def was_stopped(address: str) -> bool:
    """Whether this process had a server at ``host:port``, and has none any more."""
    return address in _stopped and address not in _local


def local_server(address: str) -> Server | None:
    """The running server of this process at ``host:port``, if there is one."""
    return _local.get(address)


class Server:
    """A task of a cluster: runs parts of steps for all sessions, and sessions of its own.

    Args:
        server_or_cluster_def: a ServerDef, a ClusterDef, or what `ClusterSpec` takes. Or the
            ``host:port`` of any task of a running cluster, to join that: the server is one more
            task of a job, with an index that is free, or with that of a task that has died.
        job_name, task_index: which task this is; each may be left out where there is only one. Who
            joins a cluster may leave out the index.
        protocol: "grpc", or "grpc+rdma" to move tensors by RDMA where both ends can.
        config: a ConfigProto: the devices of the task, and defaults of its sessions.
        start: begin at once.
        address: where a server listens that joins a cluster, as others find it. By default a free
            port of the address by which this machine reaches the cluster.
        metrics_port: where Prometheus finds metrics, at the host of the server; 0 for any port that
            is free. By default as ``HEADRACE_METRICS_PORT`` says: nowhere if it is not set.

    Raises:
        ValueError: if it is not clear which task of the cluster this is.
        TypeError: if the cluster is described by something else.
        UnavailableError: if the port is taken.
        ImportError: if there is a port for metrics, and no package ``prometheus-client``.
        PermissionDeniedError: for an address that others can reach, without TLS and a token.
        AlreadyExistsError: if a task of the cluster that is joined has the index, and answers.
        FailedPreconditionError: if that cluster runs another release.

    >>> server = tf.train.Server.create_local_server()  # a cluster of one task, in this process
    >>> server.server_def.job_name
    'localhost'
    >>> with tf.Session(server.target) as sess:
    ...     int(sess.run(tf.constant(1) + 2))
    3
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
        address: str | None = None,
        metrics_port: int | None = None,
    ) -> None:
        self._metrics_port = metrics_port_of(metrics_port)
        self._metrics: MetricsServer | None = None
        #: The address of a task of the cluster that this is to join.
        self._contact = ""
        #: What the cluster was started with.
        self._first = ClusterSpec({})
        if isinstance(server_or_cluster_def, str):
            self._contact = server_or_cluster_def.removeprefix("grpc://")
            definition = joining_def(self._contact, job_name, task_index, protocol, config)
            self._wanted_index = task_index
        elif address is not None:
            raise ValueError("`address` is for a server that joins a cluster by another's address.")
        else:
            definition = server_def(server_or_cluster_def, job_name, task_index, protocol, config)
            self._contact, self._wanted_index = contact_of(definition), definition.task_index
            address = own_address(definition)
        self._server_def = definition
        script = share.current()
        if script is not None and sum(len(job.tasks) for job in definition.cluster.job) > 1:
            script.give_way("a tf.train.Server")
        if definition.protocol not in _PROTOCOLS:
            raise ValueError(
                f"Unknown protocol {definition.protocol!r} for tf.train.Server: there are "
                f"{', '.join(map(repr, _PROTOCOLS))}."
            )
        self._security = Security.from_environment()
        #: None: as HEADRACE_RDMA says.
        self._rdma = True if definition.protocol == "grpc+rdma" else None
        self._stopped = threading.Event()
        self._cut_off = ""
        self._stopping = threading.Lock()
        self._started = False
        self._standbys: Standbys
        if not self._contact:
            self._set_task(definition)
        self._address = address or join_address(host_towards(self._contact), 0)
        self._security.check_address(split_address(self._address)[0])
        #: Whether it serves another one's task, in the process that has kept the copy.
        self._serves_copy = False
        #: What was logged last of why this task does not leave.
        self._said = ""
        if start:
            self.start()

    def _set_task(self, definition: Any) -> None:
        self._server_def = definition
        script = share.current()
        if script is not None and sum(len(job.tasks) for job in definition.cluster.job) > 1:
            script.give_way("a tf.train.Server")
        self._cluster = ClusterSpec(definition.cluster)
        if not self._contact:
            self._first = self._cluster
        self._task_name = task_name(definition.job_name, definition.task_index)

    def _serve_copy(self, task: str, values: dict[ResourceHandle, Any], epoch: int) -> Server:
        """A server in this process for another task of the job, which has ended."""
        definition = ServerDef()
        definition.CopyFrom(self._server_def)
        index = DeviceSpec.from_string(task).task
        assert index is not None
        definition.task_index = index
        host = split_address(self._address)[0]
        for job in definition.cluster.job:
            if job.name == definition.job_name:
                job.tasks[index] = join_address(host, 0)
        made = Server(definition, start=False)
        made._serves_copy, made._first = True, self._first
        with contextlib.ExitStack() as undo:
            undo.callback(made.stop)
            made._listen_as_task()
            made.members.learn(self.members.chosen)
            made._standbys.serve_copy(values, epoch)
            undo.pop_all()
        return made

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to listen. Nothing happens if the server runs already.

        Raises:
            UnavailableError: if the port is taken.
            FailedPreconditionError: if the server was stopped.
        """
        if not self._started:
            self._listen_as_task()
            self._standbys.start()

    def _listen_as_task(self) -> None:
        if self._stopped.is_set():
            raise FailedPreconditionError(
                None, None, "A server that was stopped does not start again: make a new one."
            )
        self.incarnation = secrets.randbits(63) | 1
        self.began = time.monotonic()
        self._controls = Controls(self._security)
        host, port = split_address(self._address)
        self._service = MasterService(self)
        self._shares = Shares(self, self._service.wait_until_ready, self.ask_to_stop)
        # Nobody is answered before the task is complete: the port is bound, calls wait.
        handlers: dict[str, Handler] = {
            "Endpoint": self._describe,
            **self._service.handlers(),
            **ClusterCalls(self, self._service.wait_until_ready).handlers(),
            **OperationCalls(self, self._service.wait_until_ready).handlers(),
            **self._shares.handlers(),
        }
        exchange = grpc_pipe.exchange_handler(self._adopt, self._security, lambda: self._me)
        self._control = ControlServer(host, port, self._security, handlers, [exchange])
        self._address = join_address(host, self._control.port)
        with contextlib.ExitStack() as undo:
            undo.callback(self._control.stop)
            joined = self._join() if self._contact else None
            self._make_task(joined)
            undo.callback(self.task.close)
            self._listener = self._listen(host)
            undo.callback(self._listener.close)
            self._offer_metrics(host)
            undo.pop_all()
        self._started = True
        self._shares.changed(self.members.record)
        _local[self._address] = self
        if not self._serves_copy:
            this_task(self._task_name)
        self._tell("server_started", "Task %s listens at %s", self._task_name, self._address)

    def _offer_metrics(self, host: str) -> None:
        port = self._metrics_port
        if port is not None and not self._serves_copy:
            self._metrics = MetricsServer(host, port, self._security, lambda: statuses(self))

    @property
    def metrics_address(self) -> str:
        """``host:port`` where Prometheus finds metrics; "" where there are none."""
        return self._metrics.address if self._metrics is not None else ""

    def _join(self) -> Accepted:
        """Become a task of the cluster that the contact is in; returns its record."""
        job, index = self._server_def.job_name, self._wanted_index
        control = self._controls.at(self._contact)
        patience = flags.connect_timeout
        answer = ask_to_join(control, job, index, self._address, patience, self._stopped.wait)
        found = accepted_of(answer.chosen)
        self._first = ClusterSpec(answer.cluster)
        self._set_task(joined_def(self._server_def, answer.task, answer.cluster, found.record))
        text = "%s joins the cluster of %s as %s"
        self._tell("task_joined", text, self._address, self._contact, answer.task)
        return found

    @property
    def _me(self) -> PeerInfo:
        return PeerInfo(self._task_name, self.incarnation, self._address)

    def _make_task(self, joined: Accepted | None) -> None:
        me = self._me
        self._devices = local_devices(
            self._server_def.default_session_config, me.task, me.incarnation
        )
        addresses = Addresses(self._addresses())

        def call(address: str, name: str, request: Any, timeout: float) -> Any:
            return self._controls.at(address).call(name, request, timeout)

        def probe(task: str, timeout: float) -> bool:
            address = addresses.get(task)
            return address is not None and answers(address, self._security, timeout)

        first = by_weight(t for t in addresses if joined is None or t not in joined.record.tasks)
        self.members = Members(me, addresses, call, first, stands_in=self._serves_copy)
        self.task = Task(me, addresses, self._devices, self._dial, self._ask_devices, probe=probe)
        begun = self._first
        self.task.collectives.groups.first = frozenset(
            task_name(job, index) for job in begun.jobs for index in begun.task_indices(job)
        )
        self.task.peers.is_elsewhere = self._is_elsewhere
        self.members.on_change = self._cluster_changed
        self.members.on_moved = self._variables_moved
        self.task.moves.record = MovedRecord(self.members)
        self._standbys = self._make_standbys()
        if joined is not None:
            self.members.learn(joined)

    def _cluster_changed(self, record: ClusterRecord) -> None:
        """There is a new record of the cluster."""
        text = "Task %s knows epoch %d of its cluster"
        self._tell("cluster_changed", text, self._task_name, record.epoch, epoch=record.epoch)
        if self._started and self.members.is_back():
            step_threads.submit(self._come_back)
            return
        leaves = self.members.is_leaving()
        if leaves and not self.task.master.is_leaving:
            text = "Task %s is to leave: its programs stop soon"
            self._tell("task_leaving", text, self._task_name)
        self.task.master.is_leaving = leaves
        self._standbys.changed()
        if self._started:
            self._shares.changed(record)

    def _variables_moved(self, record: ClusterRecord) -> None:
        """The record may say that variables are elsewhere."""
        moved = self.task.master.moved
        if dict(moved.tasks) != dict(record.moved):
            moved.set(record.epoch, record.moved)

    def _come_back(self) -> None:
        """A task of this name has left the cluster before; it is wanted again."""
        try:
            self.members.come_back()
        except OpError as error:
            _log.warning("%s is not back in its cluster: %s", self._task_name, error.message)

    def _leave(self) -> None:
        """Take this task out of the cluster, where it has joined it, or is to leave."""
        if not (self._contact or self.members.is_leaving()):
            return
        try:
            self.members.leave(_LEAVE_SECONDS)
        except OpError as error:
            _log.info("Nobody was told that %s leaves: %s", self._task_name, error.message)

    def _begin(self, values: Mapping[ResourceHandle, Any]) -> None:
        """Begin to answer, with variables that another process has kept."""
        self.task.store.take_over(values)
        self._service.ready.set()

    def _make_standbys(self) -> Standbys:
        def dial_as(me: PeerInfo, address: str, task: str, timeout: float) -> tuple[Pipe, PeerInfo]:
            return dial(self._controls, address, task, me, self._security, timeout)

        return Standbys(
            self._first,
            self.task,
            self._controls,
            self._serve_copy,
            self._begin,
            self._taken_over,
            dial_as,
        )

    def _listen(self, host: str) -> connect.Listener:
        port = 0 if self._serves_copy else flags.data_port
        config = connect.ListenConfig(host, port, rdma=self._rdma)
        try:
            return connect.listen(config, self._security, self._me, self.task.adopt)
        except OSError as error:
            where = join_address(host, flags.data_port)
            text = f"Cannot listen for tensors at {where}: {error.strerror or error}"
            hint = " HEADRACE_DATA_PORT says where; 0 is any free port." if flags.data_port else ""
            raise UnavailableError(None, None, f"{text}.{hint}") from None

    def _addresses(self) -> dict[str, str]:
        found = {}
        for job in self._cluster.jobs:
            for index in self._cluster.task_indices(job):
                found[task_name(job, index)] = self._cluster.task_address(job, index)
        found[self._task_name] = self._address
        return found

    def join(self) -> None:
        """Wait until the server is stopped: by `stop`, by SIGTERM, or from another task.

        It also ends when the task is to leave its cluster, and no session needs it any more.

        In the main thread SIGTERM stops the server while this waits.

        Raises:
            AbortedError: if the server was cut off from the others, and its copy serves now: it
                should be started again, so its program must not end as if all were well.
        """
        with on_sigterm(self.ask_to_stop):
            # A wait without a limit could not be interrupted by signals on some systems.
            while not self._stopped.wait(1.0):
                if self._is_done():
                    break
        self._finish()
        if self._cut_off:
            raise AbortedError(None, None, f"{self._cut_off}. Start it again.")

    def _taken_over(self, cut_off: str) -> None:
        """Another server serves the variables: this one was ``cut off``, or gave them back ("")."""
        self._cut_off = cut_off
        self.ask_to_stop()

    def _is_done(self) -> bool:
        """Whether a task that only serves is to leave, and nobody needs it any more.

        Servers of variables leave when they have given them away, see `Shares`.
        """
        if self._server_def.job_name == SERVERS or not (
            self._started and self.members.is_leaving()
        ):
            return False
        task = self.task
        left = [f"{task.worker.plans} plans of sessions"] if task.worker.plans else []
        left += [f"{len(task.master.sessions())} sessions"] if task.master.sessions() else []
        left += task.moves.what_is_left()
        text = f"{self._task_name} is to leave, and still has {', '.join(left)}" if left else ""
        if text and text != self._said:
            _log.warning("%s", text)
        self._said = text
        return not left

    def stop(self) -> None:
        """Stop: running steps that need this task fail, connections and memory are given back."""
        self._stopped.set()
        self._finish()

    def _finish(self) -> None:
        with self._stopping:
            if not self._started:
                return
            self._started = False
            _local.pop(self._address, None)
            _stopped.add(self._address)
            if self._metrics is not None:
                self._metrics.stop()
            self._shares.close()
            self._leave()
            self.members.close()
            self._listener.close()
            self._standbys.close()
            self.task.close()
            self._control.stop()
            self._controls.close()
            self.task.store.close()
        self._tell("server_stopped", "Task %s has stopped", self._task_name)

    def _tell(self, event: str, text: str, *args: Any, **fields: Any) -> None:
        told = {"address": self._address, **fields}
        tell(_log, event, text, *args, task=self._task_name, fields=told)

    def wait(self, timeout: float) -> bool:
        """Whether it has stopped within so many seconds."""
        return self._stopped.wait(timeout)

    def ask_to_stop(self) -> None:
        """Stop soon, in another thread: for calls that must be answered first, and signals."""
        threading.Thread(target=self.stop, name="headrace stop", daemon=True).start()

    @property
    def standbys(self) -> Standbys | None:
        """What it does for copies of variables; None while it starts."""
        return self._standbys if self._started else None

    # -- what it is -------------------------------------------------------------------------------

    @property
    def server_def(self) -> Any:
        """The ServerDef of this server."""
        return self._server_def

    @property
    def target(self) -> str:
        """For `tf.Session`: the address of this server."""
        return f"grpc://{self._address}"

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._address

    @property
    def cluster(self) -> ClusterSpec:
        """All tasks."""
        return self._cluster

    @property
    def first_cluster(self) -> ClusterSpec:
        """The cluster as it was started, without those that have joined it."""
        return self._first

    def session_config(self, config: Any) -> Any:
        """The ConfigProto of a session: the defaults of this server, and what it sets itself."""
        merged = ConfigProto()
        merged.CopyFrom(self._server_def.default_session_config)
        if config is not None:
            merged.MergeFrom(config)
        return merged

    @property
    def controls(self) -> Controls:
        """How other tasks' control planes are called."""
        return self._controls

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server that is the only task of a cluster in this process, at a free port."""
        return Server({"localhost": ["127.0.0.1:0"]}, protocol="grpc", config=config, start=start)

    # -- links ------------------------------------------------------------------------------------

    def _describe(self, request: pb.EndpointRequest) -> pb.EndpointResponse:
        """Who this is, and where its data port is."""
        self._service.wait_until_ready()
        asker = PeerInfo(request.task, request.incarnation, request.address)
        check_only_one(asker, self._me, self.task.peers)
        self.members.heard(request.epoch, request.address)
        endpoint = self._listener.endpoint
        return pb.EndpointResponse(
            version=PROTOCOL_VERSION,
            task=self._task_name,
            incarnation=self.incarnation,
            host=endpoint.host,
            port=endpoint.port,
            unix_name=endpoint.unix_name,
            host_id=endpoint.host_id,
            devices=[device_message(d) for d in self._devices],
            package_version=release(),
            epoch=self.members.epoch,
        )

    def _adopt(self, pipe: Pipe, peer: PeerInfo) -> None:
        """A peer has connected through the port of the control plane."""
        self._service.wait_until_ready()
        self.task.adopt(pipe, peer)

    def _dial(
        self, address: str, task: str, timeout: float, *, fallback: bool = True
    ) -> tuple[Pipe, PeerInfo]:
        def connect_to(address: str, timeout: float) -> tuple[Pipe, PeerInfo]:
            more = self._rdma, fallback, self.members
            return dial(self._controls, address, task, self._me, self._security, timeout, *more)

        return self.where_served(task, address, timeout, connect_to)

    def _ask_devices(
        self, task: str, address: str, timeout: float
    ) -> tuple[int, list[DeviceAttributes]]:
        def ask(address: str, timeout: float) -> Any:
            answer = ask_endpoint(self._controls, address, task, timeout, self._me)
            # At once: where variables are is asked next.
            self.members.fetch(answer.epoch, address)
            return answer

        answer = self.where_served(task, address, timeout, ask)
        return answer.incarnation, [device_of(d) for d in answer.devices]

    def _is_elsewhere(self, task: str, address: str) -> bool:
        addresses = self.members.addresses
        if self._first.replicas and task in self._standbys.keepers:
            # A copy is served elsewhere; who may serve is not for the record to say.
            return addresses.record.tasks.get(task) == GONE
        return addresses.is_elsewhere(task, address)

    def where_served(
        self, task: str, address: str, timeout: float, call: Callable[[str, float], Found]
    ) -> Found:
        """Call a task at its address or, where that is in vain, where its copy is served."""
        if not self._first.replicas:
            return call(address, timeout)
        try:
            return call(address, min(timeout, _HOME_SECONDS))
        except OpError as error:
            other = self._standbys.served_at(task, timeout) if may_come(error) else ""
            if not other:
                raise
            return call(other, timeout)


@atexit.register
def _stop_at_exit() -> None:
    for server in list(_local.values()):
        server.stop()


__all__ = ["Server", "local_server", "was_stopped"]
