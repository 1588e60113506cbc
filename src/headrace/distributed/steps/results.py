"""What workers answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import OpError


@dataclass
class PartResult:
    """What came of one part of a step.

    Attributes:
        stats: a StepStats message when the step was traced, with ``began`` and ``ended`` in
            seconds since the epoch by the clock of its task.
        arrived: when the answer was there, by the clock of the one who asked.
        last: tensors for the one who asked that go with the answer, as a Tensors message and its
            buffers.
    """

    fetches: Sequence[Any] = ()
    error: OpError | None = None
    stats: Any = None
    began: float = 0.0
    ended: float = 0.0
    arrived: float = 0.0
    last: tuple[Any, list[Any]] | None = None
