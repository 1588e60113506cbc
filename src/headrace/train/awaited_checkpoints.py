"""Checkpoints that this worker's script has saved, and the chief writes: whoever asks for them
waits until it has.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from headrace import logging
from headrace.errors import OpError
from headrace.files import system
from headrace.files.paths import is_local
from headrace.ops.state import share

__all__ = ["expect", "wait", "wait_for"]

#: How often to look, and for how long; seconds.
_PAUSE = 0.02
_LONGEST = 60.0
_BEGUN = time.time()


class _Awaited(NamedTuple):
    """A checkpoint that was saved here, and when."""

    path: str
    since: float


#: By the path of the state file that is to name it.
_awaited: dict[str, _Awaited] = {}


def expect(state_path: str, path: str) -> None:
    """The chief is about to write a checkpoint at ``path``, and to name it in a state file."""
    _awaited[_known(state_path)] = _Awaited(_known(path), time.time())


def wait_for(path: str, is_there: Callable[[str], bool]) -> None:
    """Wait, a minute at most, until the chief has written what is expected at ``path``."""
    own = share.current()
    if own is not None and any(a.path == _known(path) for a in _awaited.values()):
        _wait(own, path, lambda: not is_there(path))


def wait(state_path: str, names: Callable[[], list[str]]) -> None:
    """Wait, a minute at most, until the chief has written what is expected there.

    Args:
        names: the checkpoints that the state file names.
    """
    awaited, own = _awaited.pop(_known(state_path), None), share.current()
    if awaited is None or own is None:
        return
    # Asynchronous workers count other steps than the chief: their names for checkpoints differ.
    enough = awaited.since if own.averages else _BEGUN

    def waits() -> bool:
        return awaited.path not in map(_known, names()) and _changed(state_path) <= enough

    _wait(own, awaited.path, waits)


def _wait(own: share.WorkerShare, path: str, waits: Callable[[], bool]) -> None:
    pause, looks = threading.Event().wait, int(_LONGEST / _PAUSE)
    while waits():
        looks -= 1
        if looks < 0:
            logging.warning("The chief has not written the checkpoint %s yet.", path)
            return
        own.make_way(waits)
        pause(_PAUSE)


def _known(path: str) -> str:
    """A path as it is written here, however the script writes it."""
    return os.path.abspath(path) if is_local(path) else path


def _changed(path: str) -> float:
    """When a file was changed last; 0 if it does not exist."""
    try:
        return system.stat(path).mtime_nsec / 1e9
    except OpError:
        return 0.0
