"""Arrays over memory that belongs to somebody else and goes back when the last array dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Borrowed", "lend"]


class Borrowed:
    """The base object of every array over pooled, shared or another task's memory.

    NumPy keeps it at the root of `array.base`, so whoever wants to keep a value longer than a step
    can see that the memory is on loan and copy it. `give_back(storage)` is called once, when no
    array refers to the memory any more, in whichever thread that happens: also in the middle of a
    garbage collection, so it must not wait for a lock.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_give_back", "_storage")

    def __init__(
        self, storage: Any, address: int, nbytes: int, give_back: Callable[[Any], None] | None
    ) -> None:
        self._storage = storage
        self._give_back = give_back
        self.__array_interface__ = {
            "data": (address, True),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        if self._give_back is not None:
            self._give_back(self._storage)


def lend(
    storage: Any,
    address: int,
    nbytes: int,
    give_back: Callable[[Any], None] | None = None,
) -> np.ndarray[Any, Any]:
    """A read-only uint8 array of `nbytes` at `address`, whose root base is a `Borrowed`.

    `storage` is kept alive as long as the array, or anything made from it without a copy, lives.
    """
    return np.asarray(Borrowed(storage, address, nbytes, give_back))
