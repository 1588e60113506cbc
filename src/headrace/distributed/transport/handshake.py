"""Who is there: what two processes say to each other before the first frame.

The dialler says who it is and whom it wants; the listener answers who it is; then each proves
that it knows the cluster's token, over all that both said. Either side may refuse, with a reason.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import time
from typing import Final
from zlib import crc32

from google.protobuf.message import DecodeError

from headrace import errors
from headrace.distributed.protocol import transport_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.transport.base import PeerInfo

__all__ = ["VERSION", "Refused", "answer", "greet", "hello_of"]

VERSION: Final = 3
_MAGIC: Final = b"HEADRACE"
_PREAMBLE: Final = struct.Struct(">8sHI")  # magic, version, bytes of the message
_CHECKSUMS: Final = struct.Struct(">II")  # CRC-32 of the preamble, and of the message
_MOST: Final = 64 << 10
_NONCE_BYTES: Final = 16
_DAMAGED: Final = "the greeting was damaged on the way"
_DIALLER: Final = b"link dialler"
_LISTENER: Final = b"link listener"


class Refused(Exception):
    """The handshake came to nothing. `code`: of headrace.errors; `tell`: the peer may know."""

    def __init__(self, code: int, reason: str, tell: bool = True) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.tell = tell


def hello_of(local: PeerInfo, wanted: PeerInfo | None = None) -> pb.Hello:
    """What a process says of itself, with a fresh nonce."""
    return pb.Hello(
        task=local.task,
        incarnation=local.incarnation,
        address=local.address,
        wanted_task=wanted.task if wanted else "",
        wanted_incarnation=wanted.incarnation if wanted else 0,
        nonce=os.urandom(_NONCE_BYTES),
    )


def greet(sock: socket.socket, security: Security, hello: pb.Hello, deadline: float) -> pb.Hello:
    """The dialler's part; returns what the listener said of itself.

    Raises:
        Refused: by either side.
        OSError: the connection broke, or `deadline` (time.monotonic) passed; ssl.SSLError, too.
    """
    said = hashlib.sha256()
    said.update(_send(sock, pb.Greeting(hello=hello)))
    reply, raw = _receive(sock, deadline)
    said.update(raw)
    proof, _ = _receive(sock, deadline)
    if len(reply.hello.nonce) < _NONCE_BYTES:
        raise _refuse(sock, Refused(errors.INVALID_ARGUMENT, "the greeting has no nonce"))
    if not security.check_seal(proof.proof, _LISTENER, said.digest()):
        raise _refuse(sock, _token_mismatch(security, proof.proof))
    wrong = mismatch(hello, reply.hello)
    if wrong is not None:
        raise _refuse(sock, wrong)
    _send(sock, pb.Greeting(proof=security.seal(_DIALLER, said.digest())))
    last, _ = _receive(sock, deadline)
    if not last.accepted:
        raise Refused(errors.UNAVAILABLE, "the peer did not accept the greeting")
    return reply.hello


def answer(
    sock: socket.socket,
    security: Security,
    local: PeerInfo,
    shared_memory: bool,
    deadline: float,
    rdma: bool = False,
    checksums: bool = False,
) -> pb.Hello:
    """The listener's part; returns what the dialler said, with what was agreed upon.

    Raises:
        Refused: by either side. The dialler was told.
        OSError: the connection broke, or `deadline` (time.monotonic) passed; ssl.SSLError, too.
    """
    try:
        greeting, raw = _receive(sock, deadline)
        said = hashlib.sha256(raw)
        hello = greeting.hello
        if len(hello.nonce) < _NONCE_BYTES:
            raise Refused(errors.INVALID_ARGUMENT, "the greeting has no nonce")
        mine = hello_of(local)
        mine.shared_memory = shared_memory and hello.shared_memory
        mine.rdma = rdma and hello.rdma
        mine.checksums = checksums or hello.checksums
        wrong = mismatch(hello, mine)
        if wrong is not None:
            raise wrong
        said.update(_send(sock, pb.Greeting(hello=mine)))
        _send(sock, pb.Greeting(proof=security.seal(_LISTENER, said.digest())))
        proof, _ = _receive(sock, deadline)
        if not security.check_seal(proof.proof, _DIALLER, said.digest()):
            raise _token_mismatch(security, proof.proof)
    except Refused as refused:
        raise _refuse(sock, refused) from None
    _send(sock, pb.Greeting(accepted=True))
    hello.shared_memory, hello.rdma = mine.shared_memory, mine.rdma
    hello.checksums = mine.checksums
    return hello


def mismatch(wants: pb.Hello, found: pb.Hello) -> Refused | None:
    """Why the listener `found` is not the one that the dialler `wants`, or None."""
    if wants.wanted_task and wants.wanted_task != found.task:
        return Refused(
            errors.FAILED_PRECONDITION,
            f"{wants.wanted_task} was wanted, but {found.task} listens here: do both sides have "
            "the same cluster description?",
        )
    if wants.wanted_incarnation and wants.wanted_incarnation != found.incarnation:
        return Refused(
            errors.ABORTED,
            f"{found.task} was restarted: incarnation {wants.wanted_incarnation:016x} was wanted, "
            f"{found.incarnation:016x} is here",
        )
    return None


def _token_mismatch(security: Security, proof: bytes) -> Refused:
    if not security.is_like(proof):
        if security.token is None:
            reason = "the peer has a cluster token, this task has none"
        else:
            reason = "the peer has no cluster token, this task does"
        return Refused(errors.UNAUTHENTICATED, reason)
    if security.token is None:
        return Refused(errors.UNAVAILABLE, _DAMAGED)
    return Refused(errors.UNAUTHENTICATED, "the two sides have different cluster tokens")


def _refuse(sock: socket.socket, refused: Refused) -> Refused:
    """Tells the peer, if it will listen."""
    if refused.tell:
        try:
            told = pb.Refusal(code=refused.code, reason=refused.reason)
            _send(sock, pb.Greeting(refusal=told))
        except OSError:
            pass
    return refused


def _send(sock: socket.socket, greeting: pb.Greeting) -> bytes:
    raw = greeting.SerializeToString()
    preamble = _PREAMBLE.pack(_MAGIC, VERSION, len(raw))
    sock.sendall(preamble + _CHECKSUMS.pack(crc32(preamble), crc32(raw)) + raw)
    return raw


def _receive(sock: socket.socket, deadline: float) -> tuple[pb.Greeting, bytes]:
    preamble = _exactly(sock, _PREAMBLE.size, deadline)
    magic, version, size = _PREAMBLE.unpack(preamble)
    if magic != _MAGIC:
        raise Refused(errors.FAILED_PRECONDITION, _foreign(magic), tell=False)
    if version != VERSION:
        raise Refused(
            errors.FAILED_PRECONDITION,
            f"the peer speaks version {version} of the transport protocol, this process version "
            f"{VERSION}: all tasks and clients need the same release",
        )
    if size > _MOST:
        raise Refused(errors.INVALID_ARGUMENT, f"a greeting of {size} bytes (most: {_MOST})")
    first, second = _CHECKSUMS.unpack(_exactly(sock, _CHECKSUMS.size, deadline))
    if crc32(preamble) != first:  # else it would be waited for bytes that never come
        raise Refused(errors.UNAVAILABLE, _DAMAGED)
    raw = _exactly(sock, size, deadline)
    if crc32(raw) != second:
        raise Refused(errors.UNAVAILABLE, _DAMAGED)
    greeting = pb.Greeting()
    try:
        greeting.ParseFromString(raw)
    except DecodeError:
        raise Refused(errors.INVALID_ARGUMENT, "a greeting that cannot be read") from None
    if greeting.HasField("refusal"):
        raise Refused(greeting.refusal.code, greeting.refusal.reason, tell=False)
    return greeting, raw


def _foreign(magic: bytes) -> str:
    if magic[:1] == b"\x16":
        return "the peer speaks TLS, this task does not"
    if magic.startswith((b"GET ", b"POST ", b"HEAD ", b"PRI ", b"HTTP")):
        return "the peer speaks HTTP; the port is one for tensors"
    return f"the peer speaks something else (it began with {magic!r})"


def _exactly(sock: socket.socket, count: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the peer did not finish its greeting in time")
        sock.settimeout(left)
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionResetError("the peer closed the connection in the greeting")
        data += piece
    return bytes(data)
