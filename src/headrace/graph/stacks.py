"""Thread-local default stacks: the current graph and the current session."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class DefaultStack(threading.local, Generic[T]):
    """A stack of objects, one per thread, whose top is the current default."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[T] = []
        self.enforce_nesting = True

    def top(self) -> T | None:
        """The current default, or None."""
        return self.items[-1] if self.items else None

    @contextlib.contextmanager
    def push(self, item: T) -> Iterator[T]:
        """Make ``item`` the default within the ``with`` block.

        Raises:
            AssertionError: when blocks of two defaults are left in the wrong order.
        """
        self.items.append(item)
        try:
            yield item
        finally:
            if self.items:
                if self.enforce_nesting and self.items[-1] is not item:
                    raise AssertionError(
                        "Nesting violated: the default that is being left is not the innermost "
                        f"one. Left: {item!r}, innermost: {self.items[-1]!r}. Leave `with` blocks "
                        "of graphs and sessions in the reverse order of entering them."
                    )
                # The same item may stand further down as well: the last one is this block's.
                at = max(i for i, held in enumerate(self.items) if held is item)
                del self.items[at]
