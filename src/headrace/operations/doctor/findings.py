"""What a check has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["Finding", "Level", "fail", "ok", "warn", "worst"]


class Level(Enum):
    """How bad it is; the values are those of the exit status.

    >>> Level.warn.value
    1
    """

    ok = 0
    warn = 1
    fail = 2


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: what; text: how it is; mend: what to do about it, "" where all is well.

    >>> ok("cores", "8").as_dict()
    {'level': 'ok', 'subject': 'cores', 'text': '8', 'mend': ''}
    """

    level: Level
    subject: str
    text: str
    mend: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level.name,
            "subject": self.subject,
            "text": self.text,
            "mend": self.mend,
        }


def ok(subject: str, text: str) -> Finding:
    """All is well."""
    return Finding(Level.ok, subject, text)


def warn(subject: str, text: str, mend: str) -> Finding:
    """It works, but not well, or not for long."""
    return Finding(Level.warn, subject, text, mend)


def fail(subject: str, text: str, mend: str) -> Finding:
    """It does not work."""
    return Finding(Level.fail, subject, text, mend)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level; `Level.ok` of nothing."""
    return max((f.level for f in findings), key=lambda level: level.value, default=Level.ok)
