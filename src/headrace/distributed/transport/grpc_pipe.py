"""Pipes inside gRPC, for tasks that can reach nothing of each other but the gRPC port.

One call of the streaming method `Exchange` is one pipe: messages of bytes both ways, which gRPC
passes through as they are. Together they are one stream of bytes: a frame may fill several
messages and several small frames share one. An empty message says goodbye.

    server.add_generic_rpc_handlers((exchange_handler(on_pipe, security, local),))   # one side
    pipe, peer = connect(channel, security, hello, deadline)                         # the other

gRPC's flow control stops a sender whose receiver does not read; what is not yet with gRPC counts
as queued. Encryption is the channel's matter.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import grpc

from headrace.distributed.protocol import transport_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport.base import (
    DEFAULT_LIMITS,
    Buffer,
    Limits,
    OnFrame,
    OnPipeLost,
    PeerInfo,
    Pipe,
    PipeBroken,
    nbytes_of,
)
from headrace.distributed.transport.checksum import crc32c, wanted_between
from headrace.distributed.transport.frame_body import check_announced, encode_body, open_body
from headrace.distributed.transport.handshake import Refused, answer, greet

__all__ = ["MESSAGE_OPTIONS", "METHOD", "GrpcPipe", "connect", "exchange_handler"]

_log = logging.getLogger(__name__)
_Said = TypeVar("_Said")

_SERVICE: Final = "headrace.DataPlane"
METHOD: Final = f"/{_SERVICE}/Exchange"
_MESSAGE: Final = 2 << 20
_MAX_MESSAGE: Final = 4 << 20
# For channels and servers that carry exchanges.
MESSAGE_OPTIONS: Final = (
    ("grpc.max_send_message_length", _MAX_MESSAGE),
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
)
# mark, bytes of the head, number of buffers, bytes of the body; a CRC32C of that follows.
_PREFIX: Final = struct.Struct("<4sIIQ")
_MARK: Final = b"HRfr"
_FRAME_COST: Final = 64  # counted for each frame, so that empty ones fill a queue too
_GOODBYE: Final = b""
_GOODBYE_SECONDS: Final = 0.3


class _Outbox:
    """Bytes on their way to gRPC, taken from it one message at a time."""

    def __init__(self, limits: Limits) -> None:
        self.changed = threading.Condition()
        self._limits = limits
        self._messages: deque[bytes] = deque()  # of the handshake, whole
        self._pieces: deque[Any] = deque()
        self._offset = 0  # into the first piece
        self._offered = 0
        self._taken = 0
        self._written = 0  # up to here gRPC took it over
        self.bytes_out = 0
        self.reason = ""  # why nothing may be added any more
        self._ending = False  # what is queued is dropped, the goodbye goes out

    def add_message(self, message: bytes) -> None:
        with self.changed:
            if self.reason:
                raise PipeBroken(self.reason)
            self._messages.append(message)
            self.changed.notify_all()

    def add(self, pieces: list[Any], block: bool) -> None:
        nbytes = sum(nbytes_of(piece) for piece in pieces) + _FRAME_COST
        with self.changed:
            if block:
                self.changed.wait_for(self._has_room)
            if self.reason:
                raise PipeBroken(self.reason)
            self._pieces.extend(pieces)
            self._pieces.append(None)  # the frame's end, which bears its cost
            self._offered += nbytes
            self.changed.notify_all()

    def take(self) -> bytes | None:
        """The next message, waiting for it; None is the end. The one before is then written."""
        with self.changed:
            self._written = self._taken
            self.changed.notify_all()
            self.changed.wait_for(lambda: self._messages or self._pieces or self.reason)
            if self._messages:
                return self._messages.popleft()
            if self.reason:
                return self._last()
            parts = self._gather()
        message = parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)
        self.bytes_out += len(message)
        return message

    def _last(self) -> bytes | None:
        if self._ending:
            self._ending = False
            return _GOODBYE
        return None

    def _gather(self) -> list[Any]:
        parts: list[Any] = []
        room = _MESSAGE
        while self._pieces and room:
            piece = self._pieces[0]
            if piece is None:
                self._taken += _FRAME_COST
                self._pieces.popleft()
                continue
            left = nbytes_of(piece) - self._offset
            nbytes = min(left, room)
            whole = nbytes == left and self._offset == 0
            parts.append(piece if whole else memoryview(piece)[self._offset :][:nbytes])
            self._taken += nbytes
            room -= nbytes
            if nbytes == left:
                self._pieces.popleft()
                self._offset = 0
            else:
                self._offset += nbytes
        return parts

    def stop(self, reason: str, goodbye: bool) -> None:
        """Drop what is queued; the first reason stays."""
        with self.changed:
            if not self.reason:
                self.reason = reason
                self._ending = goodbye
            self._pieces.clear()
            self.changed.notify_all()

    def _has_room(self) -> bool:
        return bool(self.reason) or self._offered - self._written <= self._limits.high_water

    @property
    def queued(self) -> int:
        return 0 if self.reason else self._offered - self._written

    def wait_room(self) -> None:
        with self.changed:
            self.changed.wait_for(self._has_room)
            if self.reason:
                raise PipeBroken(self.reason)

    def flush(self, timeout: float | None) -> bool:
        with self.changed:
            target = self._offered
            self.changed.wait_for(lambda: self._written >= target or self.reason, timeout)
            if self._written >= target:
                return True
            if self.reason:
                raise PipeBroken(self.reason)
            return False


def _prefix(head_bytes: int, count: int, body_bytes: int) -> bytes:
    described = _PREFIX.pack(_MARK, head_bytes, count, body_bytes)
    return described + crc32c(described).to_bytes(4, "little")


class _Assembler:
    """Puts frames together from the stream of bytes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._frames: deque[tuple[bytes, list[Buffer]]] = deque()
        self._rooms = self._parse()
        self._room = next(self._rooms)
        self._filled = 0

    def feed(self, message: bytes) -> Iterator[tuple[bytes, list[Buffer]]]:
        """The frames that end in this message.

        Raises:
            PipeBroken: the stream is malformed or a frame is over a limit.
        """
        view = memoryview(message)
        while view:
            nbytes = min(len(self._room) - self._filled, len(view))
            self._room[self._filled : self._filled + nbytes] = view[:nbytes]
            view = view[nbytes:]
            self._filled += nbytes
            while self._filled == len(self._room):
                self._room, self._filled = next(self._rooms), 0
                while self._frames:
                    yield self._frames.popleft()

    def _parse(self) -> Iterator[memoryview]:
        """Yields the memory that the next bytes belong into; goes on when it is full."""
        prefix = bytearray(_PREFIX.size + 4)
        while True:
            yield memoryview(prefix)
            mark, head_bytes, count, body_bytes = _PREFIX.unpack_from(prefix)
            if mark != _MARK:
                raise PipeBroken(f"a malformed frame: it begins with {bytes(prefix)!r}")
            checksum = int.from_bytes(prefix[_PREFIX.size :], "little")
            if crc32c(bytes(prefix[: _PREFIX.size])) != checksum:
                raise PipeBroken("a malformed frame: wrong checksum of its beginning")
            check_announced(head_bytes, count, body_bytes, self._limits)
            body = memoryview(bytearray(body_bytes))
            yield body
            opened = open_body(body, head_bytes, count, self._limits)
            for view, _ in opened.rooms:
                yield view
            opened.check()
            self._frames.append((opened.head, opened.buffers))
            del opened, body


@dataclass(frozen=True)
class _Call:
    """One call of `Exchange`, seen from either side.

    Attributes:
        messages: what arrives; iterating ends or raises RpcError when the call is over.
        hang_up: ends the call at once; may be called again.
        over: set when the call has ended.
        writer: the thread that moves the outbox, where it is ours.
        release: frees what carries the call.
    """

    messages: Iterator[bytes]
    hang_up: Callable[[], Any]
    over: threading.Event
    writer: threading.Thread | None
    release: Callable[[], None]


class GrpcPipe(Pipe):
    """A pipe in one call of `Exchange`; made by `connect` and `exchange_handler`."""

    kind = "grpc"

    def __init__(self, call: _Call, outbox: _Outbox, limits: Limits, checked: bool) -> None:
        self._call = call
        self._checked = checked
        self._outbox = outbox
        self._limits = limits
        self._state = threading.Lock()
        self._reader: threading.Thread | None = None
        self._closed = False
        self._failure = ""
        self._bytes_in = 0

    def start(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        with self._state:
            if self._closed:
                raise PipeBroken("the pipe is closed")
            if self._reader is not None:
                raise RuntimeError("A pipe is started once")
            self._reader = threading.Thread(
                target=self._read_loop,
                args=(on_frame, on_lost),
                name="headrace-grpc-read",
                daemon=True,
            )
            self._reader.start()

    def send(self, head: bytes, buffers: Sequence[Any] = (), block: bool = True) -> None:
        body, count, large = encode_body(head, buffers, self._limits, self._checked)
        self._outbox.add([_prefix(len(head), count, len(body)) + body, *large], block)

    def close(self) -> None:
        with self._state:
            first, self._closed = not self._closed, True
            reader, writer = self._reader, self._call.writer
        if first:
            # The goodbye, and what gRPC has taken before it, get a moment to reach the peer, which
            # then ends the call: hanging up at once would throw them away there.
            self._outbox.stop("the pipe is closed", goodbye=True)
            if reader is not threading.current_thread():
                self._call.over.wait(_GOODBYE_SECONDS)
            self._call.hang_up()
            self._call.release()
        for thread in (reader, writer):
            if thread is not None and thread is not threading.current_thread():
                thread.join()

    def fail(self, reason: str) -> None:
        with self._state:
            self._failure = self._failure or reason
        self._outbox.stop(reason, goodbye=False)
        self._call.hang_up()

    @property
    def progress(self) -> tuple[int, int]:
        return self._bytes_in, self._outbox.bytes_out

    @property
    def queued(self) -> int:
        return self._outbox.queued

    def wait_room(self) -> None:
        self._outbox.wait_room()

    def flush(self, timeout: float | None = None) -> bool:
        return self._outbox.flush(timeout)

    def _read_loop(self, on_frame: OnFrame, on_lost: OnPipeLost) -> None:
        reason = "the gRPC call ended without a goodbye"
        try:
            self._deliver(on_frame)
        except PipeBroken as error:
            reason = error.reason
        except grpc.RpcError as error:
            reason = _describe(error)
        except Exception as error:
            reason = f"a frame could not be handled: {type(error).__name__}: {error}"
        self._outbox.stop(reason, goodbye=False)
        with self._state:
            closed, reason = self._closed, self._failure or reason
        if not closed:
            self._call.hang_up()
            on_lost(reason)

    def _deliver(self, on_frame: OnFrame) -> None:
        assembler = _Assembler(self._limits)
        for message in self._call.messages:
            if message == _GOODBYE:
                raise PipeBroken("the peer closed the pipe")
            self._bytes_in += len(message)
            for head, buffers in assembler.feed(message):
                if self._closed or self._failure:
                    return
                on_frame(head, buffers)
                del buffers


def _describe(error: grpc.RpcError) -> str:
    if not isinstance(error, grpc.Call):  # the server's side knows no more
        return "the gRPC call was cancelled, or its connection broke"
    return f"the gRPC call failed with {error.code().name}: {error.details()}"


def _host_of(peer: str) -> str:
    """The address in gRPC's name of a peer.

    >>> _host_of("ipv4:10.0.0.1:5000"), _host_of("ipv6:%5B::1%5D:5000")
    ('10.0.0.1', '[::1]')
    """
    return unquote(peer).partition(":")[2].rpartition(":")[0]


def _nothing() -> None:
    return None


class _Words:
    """The part of a socket that a handshake uses, over the messages of a call."""

    def __init__(self, outbox: _Outbox, messages: Iterator[bytes]) -> None:
        self._outbox = outbox
        self._messages = messages
        self._heard = b""

    def settimeout(self, seconds: float | None) -> None:
        """A timer over the whole handshake ends the call instead."""

    def sendall(self, data: bytes) -> None:
        with suppress(PipeBroken):  # `recv` knows better why
            self._outbox.add_message(data)

    def recv(self, count: int) -> bytes:
        if not self._heard:
            try:
                self._heard = next(self._messages, b"")
            except grpc.RpcError as error:
                raise ConnectionResetError(_describe(error)) from None
        piece, self._heard = self._heard[:count], self._heard[count:]
        return piece


def _shake_hands(
    talk: Callable[[_Words], _Said],
    outbox: _Outbox,
    messages: Iterator[bytes],
    hang_up: Callable[[], Any],
    seconds: float,
) -> _Said:
    """Run a handshake, for so long at most. Raises OSError and what `talk` raises."""
    late = threading.Event()

    def too_late() -> None:
        late.set()
        hang_up()

    timer = threading.Timer(max(0.0, seconds), too_late)
    timer.daemon = True
    timer.start()
    try:
        return talk(_Words(outbox, messages))
    except OSError:
        if late.is_set():
            raise TimeoutError("the peer did not finish its greeting in time") from None
        raise
    finally:
        timer.cancel()


def _hear_out(words: _Words) -> None:
    while words.recv(_MESSAGE):
        pass


def connect(
    channel: grpc.Channel,
    security: Security,
    hello: pb.Hello,
    deadline: float,
    limits: Limits = DEFAULT_LIMITS,
    owns_channel: bool = False,
    metadata: Sequence[tuple[str, bytes]] = (),
) -> tuple[GrpcPipe, PeerInfo]:
    """A pipe to the server at the other end of a channel, and who that is.

    Args:
        channel: to a server with an `exchange_handler`, made with `MESSAGE_OPTIONS`.
        hello: who dials, and whom; see `handshake.hello_of`.
        deadline: time.monotonic() by which the connection and the handshake are done.
        owns_channel: the pipe closes the channel with itself, and so does a failure here.
        metadata: of the call; what a server wants to see before it listens.

    Raises:
        Refused: by either side.
        OSError: the server cannot be reached, has no such method, or stayed silent.
    """
    outbox = _Outbox(limits)
    exchange = channel.stream_stream(METHOD, None, None)  # bytes in, bytes out
    call: Any = exchange(iter(outbox.take, None), metadata=tuple(metadata))
    release = channel.close if owns_channel else _nothing
    over = threading.Event()

    def ended() -> None:
        outbox.stop("the gRPC call is over", goodbye=False)
        over.set()

    if not call.add_callback(ended):
        ended()

    def talk(words: Any) -> pb.Hello:  # not a socket, but all that a handshake uses of one
        return greet(words, security, hello, deadline)

    try:
        seconds = deadline - time.monotonic()
        said = _shake_hands(talk, outbox, call, call.cancel, seconds)
    except (OSError, Refused) as error:
        # What we say of it goes out before the end of the requests; cancelling would overtake it.
        outbox.stop(str(error), goodbye=True)
        with suppress(OSError):
            _shake_hands(_hear_out, outbox, call, call.cancel, _GOODBYE_SECONDS)
        call.cancel()
        release()
        raise
    checked = not security.encrypted and (said.checksums or hello.checksums)
    pipe = GrpcPipe(_Call(call, call.cancel, over, None, release), outbox, limits, checked)
    return pipe, PeerInfo(said.task, said.incarnation, said.address)


def exchange_handler(
    on_pipe: Callable[[Pipe, PeerInfo], None],
    security: Security,
    local: Callable[[], PeerInfo],
    limits: Limits = DEFAULT_LIMITS,
    greeting_seconds: float = 10.0,
) -> grpc.GenericRpcHandler[bytes, bytes]:
    """What a server registers to accept pipes; they take none of the server's own threads.

    Args:
        on_pipe: called with each new pipe, not yet started, in a thread of its own. The pipe
            belongs to the callee; an exception closes it.
        local: who answers; asked when a pipe comes.
        greeting_seconds: a client that has not introduced itself by then is cut off.
    """
    return _ExchangeHandler(_Acceptor(on_pipe, security, local, limits, greeting_seconds))


@dataclass(frozen=True)
class _Acceptor:
    """Makes pipes of the calls that arrive."""

    on_pipe: Callable[[Pipe, PeerInfo], None]
    security: Security
    local: Callable[[], PeerInfo]
    limits: Limits
    greeting_seconds: float

    def accept(
        self,
        messages: Iterator[bytes],
        context: grpc.ServicerContext,
        respond: Callable[[bytes | None], None],
    ) -> None:
        """Called by gRPC for a new call; `respond` waits until its message is with gRPC."""
        outbox = _Outbox(self.limits)
        over = threading.Event()

        def ended() -> None:
            outbox.stop("the gRPC call is over", goodbye=False)
            over.set()

        def write() -> None:
            for message in iter(outbox.take, None):
                respond(message)
            respond(None)

        if not context.add_callback(ended):
            return
        writer = threading.Thread(target=write, name="headrace-grpc-write", daemon=True)
        writer.start()
        call = _Call(messages, context.cancel, over, writer, _nothing)
        threading.Thread(
            target=self._welcome,
            args=(call, outbox, context),
            name="headrace-grpc-greet",
            daemon=True,
        ).start()

    def _welcome(self, call: _Call, outbox: _Outbox, context: grpc.ServicerContext) -> None:
        deadline = time.monotonic() + self.greeting_seconds
        checked = wanted_between(None, _host_of(context.peer()))

        def talk(words: Any) -> pb.Hello:
            return answer(words, self.security, self.local(), False, deadline, checksums=checked)

        try:
            said = _shake_hands(talk, outbox, call.messages, call.hang_up, self.greeting_seconds)
        except (OSError, Refused) as error:
            _log.warning("Connection from %s over gRPC refused: %s", context.peer(), error)
            outbox.stop(str(error), goodbye=True)
            return
        checked = not self.security.encrypted and said.checksums
        pipe = GrpcPipe(call, outbox, self.limits, checked)
        try:
            self.on_pipe(pipe, PeerInfo(said.task, said.incarnation, said.address))
        except Exception:
            _log.exception("A connection from %s could not be taken", said.task)
            pipe.close()


class _ExchangeHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, acceptor: _Acceptor) -> None:
        def exchange(
            messages: Iterator[bytes],
            context: grpc.ServicerContext,
            respond: Callable[[bytes | None], None],
        ) -> None:
            acceptor.accept(messages, context, respond)

        # With this mark gRPC hands over a function that sends, instead of iterating over what we
        # return in one of the server's threads for as long as the pipe lives.
        exchange.experimental_non_blocking = True  # type: ignore[attr-defined]
        self._method = grpc.stream_stream_rpc_method_handler(exchange)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The method, if that is what is called."""
        return self._method if handler_call_details.method == METHOD else None
