"""`BackupAndRestore` where several workers train a model: the chief has the files.

It reads them when training begins, and all begin with its values and in its epoch. When it has
written them, it tells the epoch to those who are started again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.keras.loading import load_keras
from headrace.ops.state import share

__all__ = ["install"]


def install(
    around: Callable[[Any, str, Callable[..., Any]], None], shared: Callable[[Any], Any]
) -> None:
    """Have the callback do its work once for all workers.

    Args:
        around: puts a function around a method of a class.
        shared: gives what workers share of a model, or None.
    """

    def begin(original: Any, callback: Any, logs: Any = None) -> None:
        if share.writes():
            original(callback, logs)
        found = shared(callback.model)
        if found is not None:
            found.begin_again()

    def save(original: Any, callback: Any) -> None:
        found = shared(callback.model)
        if found is None:
            original(callback)
        elif share.writes():
            found.take()
            original(callback)
            found.tell_epoch(callback._current_epoch)

    def end(original: Any, callback: Any, logs: Any = None) -> None:
        if share.writes():
            original(callback, logs)

    restorer = load_keras().callbacks.BackupAndRestore
    around(restorer, "on_train_begin", begin)
    around(restorer, "_save_model", save)
    around(restorer, "on_train_end", end)
