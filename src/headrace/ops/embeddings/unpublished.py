"""Files of tables whose checkpoint never came to be: its save failed, or was killed.

A saver writes tables before the checkpoint, whose index makes it visible. Files that it wrote say
so in their header; those that `save` of a table wrote need no index and are left alone.
"""

from __future__ import annotations

import contextlib

from headrace.errors import DataLossError, OpError
from headrace.files import system
from headrace.ops.embeddings import increments, table_files, whole_files
from headrace.ops.embeddings.increments import is_visible


def remove_beside(prefix: str) -> None:
    """Removes what a save that failed has written, unless there is an index."""
    with contextlib.suppress(OpError):
        if not is_visible(prefix):
            _remove(table_files.files_beside(prefix))


def remove_forgotten(prefix: str) -> None:
    """Removes what killed saves left beside other checkpoints in the directory of this one.

    A save is forgotten when nothing was written beside it for an hour: others may be under way.
    Where no index is to be seen, they are on the disk of another task, and nothing is removed.
    """
    directory, own = prefix[: prefix.rfind("/") + 1], prefix[prefix.rfind("/") + 1 :]
    # It is no failure of a save if others sweep, too, or this process may not.
    with contextlib.suppress(OpError):
        names = system.list_directory(directory or ".")
        if not any(name.endswith(".index") for name in names):
            return
        tables = [m for m in map(table_files.TABLE_FILE.fullmatch, names) if m and m[1] != own]
        now = max((system.stat(p).mtime_nsec for p in table_files.files_beside(prefix)), default=0)
        for other in sorted({m[1] for m in tables}):
            if is_visible(directory + other):
                continue
            times = [
                system.stat(directory + n).mtime_nsec for n in names if n.startswith(f"{other}.")
            ]
            if min(times) > 0 and max(times) < now - whole_files.FORGOTTEN_NS:
                _remove([directory + m[0] for m in tables if m[1] == other])


def _remove(paths: list[str]) -> None:
    """Removes the files that a saver wrote, and the changes that follow them."""
    written = [p for p in paths if ".changes-" not in p and _is_of_checkpoint(p)]
    increments.remove([p for p in paths if p.partition(".changes-")[0] in written])


def _is_of_checkpoint(path: str) -> bool:
    try:
        return table_files.read_header(path).checkpoint
    except DataLossError:
        return False
