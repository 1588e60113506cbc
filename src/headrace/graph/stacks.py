"""Thread-local default stacks: the current graph and the current session."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: The state of each thread that one takes over which builds a part of another one's graph.
_inherited: list[threading.local] = []


def inherit(state: threading.local) -> None:
    """Let threads that build a part of another one's graph take over this state."""
    _inherited.append(state)


def inherited(*more: threading.local) -> Callable[[], None]:
    """What is open in this thread (graphs, scopes): called in another one, opens the same there."""
    taken = [
        (state, {name: _own_copy(value) for name, value in vars(state).items()})
        for state in (*_inherited, *more)
    ]

    def install() -> None:
        for state, values in taken:
            vars(state).update({name: _own_copy(value) for name, value in values.items()})

    return install


def _own_copy(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, (list, dict)) else value


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
