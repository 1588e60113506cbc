"""A TCP proxy that flips bits on their way, as a broken switch does."""

from __future__ import annotations

import contextlib
import socket
import threading


class FlippingProxy:
    """Passes connections on to a port of 127.0.0.1.

    Attributes:
        port: where it listens.
        flipped: how many bits it has flipped.
        passed: bytes so far, by direction.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._flips: dict[str, list[tuple[int, int]]] = {"up": [], "down": []}
        self.passed = {"up": 0, "down": 0}
        self.flipped = 0
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._run(self._accept)

    def flip(self, direction: str, after: int, bit: int = 0) -> None:
        """Flip a bit of the byte that comes so many bytes from now; "up" is to the target."""
        with self._lock:
            self._flips[direction].append((self.passed[direction] + after, bit))

    def calm(self) -> None:
        """Flip nothing more."""
        with self._lock:
            for flips in self._flips.values():
                flips.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)
        self._listener.close()

    def _run(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ends = threading.Barrier(2)
            with self._lock:
                self._sockets |= {near, far}
            self._run(self._pass_on, "up", near, far, ends)
            self._run(self._pass_on, "down", far, near, ends)

    def _pass_on(self, direction, source, sink, ends) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                sink.sendall(self._damaged(direction, bytearray(piece)))
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        with contextlib.suppress(threading.BrokenBarrierError):
            ends.wait(20)
        with self._lock:
            self._sockets.discard(source)
        source.close()

    def _damaged(self, direction: str, piece: bytearray) -> bytearray:
        with self._lock:
            start = self.passed[direction]
            self.passed[direction] += len(piece)
            later = []
            for place, bit in self._flips[direction]:
                if place >= start + len(piece):
                    later.append((place, bit))
                    continue
                piece[place - start] ^= 1 << bit
                self.flipped += 1
            self._flips[direction] = later
        return piece
