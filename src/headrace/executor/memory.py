"""Keep scratch memory between steps.

XLA's CPU programs ask malloc for their scratch memory at each run and give it back afterwards.
The GNU C library returns pieces that large to the kernel, which clears every page when the next
run asks for it again: 15,000 page faults and 25 ms of kernel time in a step of a small LSTM,
130 ms in one of AlexNet. Told to keep what is freed, malloc serves the next run from it: a fifth
less time for that LSTM.

That is not enough for large arrays: XLA's threads have heaps of their own, which return a piece of
64 MiB to the kernel when the last array in it is freed, unless malloc is to have so much in
reserve. `abs` of 16 MB took 4.9 ms for its page faults, and 1.0 ms with the reserve. Nor does such
a heap hold an array of more than 64 MiB. One heap for all threads does, but in small steps threads
wait for one another, which costs a tenth of a millisecond of work. So it is for programs whose
graphs have large tensors, and for threads that start later.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
from collections.abc import Callable, Iterable

from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation
from headrace.settings import flags

#: Parameters of mallopt, from malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
#: So much stays with the process after it is freed.
KEPT_BYTES = 1 << 30
#: The size of the pieces of which heaps of threads consist: one that is empty stays.
RESERVED_BYTES = 64 << 20
#: Who sets one of these has decided already.
_OVERRIDES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")
#: Graphs with so many bytes of tensors are large.
LARGE_BYTES = 32 << 20
#: A size without a number is taken for this, a batch.
_ASSUMED = 32


@functools.cache
def keep_freed_memory() -> bool:
    """Tell malloc to keep freed memory; whether it was told so.

    Does nothing where malloc is another one, where the user has set malloc's own variables, and
    under ``HEADRACE_KEEP_MEMORY=0``. It acts on the whole process, and on threads that start
    later: call it before JAX starts its own.
    """
    mallopt = _mallopt()
    settings = (
        (_MMAP_THRESHOLD, KEPT_BYTES),
        (_TRIM_THRESHOLD, KEPT_BYTES),
        (_TOP_PAD, RESERVED_BYTES),
    )
    return mallopt is not None and all([mallopt(*setting) == 1 for setting in settings])


def share_one_heap(graph: Graph) -> bool:
    """Tell malloc to serve all threads that start from now on from one heap, if the tensors of a
    graph are large; whether it was told so. Nothing is done where `keep_freed_memory` does nothing.
    """
    if "MALLOC_ARENA_MAX" in os.environ or not _is_large(graph.get_operations()):
        return False
    mallopt = _mallopt()
    return mallopt is not None and mallopt(_ARENA_MAX, 1) == 1


def _is_large(operations: Iterable[Operation]) -> bool:
    total = 0
    for op in operations:
        for tensor in op.outputs:
            dims = tensor.dims
            if dims is not None:
                total += math.prod(_ASSUMED if n is None else n for n in dims) * tensor.dtype.size
        if total >= LARGE_BYTES:
            return True
    return False


def _mallopt() -> Callable[[int, int], int] | None:
    """The function that tells malloc how to work; None if nothing is to be told."""
    tuned = os.environ.get("GLIBC_TUNABLES", "")
    if not flags.keep_memory or "glibc.malloc" in tuned:
        return None
    if any(name in os.environ for name in _OVERRIDES) or sys.platform != "linux":
        return None
    try:
        mallopt: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return None
    return mallopt
