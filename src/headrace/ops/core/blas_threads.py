"""Products of matrices in NumPy, with as many threads as pay.

OpenBLAS divides a product of more than 2^18 multiplications among all cores, and its threads wait
for each other by spinning. Where other processes use the cores as well, a product of 20 us then
takes as long as the scheduler's turns, 5 to 50 ms: an interpreted recurrent network came to one
step a second. What one core does in a moment stays on one.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

#: Multiplications below which OpenBLAS uses one thread itself.
_ALWAYS_ALONE = 1 << 18
#: Multiplications that one core does in about 10 ms.
_ALONE = 1 << 28


class _OneThread:
    """A block in which NumPy's library has one thread, whoever else is in such a block."""

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [library.get_num_threads() for library in self._libraries]
                self._set([1] * len(self._libraries))
            self._inside += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._libraries, counts, strict=True):
            library.set_num_threads(count)


@cache
def one_thread() -> _OneThread:
    """The block of this process."""
    from threadpoolctl import ThreadpoolController

    np.matmul(np.ones((1, 1)), np.ones((1, 1)))  # the library is there
    found = ThreadpoolController().select(internal_api="openblas").lib_controllers
    return _OneThread([library for library in found if "numpy" in library.filepath])


def matmul(a: Any, b: Any) -> Any:
    """The product of matrices, or of stacks of them."""
    if _ALWAYS_ALONE < a.shape[-2] * a.shape[-1] * b.shape[-1] < _ALONE:
        with one_thread():
            return np.matmul(a, b)
    return np.matmul(a, b)


__all__ = ["matmul", "one_thread"]
