"""Sockets as pipes need them: a write that never waits, one that does, and reads into memory."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import socket
import ssl
import struct
import sys
import termios
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Protocol

__all__ = [
    "Channel",
    "SocketChannel",
    "TlsChannel",
    "credentials_of",
    "drop",
    "give_second",
    "is_unix",
    "shut",
    "take_second",
    "tune",
]

_MOST_PARTS: Final = 512  # below the systems' limit for one call (1,024)
_CHUNK: Final = 4 << 20
_BUFFER: Final = 4 << 20
_DONT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
_MOST_DESCRIPTORS: Final = 253  # of one message, by Linux
_MOST_UNCLAIMED: Final = 2048
# Larger than net.core.*mem_max, where the process may.
_FORCE: Final = {socket.SO_SNDBUF: 32, socket.SO_RCVBUF: 33} if sys.platform == "linux" else {}


class Channel(Protocol):
    """Two streams of bytes, one each way. One thread reads, one thread at a time writes."""

    def receive(self, view: memoryview, count: int) -> int:
        """Wait for bytes; how many were put into `view` (at most `count`), 0 at the end."""

    def write(self, parts: Sequence[Any], descriptors: Sequence[int], wait: bool) -> int:
        """Write what goes without waiting, or (`wait`) at least some of it: how many bytes.

        File descriptors travel with the first byte.
        """

    def unread(self) -> int:
        """Bytes that have arrived and wait for `receive`."""

    def end_writing(self) -> None:
        """Tell the peer that nothing more comes; what it has sent can still be read."""

    def shutdown(self) -> None:
        """End both directions: whoever waits in another call here returns from it."""

    def close(self) -> None:
        """Free the sockets; nobody may be in another call here."""


def drop(sock: socket.socket) -> None:
    """Close without complaint."""
    with contextlib.suppress(OSError):
        sock.close()


_LOST: Final = "file descriptors were lost: the limit of open files (ulimit -n) is low"
_SO_PEERCRED: Final = 17
_SECOND: Final = b"2"  # what a descriptor of a second connection travels with
# As a plain number: with the flag itself the test would take longer than the system call.
_TRUNCATED: Final = int(socket.MSG_CTRUNC)


def tune(sock: socket.socket) -> None:
    """Large buffers, and small frames leave at once."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        try:
            sock.setsockopt(socket.SOL_SOCKET, _FORCE[option], _BUFFER)
        except (KeyError, OSError):
            # A small fixed buffer would be worse than what TCP finds by itself.
            if sock.family not in (socket.AF_INET, socket.AF_INET6):
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def shut(sock: socket.socket, ways: int = socket.SHUT_RDWR) -> None:
    """End one direction or both without complaint; whoever waits there returns."""
    # Not SSLSocket.shutdown: that turns the object into a plain socket under its reader.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, ways)


def _unread(sock: socket.socket) -> int:
    count = array.array("i", [0])
    try:
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, count)
    except (OSError, ValueError):  # closed meanwhile
        return 0
    return count[0]


def is_unix(sock: socket.socket) -> bool:
    """Whether a socket is one of this host, which can carry file descriptors."""
    return sock.family == getattr(socket, "AF_UNIX", None)


def credentials_of(sock: socket.socket) -> tuple[int, int, int]:
    """The process, user and group at the other end of a unix socket."""
    raw = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, 12)
    pid, uid, gid = struct.unpack("3i", raw)
    return pid, uid, gid


def give_second(sock: socket.socket) -> socket.socket:
    """Give the peer of a unix socket another connection; returns this side's end of it."""
    mine, theirs = socket.socketpair()
    try:
        with theirs:
            socket.send_fds(sock, [_SECOND], [theirs.fileno()])
        tune(mine)
    except OSError:
        drop(mine)
        raise
    return mine


def take_second(sock: socket.socket) -> socket.socket:
    """The end of the connection that the peer gives.

    Raises:
        OSError: it gives none, or not within the time-out of the socket.
    """
    said, found, flags, _ = socket.recv_fds(sock, len(_SECOND), 1)
    if said != _SECOND or len(found) != 1 or flags & _TRUNCATED:
        for descriptor in found:
            os.close(descriptor)
        if flags & _TRUNCATED:
            raise OSError(_LOST)
        raise ConnectionResetError("the peer gave no second connection")
    try:
        second = socket.socket(fileno=found[0])
    except OSError:
        os.close(found[0])
        raise
    # As Python makes its own sockets: a program that is started later must not keep it open.
    second.set_inheritable(False)
    tune(second)
    return second


class SocketChannel:
    """A connected TCP or unix socket, or two unix sockets; these may carry file descriptors.

    A unix socket wakes whoever waits to read from it also when the peer has taken what was written
    to it. With one for each way the reader sleeps until there is something to read.

    Args:
        sock: what is read, and written where there is no other.
        descriptors: whether file descriptors may come.
        outgoing: what is written.
    """

    def __init__(
        self,
        sock: socket.socket,
        descriptors: bool = False,
        outgoing: socket.socket | None = None,
    ) -> None:
        self._sock = sock
        self._out = sock if outgoing is None else outgoing
        for one in self._both:
            one.settimeout(None)
        self.descriptors: deque[int] = deque()  # received, not yet claimed
        if descriptors:
            self._room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
            self.receive = self._receive_with_descriptors  # type: ignore[method-assign]

    @property
    def _both(self) -> set[socket.socket]:
        return {self._sock, self._out}

    def receive(self, view: memoryview, count: int) -> int:
        return self._sock.recv_into(view, count)

    def _receive_with_descriptors(self, view: memoryview, count: int) -> int:
        got, ancillary, flags, _ = self._sock.recvmsg_into([view[:count]], self._room)
        if ancillary:
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    whole = len(data) - len(data) % 4
                    self.descriptors.extend(array.array("i", data[:whole]))
            if len(self.descriptors) > _MOST_UNCLAIMED:
                raise OSError("more file descriptors came than frames speak of")
        if flags & _TRUNCATED:
            raise OSError(_LOST)
        return got

    def write(self, parts: Sequence[Any], descriptors: Sequence[int], wait: bool) -> int:
        ancillary = []
        if descriptors:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        if wait:
            return self._out.sendmsg(_first(parts), ancillary)
        try:
            return self._out.sendmsg(parts[:_MOST_PARTS], ancillary, _DONT_WAIT)
        except BlockingIOError:
            return 0

    def unread(self) -> int:
        return _unread(self._sock)

    def end_writing(self) -> None:
        shut(self._out, socket.SHUT_WR)

    def shutdown(self) -> None:
        for sock in self._both:
            shut(sock)

    def close(self) -> None:
        for sock in self._both:
            drop(sock)
        while self.descriptors:
            os.close(self.descriptors.popleft())


class TlsChannel:
    """Two TLS connections, one each way: an SSL object must not be used by two threads at once."""

    def __init__(self, incoming: ssl.SSLSocket, outgoing: ssl.SSLSocket) -> None:
        incoming.settimeout(None)
        outgoing.setblocking(False)
        self._in = incoming
        self._out = outgoing

    def receive(self, view: memoryview, count: int) -> int:
        return self._in.recv_into(view, count)

    def write(self, parts: Sequence[Any], descriptors: Sequence[int], wait: bool) -> int:
        done = 0
        for part in parts:
            view = memoryview(part)
            while view:
                try:
                    sent = self._out.send(view[:_CHUNK])
                except ssl.SSLWantWriteError:
                    if done or not wait:
                        return done
                    poll = select.poll()
                    poll.register(self._out, select.POLLOUT)
                    poll.poll()
                    continue
                done += sent
                view = view[sent:]
        return done

    def unread(self) -> int:
        return _unread(self._in)

    def end_writing(self) -> None:
        shut(self._out)

    def shutdown(self) -> None:
        shut(self._in)
        shut(self._out)

    def close(self) -> None:
        drop(self._in)
        drop(self._out)


def _first(parts: Sequence[Any]) -> list[Any]:
    """The first parts, about a chunk of bytes: progress of a long write can be seen."""
    chosen: list[Any] = []
    room = _CHUNK
    for part in parts[:_MOST_PARTS]:
        view = memoryview(part)
        chosen.append(view[:room])
        room -= view.nbytes
        if room <= 0:
            break
    return chosen
