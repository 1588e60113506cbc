"""Keep scratch memory between steps.

XLA's CPU programs ask malloc for their scratch memory at each run and give it back afterwards.
The GNU C library returns pieces that large to the kernel, which clears every page when the next
run asks for it again: 15,000 page faults and 25 ms of kernel time in a step of a small LSTM,
130 ms in one of AlexNet. Told to keep what is freed, malloc serves the next run from it: a fifth
less time for that LSTM. (One heap for all threads would save the last faults too, but XLA's
threads then wait for one another in small steps.)
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from headrace.settings import flags

#: Parameters of mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: So much stays with the process after it is freed.
KEPT_BYTES = 1 << 30
#: Who sets one of these has decided already.
_OVERRIDES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


@functools.cache
def keep_freed_memory() -> bool:
    """Tell malloc to keep freed memory; whether it was told so.

    Does nothing where malloc is another one, where the user has set malloc's own variables, and
    under ``HEADRACE_KEEP_MEMORY=0``. It acts on the whole process, and on threads that start
    later: call it before JAX starts its own.
    """
    tuned = os.environ.get("GLIBC_TUNABLES", "")
    if not flags.keep_memory or "glibc.malloc" in tuned:
        return False
    if any(name in os.environ for name in _OVERRIDES) or sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    settings = ((_MMAP_THRESHOLD, KEPT_BYTES), (_TRIM_THRESHOLD, KEPT_BYTES))
    return all([mallopt(parameter, value) == 1 for parameter, value in settings])
