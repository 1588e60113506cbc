"""RDMA through UCX: who asks for it, and how two tasks come to a pipe.

    offer = Offer(devices_of(host))        # both sides, each tells the other `offer.address`
    pipe = offer.connect(address_of_peer, carrier)

or, with a pipe of another kind between the two already, `upgrade(pipe, devices_of(host))` on both
sides. That pipe stays as the carrier: its end is how a dead peer shows at once, whatever the
fabric.

What UCX sends is neither encrypted nor signed. The addresses carry secrets and travel over the
authenticated connection, which keeps strangers' messages out of a pipe, but whoever can read the
fabric reads the tensors.
"""

from __future__ import annotations

import os
import secrets
import struct
import threading
from collections.abc import Mapping
from typing import Final

from headrace import errors
from headrace.distributed.security.credentials import is_loopback
from headrace.distributed.transport import ucx_ffi
from headrace.distributed.transport.base import DEFAULT_LIMITS, Buffer, Limits, Pipe, PipeBroken
from headrace.distributed.transport.ucx_pipe import RdmaPipe

__all__ = ["VARIABLE", "Offer", "RdmaPipe", "available", "devices_of", "upgrade", "wanted"]

VARIABLE: Final = "HEADRACE_RDMA"

_ADDRESS: Final = struct.Struct("<4sHQ")  # magic, version, secret; the worker's address follows
_MAGIC: Final = b"HRrd"
_VERSION: Final = 1
_HELLO: Final = b"headrace-rdma:"
_MAX_ADDRESS: Final = 64 << 10


def available() -> bool:
    """Whether UCX can be loaded here."""
    return ucx_ffi.available()


def wanted(
    encrypted: bool, asked: bool | None = None, environ: Mapping[str, str] | None = None
) -> bool:
    """Whether RDMA is to be used: `HEADRACE_RDMA` is "1", or "trusted" where the cluster uses TLS.

    Args:
        asked: a choice that the program made; it wins, but "trusted" must be said all the same.

    Raises:
        PermissionDeniedError: "1" in a cluster that encrypts: what UCX sends is not encrypted.
        InvalidArgumentError: another value.
        FailedPreconditionError: it does, but UCX cannot be loaded.
    """
    value = (os.environ if environ is None else environ).get(VARIABLE, "")
    if asked is False or (asked is None and value in ("", "0")):
        return False
    if value not in ("", "0", "1", "trusted"):
        message = f'{VARIABLE} can be "0", "1" or "trusted", got {value!r}'
        raise errors.InvalidArgumentError(None, None, message)
    if encrypted and value != "trusted":
        raise errors.PermissionDeniedError(
            None,
            None,
            "RDMA was asked for, but this cluster uses TLS and RDMA sends tensors in clear. Set "
            f"{VARIABLE}=trusted if nobody else can read the fabric, or {VARIABLE}=0.",
        )
    ucx_ffi.library()
    return True


def devices_of(host: str) -> str:
    """UCX's network devices for a task that listens on `host`: on loopback only "lo"."""
    return "lo" if is_loopback(host) else ""


class Offer:
    """This side of a pipe that is not connected yet: tell the peer `address`, learn its own."""

    def __init__(self, devices: str = "", limits: Limits = DEFAULT_LIMITS) -> None:
        """`devices`: see `devices_of`.

        Raises:
            FailedPreconditionError: UCX is not installed.
            UnavailableError: UCX does not start.
        """
        try:
            self._worker: ucx_ffi.UcxWorker | None = ucx_ffi.UcxWorker(ucx_ffi.context(devices))
        except ucx_ffi.UcxError as error:
            raise errors.UnavailableError(None, None, str(error)) from None
        self._limits = limits
        self._secret = secrets.randbits(63)
        self.address = _ADDRESS.pack(_MAGIC, _VERSION, self._secret) + self._worker.address

    def connect(self, address: bytes, carrier: Pipe | None = None) -> RdmaPipe:
        """The pipe to whoever made `address`; the offer is used up.

        Args:
            carrier: the connection over which the addresses were told, started and quiet. The pipe
                owns it from here on, and takes its end for the end of the peer.

        Raises:
            PipeBroken: the address is malformed or cannot be reached.
        """
        worker, self._worker = self._worker, None
        if worker is None:
            raise ValueError("An offer can be connected once")
        try:
            if not _ADDRESS.size < len(address) <= _MAX_ADDRESS:
                raise PipeBroken(f"an RDMA address of {len(address)} bytes")
            magic, version, secret = _ADDRESS.unpack_from(address)
            if (magic, version) != (_MAGIC, _VERSION):
                raise PipeBroken(f"an RDMA address of version {magic!r} {version}")
            pipe = RdmaPipe(worker, (self._secret, secret), self._limits, carrier)
            worker.connect(address[_ADDRESS.size :], pipe.endpoint_failed)
        except ucx_ffi.UcxError as error:
            worker.destroy()
            raise PipeBroken(str(error)) from None
        except PipeBroken:
            worker.destroy()
            raise
        return pipe

    def close(self) -> None:
        """Free an offer that was not used."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.destroy()


def upgrade(
    carrier: Pipe, devices: str = "", limits: Limits = DEFAULT_LIMITS, timeout: float = 10.0
) -> RdmaPipe:
    """The RDMA pipe between the two ends of `carrier`, a pipe that was not started.

    Both sides call this, each with its own end. The carrier belongs to the new pipe and is closed
    with it; if this raises it is closed too.

    Raises:
        FailedPreconditionError: UCX is not installed.
        UnavailableError: UCX does not start.
        PipeBroken: the peer left, said nothing for `timeout` seconds, or cannot be reached.
    """
    meeting = _Meeting()
    offer: Offer | None = None
    try:
        carrier.start(meeting.on_frame, meeting.on_lost)
        offer = Offer(devices, limits)
        carrier.send(_HELLO + offer.address)
        pipe = offer.connect(meeting.address(timeout), carrier)
    except (PipeBroken, errors.OpError):
        if offer is not None:
            offer.close()
        carrier.close()
        raise
    meeting.hand_over(pipe)
    return pipe


class _Meeting:
    """What the carrier says: first the peer's address, then only that it ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._address: bytes | None = None
        self._lost = ""
        self._pipe: RdmaPipe | None = None

    def on_frame(self, head: bytes, buffers: list[Buffer]) -> None:
        with self._changed:
            if self._address is not None or not head.startswith(_HELLO) or buffers:
                raise PipeBroken("the peer sent something else than its RDMA address")
            self._address = head[len(_HELLO) :]
            self._changed.notify_all()

    def on_lost(self, reason: str) -> None:
        with self._changed:
            self._lost = reason
            pipe = self._pipe
            self._changed.notify_all()
        if pipe is not None:
            pipe.carrier_lost(reason)

    def address(self, timeout: float) -> bytes:
        """Wait for the peer's address."""
        with self._changed:
            self._changed.wait_for(lambda: self._address is not None or self._lost, timeout)
            if self._address is None:
                reason = self._lost or f"the peer sent no RDMA address within {timeout:g} s"
                raise PipeBroken(reason)
            return self._address

    def hand_over(self, pipe: RdmaPipe) -> None:
        """From here on the carrier's end is the pipe's."""
        with self._changed:
            self._pipe = pipe
            lost = self._lost
        if lost:
            pipe.carrier_lost(lost)
