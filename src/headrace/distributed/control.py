"""The control plane: gRPC calls between clients and servers that are too rare to need a link.

Stubs are made by hand from the table of methods, so that no generated code is needed for them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from headrace.distributed.failures import to_error, to_failure
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.protocol import step_pb2
from headrace.distributed.security import Security
from headrace.errors import (
    DeadlineExceededError,
    OpError,
    PermissionDeniedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from headrace.executor.threads import Threads

_log = logging.getLogger("headrace.distributed")

#: Two processes understand each other if their versions of the protocol are equal.
PROTOCOL_VERSION = 1

_SERVICE = "headrace.distributed.Control"
_METHODS: dict[str, tuple[Any, Any]] = {
    name: (getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response"))
    for name in (
        "CloseSession",
        "CreateSession",
        "Endpoint",
        "ExtendGraph",
        "ListDevices",
        "MakePlan",
        "Reset",
        "Shutdown",
        "Status",
    )
}
_NONCE, _PROOF, _FAILURE = "headrace-nonce-bin", "headrace-proof-bin", "headrace-failure-bin"
_ROLE = b"control"
_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # An address that did not answer is tried again soon: it may just be starting.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
]

#: ``handle(request) -> response``; an OpError that it raises reaches the caller.
Handler = Callable[[Any], Message]


class _Calls(Executor):
    """Runs calls for gRPC. Their number has no limit: some wait for other tasks, and those who
    only ask who is here must not wait behind them."""

    def __init__(self) -> None:
        self._threads = Threads("headrace control")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        self._threads.submit(run)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.close()


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
        self._server = grpc.server(self._calls, options=_OPTIONS)  # type: ignore[arg-type]
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                _guarded(name, handle, security),
                request_deserializer=_METHODS[name][0].FromString,
                response_serializer=_METHODS[name][1].SerializeToString,
            )
            for name, handle in handlers.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_SERVICE, methods), *extra)
        )
        self.port = self._bind(f"{host}:{port}", security.server_credentials())
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
        self._server.stop(grace=grace).wait()
        self._calls.shutdown()


def _guarded(name: str, handle: Handler, security: Security) -> Callable[[Any, Any], Any]:
    def call(request: Any, context: grpc.ServicerContext) -> Any:
        failure = None
        try:
            metadata = {k: v for k, v in context.invocation_metadata()}
            nonce, proof = metadata.get(_NONCE, b""), metadata.get(_PROOF, b"")
            if not security.check_proof(_bytes(nonce), _ROLE, _bytes(proof)):
                raise PermissionDeniedError(
                    None,
                    None,
                    "The cluster token of the caller is not that of this cluster: set "
                    "HEADRACE_CLUSTER_TOKEN or HEADRACE_CLUSTER_TOKEN_FILE as the servers have it.",
                )
            return handle(request)
        except Exception as error:
            if not isinstance(error, OpError):
                _log.exception("The call %s failed", name)
            failure = to_failure(error, getattr(error, "task", ""))
        context.set_trailing_metadata(((_FAILURE, failure.SerializeToString()),))
        context.abort(grpc.StatusCode.ABORTED, failure.message)
        return None

    return call


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class Control:
    """Calls to the control plane of one address."""

    def __init__(self, address: str, security: Security) -> None:
        self.address = address
        self._security = security
        credentials = security.channel_credentials()
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options=_OPTIONS)
        else:
            self.channel = grpc.secure_channel(address, credentials, options=_OPTIONS)

    def call(self, name: str, request: Any, timeout: float) -> Any:
        """The answer to a request.

        Raises:
            UnavailableError: if nobody answers there in time.
            OpError: what the server answered in its place, or that it speaks something else.
        """
        method = self.channel.unary_unary(
            f"/{_SERVICE}/{name}",
            request_serializer=_METHODS[name][0].SerializeToString,
            response_deserializer=_METHODS[name][1].FromString,
        )
        nonce = os.urandom(16)
        metadata = ((_NONCE, nonce), (_PROOF, self._security.proof(nonce, _ROLE)))
        try:
            return method(request, timeout=timeout, metadata=metadata, wait_for_ready=False)
        except grpc.RpcError as error:
            raise self._explained(name, error, timeout) from None

    def _explained(self, name: str, error: Any, timeout: float) -> OpError:
        for key, value in error.trailing_metadata() or ():
            if key == _FAILURE:
                try:
                    return to_error(step_pb2.Failure.FromString(value))
                except DecodeError:
                    break
        code, details = error.code(), error.details()
        # A server that stops cancels the calls under way.
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            text = f"{self.address} does not answer ({details})"
            return UnavailableError(None, None, text)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            text = f"{self.address} did not answer {name} within {timeout:g} s"
            return DeadlineExceededError(None, None, text)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            text = f"What listens at {self.address} is no Headrace server, or a very old one"
            return UnimplementedError(None, None, f"{text} ({details}).")
        return UnknownError(None, None, f"{name} at {self.address} failed: {code}: {details}")

    def close(self) -> None:
        """Free the connection."""
        self.channel.close()


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
