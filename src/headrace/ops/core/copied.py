"""Resources that are no arrays, and of which another process may keep a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from headrace.ops.core.registry import HostResource

__all__ = ["CopiedResource"]


class CopiedResource(HostResource):
    """Tells of its changes, and gives them as arrays, which an object of its class takes.

    Changes are told of while the lock of the resource is held, which whoever hears of them must not
    ask for.

    Attributes:
        listener: is called when something has changed; None where nobody keeps a copy.
    """

    listener: Callable[[], None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be lost with it."""
        return False

    @property
    def nbytes(self) -> int:
        """About how much memory it has."""
        return 0

    def begin_copy(self, listener: Callable[[], None]) -> None:
        """Tell of changes from now on. The first of `changes` begin with all that there is."""
        raise NotImplementedError

    def end_copy(self) -> None:
        """Nobody keeps a copy any more."""
        self.listener = None

    def changes(self, most: int) -> tuple[list[Any], bool]:
        """What has changed since the last call.

        Args:
            most: bytes of it, roughly.

        Returns:
            Arrays, at least one, that are nobody else's; and whether that was all of it.
        """
        raise NotImplementedError

    @classmethod
    def copy_of(cls, name: str, changes: Sequence[Any]) -> Self:
        """An object that is to take changes; ``changes``: the first of them."""
        raise NotImplementedError

    def apply_changes(self, changes: Sequence[Any]) -> None:
        """Do what `changes` of the other object says."""
        raise NotImplementedError

    def adopt_copy(self, copy: Any) -> None:
        """Take over all that a copy has, and who keeps a copy of that; nobody else uses either.

        Raises:
            InvalidArgumentError: if it is one of another kind of object.
        """
        raise NotImplementedError

    def _tell(self) -> None:
        if self.listener is not None:
            self.listener()
