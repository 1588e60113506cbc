"""Ports that are kept for tasks."""

from __future__ import annotations

import socket

__all__ = ["HeldPorts"]


class HeldPorts:
    """Ports of this machine that nobody else gets, also while their task is being started again.

    A socket that is bound and does not listen keeps a port from those who ask for any free one, and
    from those who ask for this one; a server of ours may still listen there.

    Args:
        host: an address of this machine, or 0.0.0.0.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """One more."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((self._host, 0))
        self._sockets.append(held)
        return int(held.getsockname()[1])

    def close(self) -> None:
        """Let them go."""
        for held in self._sockets:
            held.close()
