"""How two tasks find the best pipe between them.

In one process: by reference. On one host: an abstract unix socket and shared memory. Else TCP,
with TLS where the cluster has certificates; or RDMA where both sides were told to use it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import select
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from headrace import errors
from headrace.distributed.cluster.cluster_spec import join_address
from headrace.distributed.protocol import transport_pb2 as pb
from headrace.distributed.security import tls
from headrace.distributed.security.credentials import Security
from headrace.distributed.security.throttled import Throttled
from headrace.distributed.transport import checksum, rdma, shm
from headrace.distributed.transport.base import (
    DEFAULT_LIMITS,
    Endpoint,
    Limits,
    PeerInfo,
    Pipe,
    PipeBroken,
)
from headrace.distributed.transport.handshake import Refused, answer, greet, hello_of, mismatch
from headrace.distributed.transport.inproc import InprocPipe, inproc_pair
from headrace.distributed.transport.sockets import (
    SocketChannel,
    TlsChannel,
    credentials_of,
    drop,
    give_second,
    is_unix,
    shut,
    take_second,
    tune,
)
from headrace.distributed.transport.stream import StreamPipe

__all__ = ["ListenConfig", "Listener", "dial", "host_id", "listen"]

_log = logging.getLogger(__name__)
_GREETING_SECONDS: Final = 10.0
_MOST_GREETINGS: Final = 128  # at once; a flood of connections must not be a flood of threads
_BACKLOG: Final = 256


@dataclass(frozen=True)
class ListenConfig:
    """Where and how to listen.

    Attributes:
        host, port: of the TCP socket; port 0 takes a free one.
        unix: listen on an abstract unix socket, too (Linux).
        shared_memory: agree to shared memory with processes of this host (Linux).
        rdma: agree to RDMA where TCP would be used; None: as `HEADRACE_RDMA` says.
        checksums: of each buffer over TCP without TLS; None: as `HEADRACE_CHECKSUMS` says. They
            are made if either side wants them.
        limits: of the pipes.
        greeting_seconds: a peer that has not introduced itself by then is cut off.
    """

    host: str = "127.0.0.1"
    port: int = 0
    unix: bool = True
    shared_memory: bool = True
    rdma: bool | None = None
    checksums: bool | None = None
    limits: Limits = field(default_factory=Limits)
    greeting_seconds: float = _GREETING_SECONDS


OnPipe = Callable[[Pipe, PeerInfo], None]

# The listeners of this process; what a dialler looks at first.
_local: dict[Endpoint, Listener] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_local.clear)


@cache
def host_id() -> str:
    """Equal for two processes that reach each other's abstract sockets; "" where there are none.

    That is: the same start of the same machine, and the same network namespace.
    """
    if sys.platform != "linux":
        return ""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        network = os.readlink("/proc/self/ns/net")
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {network}".encode()).hexdigest()[:32]


def listen(config: ListenConfig, security: Security, local: PeerInfo, on_pipe: OnPipe) -> Listener:
    """Accept pipes until the listener is closed.

    Args:
        local: who listens; its address may be empty, then it is the one of the socket.
        on_pipe: called with each new pipe (not yet started) and its peer, in a thread of the
            listener. The pipe belongs to the callee; an exception closes it.

    Raises:
        PermissionDeniedError: the address is open to others and the cluster is not secured.
        OSError: the port is in use, the host is none of this machine's.
    """
    return Listener(config, security, local, on_pipe)


class Listener:
    """Listening sockets and the thread that accepts. `endpoint` says where they are."""

    def __init__(
        self, config: ListenConfig, security: Security, local: PeerInfo, on_pipe: OnPipe
    ) -> None:
        security.check_address(config.host)
        security.server_context()  # unreadable certificates are an error now, not at each peer
        self._rdma = rdma.wanted(security.encrypted, config.rdma)
        self.security = security
        self._config = config
        self._on_pipe = on_pipe
        self._lock = threading.Lock()
        self._closed = False
        self._complaints = Throttled(_log)
        self._greeting: dict[threading.Thread, socket.socket | None] = {}
        self._ended: set[threading.Thread] = set()  # of these, those that had to make room
        self._halves: dict[bytes, tuple[ssl.SSLSocket, pb.Hello, float]] = {}
        self._tcp = _listen_tcp(config)
        self._wake_read, self._wake_write = socket.socketpair()
        self._unix, unix_name = _listen_unix() if config.unix else (None, "")
        host, port = self._tcp.getsockname()[:2]
        self.endpoint = Endpoint(host, port, unix_name, host_id() if unix_name else "")
        address = local.address or join_address(host, port)
        self.local = PeerInfo(local.task, local.incarnation, address)
        _local[self.endpoint] = self
        self._thread = threading.Thread(
            target=self._accept_all, name=f"headrace-accept {port}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; pipes that were handed out stay. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            greeting = dict(self._greeting)
        # In order: no new pipe of this process, no new connection, then an end to the greetings.
        _local.pop(self.endpoint, None)
        self._wake_write.send(b"x")
        self._thread.join()
        drop(self._wake_read)
        drop(self._wake_write)
        for sock in greeting.values():
            if sock is not None:
                shut(sock)
        for thread in greeting:
            if thread is not threading.current_thread():
                thread.join(self._config.greeting_seconds)
        self._drop_halves(float("inf"))

    def take(self, pipe: InprocPipe, security: Security, hello: pb.Hello) -> PeerInfo:
        """A pipe from this process; returns who listens here.

        Raises:
            Refused: another task was wanted, or the token is another.
        """
        mine = hello_of(self.local)
        wrong = mismatch(hello, mine)
        if wrong is not None:
            raise wrong
        if security.token != self.security.token:
            raise Refused(errors.UNAUTHENTICATED, "the two sides have different cluster tokens")
        peer = PeerInfo(hello.task, hello.incarnation, hello.address)
        # Not in the dialler's thread: it may hold locks that `on_pipe` needs.
        if not self._spawn(lambda: self._hand_over(pipe, peer), None):
            raise Refused(errors.UNAVAILABLE, "the listener is closed or overrun")
        return self.local

    def _accept_all(self) -> None:
        poll = select.poll()
        sockets = {sock.fileno(): sock for sock in (self._tcp, self._unix) if sock is not None}
        for descriptor in (*sockets, self._wake_read.fileno()):
            poll.register(descriptor, select.POLLIN)
        while not self._closed:
            for descriptor, _ in poll.poll(1000 if self._halves else None):
                if descriptor not in sockets:
                    self._wake_read.recv(64)
                elif not self._closed:
                    self._accept(sockets[descriptor])
            self._drop_halves(time.monotonic())
        for sock in sockets.values():
            drop(sock)

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, address = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.warning("Cannot accept a connection: %s", error)
            time.sleep(0.05)  # out of descriptors: without a pause this would spin
            return
        if is_unix(sock):
            name = f"pid {credentials_of(sock)[0]}"
        else:
            name = join_address(address[0], address[1])
        self._make_room()
        if not self._spawn(lambda: self._greet(sock, name), sock):
            if not self._closed:
                self._complain(name, errors.RESOURCE_EXHAUSTED, "refused", "too many at once")
            drop(sock)

    def _make_room(self) -> None:
        """Where too many greet at once, end the oldest: who is honest is done in a moment."""
        with self._lock:
            if len(self._greeting) - len(self._ended) < _MOST_GREETINGS:
                return
            for thread, sock in self._greeting.items():
                if sock is not None and thread not in self._ended:
                    self._ended.add(thread)
                    shut(sock)
                    return

    def _spawn(self, target: Callable[[], None], sock: socket.socket | None) -> bool:
        def serve_and_forget() -> None:
            try:
                target()
            finally:
                with self._lock:
                    self._greeting.pop(threading.current_thread(), None)
                    self._ended.discard(threading.current_thread())

        thread = threading.Thread(target=serve_and_forget, name="headrace-greet", daemon=True)
        with self._lock:
            if self._closed or len(self._greeting) >= 2 * _MOST_GREETINGS:
                return False
            self._greeting[thread] = sock
            thread.start()
        return True

    def _greet(self, sock: socket.socket, name: str) -> None:
        answered = False
        try:
            pipe, peer = self._answer(sock, name)
            answered = True
        except Refused as refused:
            self._complain(name, refused.code, "refused", refused.reason)
        except ssl.SSLError as error:
            self._complain(name, errors.UNAUTHENTICATED, "refused", f"TLS: {error.reason or error}")
        except OSError as error:
            if not self._closed:
                self._complain(name, errors.UNAVAILABLE, "gave up", error)
        finally:
            if not answered:  # after the line above: then whoever sees the end finds it in the log
                with self._lock:
                    wrapped = self._greeting.get(threading.current_thread())
                for made in {sock, wrapped or sock}:
                    drop(made)
        if answered and pipe is not None:
            self._hand_over(pipe, peer)

    def _complain(self, name: str, code: int, what: str, reason: Any) -> None:
        """A line in the log: anybody can cause it, so not many that are alike."""
        kind = name.rpartition(":")[0], code
        self._complaints.warning(kind, "Connection from %s %s: %s", name, what, reason)

    def _answer(self, sock: socket.socket, name: str) -> tuple[Pipe | None, PeerInfo]:
        deadline = time.monotonic() + self._config.greeting_seconds
        sock.settimeout(self._config.greeting_seconds)
        tune(sock)
        local_socket = is_unix(sock)
        context = None if local_socket else self.security.server_context()
        if local_socket:
            _check_user(sock)
        # From here on the TLS socket stands for the connection: who makes room shuts that.
        if context is not None:
            sock = context.wrap_socket(sock, server_side=True)
            with self._lock:
                self._greeting[threading.current_thread()] = sock
        share = local_socket and self._config.shared_memory and shm.available()
        offer = self._rdma and not local_socket
        checked = _checked(sock, self._config.checksums)
        hello = answer(sock, self.security, self.local, share, deadline, offer, checked)
        peer = PeerInfo(hello.task, hello.incarnation, hello.address)
        label = hello.task or name
        pipe: Pipe | None
        if isinstance(sock, ssl.SSLSocket):
            pipe = self._pair(sock, hello, label, deadline)
        else:
            second = take_second(sock) if local_socket else None
            pipe = _stream(sock, second, label, self._config.limits, hello)
        if pipe is not None and hello.rdma:
            pipe = _upgraded(pipe, self._config.host, self._config.limits, deadline)
        return pipe, peer

    def _pair(
        self, sock: ssl.SSLSocket, hello: pb.Hello, label: str, deadline: float
    ) -> Pipe | None:
        """The pipe, if the other connection of this peer is already here."""
        with self._lock:
            found = self._halves.pop(hello.pair, None)
            if found is None and not self._closed:
                self._halves[hello.pair] = (sock, hello, deadline)
                self._wake_write.send(b"x")  # so that the accepting thread looks at deadlines
                return None
        if found is None:
            raise Refused(errors.UNAVAILABLE, "the listener is closed")
        other, said, _ = found
        if (said.task, said.incarnation) != (hello.task, hello.incarnation):
            drop(other)
            raise Refused(errors.INVALID_ARGUMENT, "two connections of one pipe by two tasks")
        incoming, outgoing = sock, other
        if hello.direction == pb.FROM_LISTENER:
            incoming, outgoing = other, sock
        return StreamPipe(TlsChannel(incoming, outgoing), label, self._config.limits)

    def _drop_halves(self, now: float) -> None:
        with self._lock:
            old = [pair for pair, half in self._halves.items() if now > half[2]]
            dropped = [self._halves.pop(pair) for pair in old]
        for sock, hello, _ in dropped:
            _log.warning("Connection of %s has no second half", hello.task)
            drop(sock)

    def _hand_over(self, pipe: Pipe, peer: PeerInfo) -> None:
        with self._lock:
            closed = self._closed
            self._greeting[threading.current_thread()] = None  # `close` is to leave the pipe alone
        if closed:
            pipe.close()
            return
        try:
            self._on_pipe(pipe, peer)
        except Exception:
            _log.exception("A connection from %s could not be taken", peer.task)
            pipe.close()


def dial(
    endpoint: Endpoint,
    security: Security,
    local: PeerInfo,
    remote_expected: PeerInfo | None = None,
    allow_shared_memory: bool = True,
    timeout: float = 10.0,
    *,
    allow_inproc: bool = True,
    allow_unix: bool = True,
    use_rdma: bool | None = None,
    checksums: bool | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Pipe, PeerInfo]:
    """Connect to a task by the best way there is.

    Args:
        local: who dials.
        remote_expected: the task that should be there; an empty name or incarnation 0 is any.
        allow_shared_memory: False: large buffers go through the stream, too.
        timeout: seconds for all of it.
        use_rdma: in place of TCP if the other side agrees; None: as `HEADRACE_RDMA` says.
        checksums: of each buffer over TCP without TLS; None: as `HEADRACE_CHECKSUMS` says.

    Returns:
        The pipe, not yet started, and who is at the other end.

    Raises:
        UnavailableError: nobody answers (also in time); trying again may help.
        AbortedError: the task was restarted, it has another incarnation.
        UnauthenticatedError: certificates or cluster tokens do not fit.
        PermissionDeniedError: the way to the address is open and the cluster is not secured.
        FailedPreconditionError: another task, another version, or no Headrace server at all.
    """
    whom = (remote_expected.task if remote_expected else "") or "the task"
    place = f"{whom} at {join_address(endpoint.host, endpoint.port)}"
    deadline = time.monotonic() + timeout

    def attempt() -> tuple[Pipe, PeerInfo]:
        hello = hello_of(local, remote_expected)
        listener = _local.get(endpoint) if allow_inproc else None
        if listener is not None:
            ours, theirs = inproc_pair(whom, limits)
            return ours, listener.take(theirs, security, hello)
        if allow_unix and endpoint.unix_name and endpoint.host_id == host_id() != "":
            sock = _dial_unix(endpoint.unix_name, deadline)
            if sock is not None:
                hello.shared_memory = allow_shared_memory and shm.available()
                return _greeted(sock, security, hello, deadline, limits)
        security.check_address(endpoint.host)
        hello.rdma = rdma.wanted(security.encrypted, use_rdma)
        return _dial_tcp(endpoint, security, hello, deadline, limits, checksums)

    try:
        return _twice(attempt)
    except Refused as refused:
        # The codes come from the peer: what is none of ours is still an error.
        kinds: dict[int, Callable[..., errors.OpError]] = {
            errors.ABORTED: errors.AbortedError,
            errors.UNAUTHENTICATED: errors.UnauthenticatedError,
            errors.UNAVAILABLE: errors.UnavailableError,
        }
        kind = kinds.get(refused.code, errors.FailedPreconditionError)
        raise kind(None, None, f"Cannot connect to {place}: {refused.reason}") from None
    except ssl.SSLError as error:
        raise tls.problem(error, place, security) from error
    except OSError as error:
        message = f"Cannot connect to {place}: {error.strerror or error}"
        raise errors.UnavailableError(None, None, message) from error


def _twice(attempt: Callable[[], tuple[Pipe, PeerInfo]]) -> tuple[Pipe, PeerInfo]:
    """Attempt again where a peer of another kind may have been no more than a bit that flipped.

    Raises:
        Refused, OSError: what was found twice; OSError for two things that contradict each other.
    """
    try:
        return attempt()
    except (Refused, ssl.SSLError, ConnectionResetError) as error:
        final = isinstance(error, ssl.SSLCertVerificationError)
        if final or getattr(error, "code", 0) in (errors.ABORTED, errors.UNAUTHENTICATED):
            raise
        first = str(error)
    try:
        return attempt()
    except (Refused, ssl.SSLError) as error:
        if str(error) == first:
            raise
        raise ConnectionAbortedError(f"{first}; then: {error}") from None


def _dial_unix(name: str, deadline: float) -> socket.socket | None:
    """None if nobody listens there, or it is somebody else's socket."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        sock.connect("\0" + name)
        _check_user(sock)
    except (OSError, Refused):
        drop(sock)
        return None
    tune(sock)
    return sock


def _greeted(
    sock: socket.socket,
    security: Security,
    hello: pb.Hello,
    deadline: float,
    limits: Limits,
    host: str = "",
) -> tuple[Pipe, PeerInfo]:
    try:
        said = greet(sock, security, hello, deadline)
        # Frames to the listener go through the one that it has accepted.
        second = give_second(sock) if is_unix(sock) else None
    except BaseException:
        drop(sock)
        raise
    agreed = pb.Hello(
        shared_memory=hello.shared_memory and said.shared_memory,
        checksums=hello.checksums or said.checksums,
    )
    pipe: Pipe = _stream(second or sock, second and sock, said.task, limits, agreed)
    if hello.rdma and said.rdma:
        pipe = _upgraded(pipe, host, limits, deadline)
    return pipe, PeerInfo(said.task, said.incarnation, said.address)


def _dial_tcp(
    endpoint: Endpoint,
    security: Security,
    hello: pb.Hello,
    deadline: float,
    limits: Limits,
    checksums: bool | None,
) -> tuple[Pipe, PeerInfo]:
    context = security.client_context()
    if context is None:
        sock = _connect(endpoint, deadline)
        hello.checksums = _checked(sock, checksums)
        return _greeted(sock, security, hello, deadline, limits, endpoint.host)
    hello.pair = os.urandom(16)
    made: list[ssl.SSLSocket] = []
    try:
        for direction in (pb.TO_LISTENER, pb.FROM_LISTENER):
            hello.direction = direction
            raw = _connect(endpoint, deadline)
            try:
                made.append(context.wrap_socket(raw, server_hostname=endpoint.host))
            except BaseException:
                drop(raw)
                raise
            said = greet(made[-1], security, hello, deadline)
            hello.wanted_task, hello.wanted_incarnation = said.task, said.incarnation
    except BaseException:
        for sock in made:
            drop(sock)
        raise
    outgoing, incoming = made
    pipe: Pipe = StreamPipe(TlsChannel(incoming, outgoing), said.task, limits)
    if hello.rdma and said.rdma:
        pipe = _upgraded(pipe, endpoint.host, limits, deadline)
    return pipe, PeerInfo(said.task, said.incarnation, said.address)


def _upgraded(pipe: Pipe, host: str, limits: Limits, deadline: float) -> Pipe:
    """The RDMA pipe beside a stream. Raises OSError when the two sides do not come together."""
    seconds = max(0.001, deadline - time.monotonic())
    try:
        return rdma.upgrade(pipe, rdma.devices_of(host), limits, seconds)
    except (PipeBroken, errors.UnavailableError) as error:
        raise ConnectionAbortedError(f"RDMA: {error}") from None


def _connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    left = max(0.001, deadline - time.monotonic())
    sock = socket.create_connection((endpoint.host, endpoint.port), left)
    tune(sock)
    return sock


def _stream(
    incoming: socket.socket,
    outgoing: socket.socket | None,
    label: str,
    limits: Limits,
    agreed: pb.Hello,
) -> StreamPipe:
    channel = SocketChannel(incoming, agreed.shared_memory, outgoing)
    memory = shm.SharedMemory(channel.descriptors.popleft) if agreed.shared_memory else None
    return StreamPipe(channel, label, limits, memory, agreed.checksums)


def _checked(sock: socket.socket, asked: bool | None) -> bool:
    """Whether this side wants checksums on a connection."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or isinstance(sock, ssl.SSLSocket):
        return False
    return checksum.wanted_between(asked, sock.getsockname()[0], sock.getpeername()[0])


def _listen_tcp(config: ListenConfig) -> socket.socket:
    found = socket.getaddrinfo(
        config.host or None, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        drop(sock)
        raise
    return sock


def _listen_unix() -> tuple[socket.socket | None, str]:
    """An abstract socket: it has a name, but no file, and is gone with its process."""
    if not host_id():
        return None, ""
    name = f"headrace-{os.getpid()}-{os.urandom(8).hex()}"
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind("\0" + name)
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return sock, name


def _check_user(sock: socket.socket) -> None:
    """Abstract sockets have no permissions, so only processes of the same user are served."""
    user = credentials_of(sock)[1]
    if user not in (os.geteuid(), 0):
        raise Refused(errors.PERMISSION_DENIED, f"user {user} is not {os.geteuid()}", tell=False)
