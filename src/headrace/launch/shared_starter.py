"""One process of a machine imports what tasks need, and forks a starter for each who asks.

Actors of Ray are processes of their own, and each would import it for itself: seconds of a
processor. The first actor of a launch on a machine starts this one (`ray_tasks.py`), and binds its
socket, by which the others find it. Whoever connects sends its environment in a line; from then on
the connection is that of a `Starter`, which ends with it. This process ends when all starters have.

The folder of the socket is locked by whoever connects, and while this process looks whether it may
end: so nobody waits for one that is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import time
import traceback
from typing import NoReturn

from headrace.launch.starter import Starter, preload

__all__ = ["main"]

#: How often to look whether starters have ended, and how long to wait for the next who asks.
_LOOK, _IDLE = 0.25, 1.0


def main(listener: int, folder: str) -> None:
    """Serve the socket until nobody needs it any more.

    Args:
        listener: its file descriptor; folder: where it is, with nothing else.
    """
    os.dup2(2, 1)  # what is printed by accident
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    preload()
    with socket.socket(fileno=listener) as own:
        own.setblocking(False)
        _serve(own, folder)


def _serve(own: socket.socket, folder: str) -> None:
    busy = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(own, selectors.EVENT_READ)
        while True:
            if selector.select(_LOOK):
                _accept(own)
            if _has_children():
                busy = time.monotonic()
            elif time.monotonic() - busy > _IDLE and _ends(own, folder):
                return


def _accept(own: socket.socket) -> bool:
    """Fork a starter for the next who has asked, if there is one."""
    try:
        connection, _ = own.accept()
    except OSError:
        return False
    with connection:
        if os.fork() == 0:
            own.close()
            _start(connection)
    return True


def _start(connection: socket.socket) -> NoReturn:
    """In the new process: start tasks for this connection."""
    status = 1
    try:
        os.setsid()
        connection.setblocking(True)
        received = b""
        while b"\n" not in received:
            if not (data := connection.recv(1 << 16)):
                os._exit(0)
            received += data
        environment, _, rest = received.partition(b"\n")
        os.environ.clear()
        os.environ.update(json.loads(environment))
        Starter(connection.fileno(), connection.fileno(), rest=rest).run()
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def _has_children() -> bool:
    """Whether starters are left; those that have ended are waited for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _ends(own: socket.socket, folder: str) -> bool:
    """Whether nobody has asked meanwhile: then the folder is gone."""
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        if _accept(own):
            return False
        os.unlink(own.getsockname())
        os.rmdir(folder)
        return True
    finally:
        os.close(place)
