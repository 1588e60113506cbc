"""The control plane: gRPC calls between clients and servers that are too rare to need a link.

Stubs are made by hand from the table of methods, so that no generated code is needed for them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from headrace.distributed.cluster.cluster_spec import join_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.protocol import step_pb2
from headrace.distributed.security.admission import SEAL, TICKET, Admitted, Caller, Gate, Stale
from headrace.distributed.security.credentials import Security
from headrace.distributed.security.throttled import Throttled, one_line_each
from headrace.distributed.security.tls import diagnose
from headrace.distributed.wire.failures import to_error, to_failure
from headrace.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from headrace.executor.threads import Threads

_log = logging.getLogger("headrace.distributed")

#: Two processes understand each other if their versions of the protocol are equal.
PROTOCOL_VERSION = 3

_SERVICE = "headrace.distributed.Control"
_METHODS: dict[str, tuple[Any, Any]] = {
    name: (getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response"))
    for name in (
        "CloseSession",
        "CreateSession",
        "Diagnose",
        "Endpoint",
        "ExtendGraph",
        "Join",
        "Joined",
        "ListDevices",
        "MakePlan",
        "Members",
        "Move",
        "Reset",
        "Resize",
        "Shares",
        "Shutdown",
        "Status",
        "Trace",
        "View",
    )
}
#: Bytes of one message of gRPC: more is refused by gRPC itself before there is memory for it.
#: Longer bodies travel in pieces.
MOST_MESSAGE = 4 << 20
_PIECE = 1 << 20
#: Bytes of a body. A graph may have as many as a protocol buffer.
_MOST_BODY = {"ExtendGraph": 2**31 - 1}
_MOST_OTHER_BODY = 16 << 20
#: Bytes of all bodies that arrive at a server at one time.
_MOST_ARRIVING = 2**31 - 1 + (64 << 20)
#: Bytes of an answer.
_MOST_ANSWER = 64 << 20
#: The first byte of a reply.
_ANSWER, _FAILURE = b"\0", b"\1"
#: What says that a call has not begun.
_REFUSALS = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
#: A call gets at least so many seconds.
_LEAST_SECONDS = 0.05
#: A client asks for so many tickets before it gives up: the first may be too old.
_ATTEMPTS = 3

_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    # An address that did not answer is tried again soon: it may just be starting.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 250),
    ("grpc.enable_http_proxy", 0),
]
_SERVER_OPTIONS = [
    *_OPTIONS,
    ("grpc.max_receive_message_length", MOST_MESSAGE),
    ("grpc.max_concurrent_streams", 1024),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 100),
    ("grpc.http2.max_ping_strikes", 0),
]
_CHANNEL_OPTIONS = [
    *_OPTIONS,
    ("grpc.max_receive_message_length", _MOST_ANSWER),
    # A length that was damaged on its way makes one side wait for bytes that never come: a
    # connection that does not answer pings is given up.
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 4000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Else a new channel would get the connection of an old one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.http2.max_pings_without_data", 0),
]

# gRPC logs a traceback for each call whose metadata make no sense.
one_line_each(logging.getLogger("grpc._cython.cygrpc"))

#: ``handle(request) -> response``; an OpError that it raises reaches the caller.
Handler = Callable[[Any], Message]


class _Calls(Executor):
    """Runs calls for gRPC. Their number has no limit: some wait for other tasks, and those who
    only ask who is here must not wait behind them."""

    def __init__(self) -> None:
        self._threads = Threads("headrace control")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def call_and_set() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._threads.submit(call_and_set)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.close()


class _Refusals(ThreadPoolExecutor):
    """Refuses calls. Once the program ends its pools take nothing more, and an error would end the
    thread in which gRPC serves: the server would wait for that for ever."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            dropped: Future[Any] = Future()
            dropped.set_exception(error)
            return dropped


class ControlServer:
    """The control plane of one task, being served.

    Args:
        host, port: where; port 0 takes a free one.
        handlers: by name of the method; ``extra``: more gRPC handlers for the same port.

    Attributes:
        port: the one that it listens at.

    Raises:
        UnavailableError: if the port is taken, or the host is none of this machine.
    """

    def __init__(
        self,
        host: str,
        port: int,
        security: Security,
        handlers: dict[str, Handler],
        extra: Sequence[Any] = (),
    ) -> None:
        self._calls = _Calls()
        self._doors = _Doors(Gate(security), handlers, extra)
        self._server = grpc.server(self._calls, options=_SERVER_OPTIONS)  # type: ignore[arg-type]
        self._server.add_generic_rpc_handlers((self._doors,))
        self.port = self._bind(join_address(host, port), security.server_credentials())
        self._server.start()

    def _bind(self, address: str, credentials: Any) -> int:
        try:
            if credentials is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            bound = 0
        if bound == 0:
            raise UnavailableError(
                None,
                None,
                f"Cannot listen at {address}: the port is in use, or the host is none of this "
                "machine. Stop what listens there, or give the task another address in the "
                "cluster.",
            )
        return int(bound)

    def stop(self, grace: float = 0.2) -> None:
        """Take no more calls, and give those under way some seconds; then the port is free."""
        try:
            stopped = self._server.stop(grace=grace)
        except RuntimeError:
            # Python 3.12 starts no thread once the program has ended. By now gRPC has told all
            # callers to leave; what has not done so then is cut off.
            threading.Event().wait(grace)
            stopped = self._server.stop(grace=None)
        stopped.wait()
        self._calls.shutdown()
        self._doors.close()


class _Doors(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Where calls come in: who is not known is refused, before anything of the body is read."""

    def __init__(self, gate: Gate, handlers: dict[str, Handler], extra: Sequence[Any]) -> None:
        self._gate = gate
        self._handlers = {f"/{_SERVICE}/{name}": (name, h) for name, h in handlers.items()}
        self._extra = extra
        self._arriving = _Arriving(_MOST_ARRIVING)
        # Refusals take none of the threads of calls, and few of their own.
        self._refusals = _Refusals(2, thread_name_prefix="headrace refusal")
        self._complaints = Throttled(_log)

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Called by gRPC for each new call, once its metadata is here."""
        given = details.invocation_metadata or ()
        metadata = {key: value for key, value in given if isinstance(value, bytes)}
        try:
            call = self._gate.admit(details.method, metadata)
        except Stale as stale:
            text = "The call needs a ticket: this answer brings one."
            return self._refusal(grpc.StatusCode.UNAUTHENTICATED, text, stale.ticket)
        except OpError as error:
            code = grpc.StatusCode.PERMISSION_DENIED
            return self._refusal(code, error.message, b"", details.method)
        if details.method in self._handlers:
            name, handle = self._handlers[details.method]

            def answer(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
                reply = self._reply(name, handle, call, messages)
                context.set_trailing_metadata(((SEAL, self._gate.seal(call, reply)),))
                return reply

            return grpc.stream_unary_rpc_method_handler(answer)
        found = (handler.service(details) for handler in self._extra)
        return next((handler for handler in found if handler is not None), None)

    def _refusal(self, code: grpc.StatusCode, text: str, ticket: bytes, method: str = "") -> Any:
        """Ends a call; ``method``: there is a line in the log."""

        def refuse(messages: Iterator[bytes], context: grpc.ServicerContext, respond: Any) -> None:
            if method:
                peer = context.peer()
                self._complaints.warning(
                    (peer.rpartition(":")[0], text), "A call of %s by %s: %s", method, peer, text
                )
            context.set_trailing_metadata(((TICKET, ticket),) if ticket else ())
            context.abort(code, text)

        # A handler of streams, and one that does not return them, is called before any message is
        # asked for.
        refuse.experimental_non_blocking = True  # type: ignore[attr-defined]
        refuse.experimental_thread_pool = self._refusals  # type: ignore[attr-defined]
        return grpc.stream_stream_rpc_method_handler(refuse)

    def _reply(
        self, name: str, handle: Handler, call: Admitted, messages: Iterator[bytes]
    ) -> bytes:
        try:
            with self._arriving.room_for(name, call.nbytes):
                request = _parsed(name, _body_of(name, call, messages))
            return _ANSWER + bytes(handle(request).SerializeToString())
        except Exception as error:
            if not isinstance(error, OpError):
                kind = name, type(error)
                self._complaints.warning(kind, "The call %s failed", name, error=error)
            failure = to_failure(error, getattr(error, "task", ""))
            return _FAILURE + bytes(failure.SerializeToString())

    def close(self) -> None:
        """Let the threads of refusals go."""
        self._refusals.shutdown(wait=False)


class _Arriving:
    """The memory of bodies that are on their way to a server."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def room_for(self, name: str, nbytes: int) -> Iterator[None]:
        """Holds room for a body.

        Raises:
            ResourceExhaustedError: if there is none.
        """
        most = _MOST_BODY.get(name, _MOST_OTHER_BODY)
        if nbytes > most:
            text = f"A call of {name} with {nbytes} bytes: there may be {most}."
            raise ResourceExhaustedError(None, None, text)
        with self._lock:
            if self._taken + nbytes > self._limit:
                raise ResourceExhaustedError(
                    None,
                    None,
                    f"A call of {name} with {nbytes} bytes, while calls with {self._taken} bytes "
                    f"are on their way to this server, which takes {self._limit} at one time: try "
                    "again later.",
                )
            self._taken += nbytes
        try:
            yield
        finally:
            with self._lock:
                self._taken -= nbytes


def _body_of(name: str, call: Admitted, messages: Iterator[bytes]) -> bytes:
    """The body of a call, which arrives in pieces.

    Raises:
        UnavailableError: if it is not what the caller has sent.
    """
    pieces: list[bytes] = []
    got = 0
    with contextlib.suppress(grpc.RpcError):  # the caller is gone, or its connection
        for message in messages:
            got += len(message)
            if got > call.nbytes:
                break
            pieces.append(message)
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if got > call.nbytes or not call.fits(body):
        text = f"The body of {name} arrived damaged, or not whole."
        raise UnavailableError(None, None, text)
    return body


def _parsed(name: str, body: bytes) -> Any:
    try:
        return _METHODS[name][0].FromString(body)
    except DecodeError as error:
        text = f"The body of {name} is no message of that kind: {error}"
        raise InvalidArgumentError(None, None, text) from None


class Control:
    """Calls to the control plane of one address."""

    def __init__(self, address: str, security: Security) -> None:
        self.address = address
        self._security = security
        self._caller = Caller(security)
        self._channel = self.new_channel()
        self._retired: list[grpc.Channel] = []
        self._lock = threading.Lock()

    def new_channel(self) -> grpc.Channel:
        """A connection of its own to the address; it belongs to the caller."""
        credentials = self._security.channel_credentials()
        if credentials is None:
            return grpc.insecure_channel(self.address, options=_CHANNEL_OPTIONS)
        return grpc.secure_channel(self.address, credentials, options=_CHANNEL_OPTIONS)

    def _retire(self, channel: grpc.Channel) -> None:
        """Leave a connection on which an answer did not come: what HTTP/2 keeps of it may have
        been damaged on the way, and stays so. Calls that wait there get some time."""
        with self._lock:
            if channel is self._channel:
                self._channel = self.new_channel()
                self._retired.append(channel)
            old = self._retired[:-1]
            del self._retired[:-1]
        for one in old:
            one.close()

    def call(self, name: str, request: Any, timeout: float) -> Any:
        """The answer to a request.

        Raises:
            UnavailableError: if nobody answers there in time, or what came was damaged.
            UnauthenticatedError: if the TLS settings of the two sides do not fit.
            DeadlineExceededError: if the server has not answered after ``timeout`` seconds, or what
                was asked for took longer there.
            OpError: what the server answered in its place, or that it speaks something else.
        """
        method = f"/{_SERVICE}/{name}"
        body = request.SerializeToString()
        deadline = time.monotonic() + timeout
        refused = None
        try:
            if not self._caller.has_ticket:
                self._get_ticket(method, deadline)
            for _ in range(_ATTEMPTS):
                try:
                    return _METHODS[name][1].FromString(self._answer(method, body, deadline))
                except Stale as stale:
                    self._caller.renew(stale.ticket)
                except grpc.RpcError as error:
                    # Refused before it began: by whoever is there, or for a bit that flipped on
                    # the way. That is not so twice.
                    if error.code() not in _REFUSALS or error.code() is refused:
                        raise
                    refused = error.code()
        except grpc.RpcError as error:
            raise self._explained(name, error, timeout) from None
        except DecodeError:
            text = f"{self.address} answered {name} with something else: use the same release."
            raise FailedPreconditionError(None, None, text) from None
        text = f"{self.address} does not accept the tickets that it gives"
        raise UnavailableError(None, None, text)

    def proof(self, method: str, timeout: float) -> tuple[tuple[str, bytes], ...]:
        """The metadata for a call of another method there, one whose body is not sealed.

        Raises:
            UnavailableError: if nobody answers there in time.
        """
        try:
            if not self._caller.has_ticket:
                self._get_ticket(method, time.monotonic() + timeout)
        except grpc.RpcError as error:
            raise self._explained(method, error, timeout) from None
        return self._caller.metadata(self._caller.call(method, b""))

    def _get_ticket(self, method: str, deadline: float) -> None:
        """Call without one."""
        try:
            self._send(method, b"", (), deadline)
        except Stale as stale:
            self._caller.renew(stale.ticket)

    def _answer(self, method: str, body: bytes, deadline: float) -> bytes:
        call = self._caller.call(method, body)
        reply, seal = self._send(method, body, self._caller.metadata(call), deadline)
        if not self._caller.is_answer(call, reply, seal):
            text = f"The answer of {self.address} to {method} arrived damaged"
            if not seal and not self._caller.has_ticket:
                text = f"What listens at {self.address} is no Headrace server of this release"
                raise FailedPreconditionError(None, None, text)
            raise UnavailableError(None, None, text)
        if reply[:1] == _FAILURE:
            raise to_error(step_pb2.Failure.FromString(reply[1:]))
        return reply[1:]

    def _send(
        self, method: str, body: bytes, metadata: Any, deadline: float
    ) -> tuple[bytes, bytes]:
        """The reply and its seal.

        Raises:
            Stale: if the server wants another ticket.
            RpcError: for all else.
        """
        pieces = [body[i : i + _PIECE] for i in range(0, len(body), _PIECE)]
        timeout = max(_LEAST_SECONDS, deadline - time.monotonic())
        channel = self._channel
        try:
            if len(pieces) <= 1:
                unary = channel.unary_unary(method, None, None)
                reply, done = unary.with_call(body, timeout=timeout, metadata=metadata)
            else:
                stream = channel.stream_unary(method, None, None)
                reply, done = stream.with_call(iter(pieces), timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            ticket = _trailing(error, TICKET)
            if error.code() is grpc.StatusCode.UNAUTHENTICATED and ticket:
                raise Stale(ticket) from None
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                self._retire(channel)
            raise
        return reply or b"", _trailing(done, SEAL)  # None: it was lost on the way

    def _explained(self, name: str, error: Any, timeout: float) -> OpError:
        code, details = error.code(), error.details()
        # A server that stops cancels the calls under way.
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            found = diagnose(self.address, self._security, timeout)
            if found is not None:
                return found
            text = f"{self.address} does not answer ({details})"
            return UnavailableError(None, None, text)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            text = f"{self.address} did not answer {name} within {timeout:g} s"
            return DeadlineExceededError(None, None, text)
        if code is grpc.StatusCode.PERMISSION_DENIED:
            return PermissionDeniedError(None, None, f"{self.address}: {details}")
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ResourceExhaustedError(None, None, f"{name} at {self.address}: {details}")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            text = f"What listens at {self.address} is no Headrace server, or a very old one"
            return UnimplementedError(None, None, f"{text} ({details}).")
        # What a server has to say comes as an answer; this comes from gRPC, or from damage.
        text = f"The answer of {self.address} to {name} is none ({code}: {details})"
        return UnavailableError(None, None, text)

    def close(self) -> None:
        """Free the connections."""
        for channel in (self._channel, *self._retired):
            channel.close()


def _trailing(call: Any, wanted: str) -> bytes:
    """A value of what came after an answer, or with a refusal."""
    for key, value in call.trailing_metadata() or ():
        if key == wanted and isinstance(value, bytes):
            return value
    return b""


class Controls:
    """One `Control` for each address, made on demand."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self._made: dict[str, Control] = {}
        self._lock = threading.Lock()

    def at(self, address: str) -> Control:
        """The control plane of an address."""
        with self._lock:
            found = self._made.get(address)
            if found is None:
                found = self._made[address] = Control(address, self.security)
            return found

    def close(self) -> None:
        """Free all connections."""
        with self._lock:
            for control in self._made.values():
                control.close()
            self._made.clear()
