"""How busy this process is with steps: what works in the background gives way to them."""

from __future__ import annotations

__all__ = ["note_step", "steps_begun"]

_begun = 0


def note_step() -> None:
    """A step, or a part of one, begins. About right: threads may count two as one."""
    global _begun
    _begun += 1


def steps_begun() -> int:
    """How many have begun."""
    return _begun
