"""Whose the memory of an array is.

It may belong to somebody else and go back when the last array dies (`lend`), or to nobody who could
still change it (`give_away`), or come from JAX without a copy (`take_over`). What is none of these
may be changed by whoever made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Borrowed", "give_away", "is_given_away", "lend", "take_over"]


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


class _Given:
    """The base object of an array whose maker has given it up: nobody can write to it any more."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.__array_interface__ = {
            "data": (array.ctypes.data, True),
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def give_away(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only array over the memory of one that the caller has made and forgets.

    A variable may keep it without a copy. Texts and arrays that are no block of memory come back as
    they are.
    """
    if array.dtype.kind == "O" or not array.nbytes or not array.flags.c_contiguous:
        return array
    given: np.ndarray[Any, Any] = np.asarray(_Given(array)).view(array.dtype)
    return given.reshape(array.shape)


class _Held:
    """The base object of an array over the memory of one of JAX's."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: Any) -> None:
        self._array = array
        self.__array_interface__ = {
            "data": (array.unsafe_buffer_pointer(), False),
            "shape": (array.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def take_over(array: Any) -> np.ndarray[Any, Any]:
    """A NumPy array that may be changed, over the memory of one that JAX has computed on a CPU.

    For arrays that nobody else has, or has a view of.
    """
    taken: np.ndarray[Any, Any] = np.asarray(_Held(array.block_until_ready())).view(array.dtype)
    return taken.reshape(array.shape)


def is_given_away(value: Any) -> bool:
    """Whether this is an array of `give_away`, all of it."""
    if type(value) is not np.ndarray or not value.flags.c_contiguous:
        return False
    root: Any = value
    while isinstance(root, np.ndarray):
        root = root.base
    return isinstance(root, _Given) and root._array.nbytes == value.nbytes
