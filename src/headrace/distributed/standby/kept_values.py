"""What a standby has of another server; variables lie where XLA can go on with them.

A program changes a large variable in place only in memory that belongs to XLA. To move a copy there
in the moment in which it is served takes longer than all else: the kernel clears each new page. So
large variables lie there from the beginning, and rows are written into that memory, which nobody
else knows.
"""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace.distributed.standby.kinds import OBJECTS, VARIABLE
from headrace.errors import DataLossError
from headrace.executor.resources import ResourceHandle

__all__ = ["KeptValues"]

#: Smaller variables are moved in no time.
_LARGE = 1 << 20


class KeptValues:
    """The values of a copy. Whoever uses them sees to it that only one thread does."""

    def __init__(self) -> None:
        self._values: dict[ResourceHandle, Any] = {}
        #: What can be written of each value.
        self._memory: dict[ResourceHandle, np.ndarray[Any, Any]] = {}

    def put(self, handle: ResourceHandle, value: Any) -> None:
        """Keep a value: not the array itself, whose memory the transport has lent."""
        array = np.asarray(value)
        memory = self._memory.get(handle)
        if memory is not None and (memory.shape, memory.dtype) == (array.shape, array.dtype):
            np.copyto(memory, array)
        else:
            self.drop(handle)  # before there is memory for the next one
            self._values[handle], self._memory[handle] = _copied(array)

    def put_rows(self, handle: ResourceHandle, indices: Any, rows: Any) -> None:
        """Replace rows of a value.

        Raises:
            DataLossError: if there is none that has such rows.
        """
        memory = self._memory.get(handle)
        if memory is None or rows.shape != (len(indices), *memory.shape[1:]):
            raise DataLossError(None, None, f"Rows came for {handle}, of which there is none.")
        memory[indices] = rows

    def apply(self, handle: ResourceHandle, tensors: list[Any]) -> None:
        """Do what has come of one variable or object.

        Raises:
            DataLossError: if there is none that has such rows.
        """
        if not tensors:
            self.drop(handle)
        elif handle.kind != VARIABLE:
            self.change(handle, tensors)
        elif len(tensors) == 1:
            self.put(handle, tensors[0])
        else:
            self.put_rows(handle, *tensors)

    def change(self, handle: ResourceHandle, changes: list[Any]) -> None:
        """Do with an object what `CopiedResource.changes` says."""
        copy = self._values.get(handle)
        if copy is None:
            copy = self._values[handle] = OBJECTS[handle.kind].copy_of(handle.name, changes)
        copy.apply_changes(changes)

    def drop(self, handle: ResourceHandle) -> None:
        """Forget a value."""
        self._memory.pop(handle, None)
        self._values.pop(handle, None)

    def clear(self) -> None:
        """Forget all."""
        self._memory.clear()
        self._values.clear()

    def hand_over(self) -> dict[ResourceHandle, Any]:
        """All values: nothing is kept here any more."""
        self._memory.clear()
        values, self._values = self._values, {}
        return values

    def take_back(self, values: dict[ResourceHandle, Any]) -> None:
        """Keep what was handed over, of which nothing was changed meanwhile."""
        self._values = values


def _copied(array: np.ndarray[Any, Any]) -> tuple[Any, np.ndarray[Any, Any]]:
    """A copy, and its memory as an array that can be written."""
    # Elements of less than two bytes may be packed there; texts are no block of memory.
    plain = array.dtype.itemsize > 1 and array.dtype.kind not in "OSU"
    if array.nbytes < _LARGE or not plain or jax.default_backend() != "cpu":
        copy = np.array(array)
        return copy, copy
    # JAX may take the memory of an array as it is, whatever it is told; this is its own.
    with jax.enable_x64(True):
        value = jnp.empty(array.shape, array.dtype).block_until_ready()
    block = (ctypes.c_char * array.nbytes).from_address(value.unsafe_buffer_pointer())
    memory = np.frombuffer(memoryview(block), array.dtype).reshape(array.shape)
    np.copyto(memory, array)
    return value, memory
