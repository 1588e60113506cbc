"""What a session asks its engine for: one kind of step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.graph.tensor import Operation, Tensor


class PlanRequest(NamedTuple):
    """One kind of step, before anything is decided about it.

    Attributes:
        fetches: tensors whose values are wanted; a variable is a read of it.
        feeds: tensors whose values the caller gives, whatever would compute them.
        targets: operations to run, of which nothing is fetched.
        timeout: seconds to wait for a task that the step needs, None for what the session's config
            says; in one process nobody is waited for.
        last: positions among the fetches of variables to read at the end of the step.
        is_ahead: whether it is to take the place of a plan that runs: its programs are compiled
            before it does.
    """

    fetches: Sequence[Tensor] = ()
    feeds: Sequence[Tensor] = ()
    targets: Sequence[Operation] = ()
    timeout: float | None = None
    last: Sequence[int] = ()
    is_ahead: bool = False


class DistantPlan:
    """What a session takes for granted of a plan whose steps other tasks run.

    Attributes:
        is_proven: whether a step that took no time takes none the next time: nobody knows.
        own: which values only the caller has, by position: none.
    """

    is_proven = False
    own: frozenset[int] = frozenset()


__all__ = ["DistantPlan", "PlanRequest"]
