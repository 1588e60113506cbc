"""The ways in which a plain script is spread over workers."""

from __future__ import annotations

from typing import Literal, NamedTuple

from headrace.errors import suggest

__all__ = ["ParallelMode"]

_KINDS = ("async", "sync", "all-reduce")


class ParallelMode(NamedTuple):
    """How workers train together.

    Attributes:
        kind: ``async``: each changes the variables by itself; ``sync``: an update has the
            gradients of all; ``all-reduce``: the same, but each worker has all variables.
        backups: of ``sync``: an update does not wait for so many workers.
    """

    kind: Literal["async", "sync", "all-reduce"]
    backups: int = 0

    @classmethod
    def parse(cls, text: str) -> ParallelMode:
        """What ``HEADRACE_DATA_PARALLEL`` says.

        Raises:
            ValueError: if it names no mode.
        """
        kind, mark, backups = text.partition(":")
        if kind not in _KINDS or (
            mark and (kind != "sync" or not (backups.isdecimal() and len(backups) < 10))
        ):
            raise ValueError(
                "HEADRACE_DATA_PARALLEL can be async, sync, sync:BACKUPS (with a number, such as "
                f"sync:1) or all-reduce, but is {text!r}.{suggest(kind, _KINDS)}"
            )
        return cls(kind, int(backups or 0))  # type: ignore[arg-type]

    @property
    def joins_gradients(self) -> bool:
        """Whether an update has the gradients of several workers."""
        return self.kind != "async"
