"""What a unit of a plan asks of the region that it runs, in one program or in several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from headrace.executor.compiling import Compilation
from headrace.executor.resources import ResourceStore, StateKey
from headrace.executor.step_context import StepContext
from headrace.passes.ir import Edge, Node


class Runnable(Protocol):
    """Nodes of one device and stage, with what crosses their border.

    Attributes:
        nodes: what runs.
        dynamic: edges that come in as arrays.
        static: edges whose values are known before anything is compiled.
        outputs: edges that others need.
        written: all state that it replaces.
        compiled: the last time that a program of it was compiled.
    """

    nodes: list[Node]
    dynamic: list[Edge]
    static: list[Edge]
    outputs: list[Edge]
    written: list[StateKey]

    @property
    def compiled(self) -> Compilation | None: ...

    @compiled.setter
    def compiled(self, value: Compilation | None) -> None: ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing comes of running it."""
        ...

    @property
    def can_fail(self) -> bool:
        """Whether a run may end in an error."""
        ...

    @property
    def is_proven(self) -> bool:
        """Whether it has run, and has nothing left to compile for the inputs that it has met."""
        ...

    @property
    def pending(self) -> Any:
        """An array that is there once the last run is over, or None."""
        ...

    @property
    def label(self) -> str:
        """How it is called in traces and messages."""
        ...

    def keep_old(self, keeps_old: bool) -> None:
        """Say whether old state has to survive until the step ends."""
        ...

    def run(
        self,
        store: ResourceStore,
        dynamic: Sequence[Any],
        static: Sequence[Any],
        context: StepContext | None = None,
    ) -> list[Any]:
        """Run once.

        Args:
            dynamic: arrays for the edges of the same name; ``static``: likewise.
            context: of the step, which may be given up meanwhile.

        Returns:
            A value for each of ``outputs``.

        Raises:
            OpError: when an op fails; no variable has changed then.
            NeedsHost: when a node turns out to need the host; nothing has run then.
        """
        ...

    def wait(self) -> None:
        """Wait until the last run is over."""
        ...


__all__ = ["Runnable"]
