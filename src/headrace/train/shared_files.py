"""What a script deletes, where several workers run it: the chief deletes it for all.

A script of one machine often begins with deleting what an earlier run has left. Where each worker
did so, one would fail for what another has deleted already, and a slow one would delete what the
chief has written since. A chief that is started again would delete what it has to go on from:
before its first step it deletes nothing.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any

from headrace import logging
from headrace.executor.activity import steps_begun
from headrace.files import system
from headrace.files.paths import as_path
from headrace.ops.state import share
from headrace.settings import flags

__all__ = ["remove", "remove_tree"]

#: The names that `tempfile` makes, which no two processes have.
_OWN = re.compile(r"tmp[a-z0-9_]{8}")


def remove(path: Any) -> None:
    """Delete a file. Raises as `files.system.remove`, in the chief."""
    if _deletes(path):
        system.remove(path)


def remove_tree(path: Any) -> None:
    """Delete a directory with all in it. Raises as `files.system.remove_tree`, in the chief."""
    if _deletes(path):
        system.remove_tree(path)


def _deletes(path: Any) -> bool:
    own = share.current()
    if _is_temporary(as_path(path)):
        return True
    if own is not None and not own.is_chief:
        why = "is deleted by the chief alone"
    elif flags.starts > 1 and not steps_begun():
        why = "is kept: this task was started again"
    else:
        return True
    logging.info("%s %s.", as_path(path), why)
    return False


def _is_temporary(path: str) -> bool:
    """Whether it is in a folder for temporary files that this process has for itself."""
    inside = os.path.relpath(os.path.abspath(path), tempfile.gettempdir())
    return _OWN.match(inside) is not None
