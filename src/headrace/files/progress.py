"""How far saves of this process have come: whoever waits for one tells a slow disk from a dead one.

>>> before = progress()
>>> note_progress(4096)
>>> progress() - before
4096
"""

from __future__ import annotations

__all__ = ["note_progress", "progress"]

_noted = 0


def note_progress(count: int) -> None:
    """So many bytes were copied or written for a save. Threads may count two as one."""
    global _noted
    _noted += count


def progress() -> int:
    """How many bytes there were so far, about."""
    return _noted
