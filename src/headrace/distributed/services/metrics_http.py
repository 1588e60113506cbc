"""A small HTTP server for a page that strangers may ask for, beside work that must not suffer.

Whoever connects gets a thread and a descriptor: there are only so many, each for so many seconds.
"""

from __future__ import annotations

import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

__all__ = ["PageServer"]

_log = logging.getLogger("headrace.distributed")

#: Calls at a time, and how many wait to be accepted.
_MOST = 32
#: Seconds of a call from its beginning to its end.
_LONGEST = 10.0


class _Handler(WSGIRequestHandler):
    """Handles calls without a word."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class PageServer(ThreadingMixIn, WSGIServer):
    """Serves an application of WSGI in threads, until it is stopped.

    When too many are connected, or one for too long, the oldest connection is ended.

    Args:
        host, port: where; port 0 takes a free one.
        app: makes the page.
        context: for TLS; handshakes hold up nobody else.

    Raises:
        OSError: if the address cannot be had; OverflowError: if the port is none.
    """

    daemon_threads = True
    request_queue_size = _MOST

    def __init__(
        self, host: str, port: int, app: Callable[..., Any], context: ssl.SSLContext | None
    ) -> None:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        self.address_family = family
        self._context = context
        #: When each call began; in their order.
        self._calls: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)
        self.set_app(app)
        self._thread = threading.Thread(
            target=self.serve_forever, name="headrace metrics", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Take no more calls, end those that are there; then the port is free."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        self._end_all(lambda began: True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a call; see the class."""
        with self._lock:
            oldest = next(iter(self._calls)) if len(self._calls) >= _MOST else None
            self._calls[request] = time.monotonic()
            if oldest is not None:
                self._end(oldest)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the thread of a call: answer it."""
        if self._context is None:
            super().finish_request(request, client_address)
            return
        # A second descriptor: the first one stays with those who may end the call.
        with self._context.wrap_socket(request.dup(), server_side=True) as secured:
            super().finish_request(secured, client_address)

    def shutdown_request(self, request: Any) -> None:
        """A call is at its end."""
        with self._lock:
            self._calls.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Now and then: end what takes too long."""
        now = time.monotonic()
        self._end_all(lambda began: now - began > _LONGEST)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A call has failed, as those do whose client is gone or speaks something else."""
        _log.debug("A call for metrics from %s has failed: %s", client_address, sys.exc_info()[1])

    def _end_all(self, is_due: Callable[[float], bool]) -> None:
        with self._lock:
            for request in [r for r, began in self._calls.items() if is_due(began)]:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        """Let the thread of a call see its end. With the lock."""
        self._calls.pop(request, None)
        try:
            request.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            _log.debug("A call for metrics was gone: %s", error)
