"""The share that this process has in a program that several workers run.

A plain script that `headrace launch` spreads over workers says nothing of them. Where it comes by
anyway (a session is opened, gradients are applied, a checkpoint is saved), stages ask here whether
there are others. `headrace.data_parallel` knows what is to be done, and registers itself here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from headrace.graph.tensor import Operation, Tensor

__all__ = ["WorkerShare", "current", "outermost_creators", "set_current", "suspended"]


class WorkerShare(Protocol):
    """What a worker does in place of a program that is alone.

    Attributes:
        is_chief: whether it does what is done once: initialise, restore, save, write summaries.
        target: where sessions without a target run.
        managed_target: the same for those of whom a session manager or a chief's lease says who
            initialises.
        has_servers: whether variables are on servers, which all workers share.
    """

    target: str
    managed_target: str

    @property
    def is_chief(self) -> bool: ...

    @property
    def has_servers(self) -> bool: ...

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss of this worker's examples, whose gradients' average is that of all."""

    def apply(self, optimizer: Any, pairs: Any, global_step: Any, name: str | None) -> Operation:
        """The op that applies gradients of all workers."""

    def give_way(self, what: str) -> None:
        """Be alone from now on: ``what`` shows that the script distributes itself."""

    def hooks(self) -> list[Any]:
        """The hooks that a monitored session of the default graph needs."""


_share: WorkerShare | None = None
_suspended = threading.local()
#: Make the variables of all graphs; those of `replica_scope` come before them.
outermost_creators: list[Callable[..., Any]] = []


def set_current(share: WorkerShare | None) -> None:
    """Let stages know this process's share, or that it has none."""
    global _share
    _share = share


def current() -> WorkerShare | None:
    """This process's share; None where the program is alone, or in `suspended`."""
    return None if getattr(_suspended, "depth", 0) else _share


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """What happens in this block happens as in a program that is alone: an evaluation, say."""
    _suspended.depth = getattr(_suspended, "depth", 0) + 1
    try:
        yield
    finally:
        _suspended.depth -= 1
