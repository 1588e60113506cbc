"""The end of a process in which programs still run.

A kernel or a compilation cannot be stopped. The interpreter does not wait for daemon threads, and
up to Python 3.13 ends one that comes back to it by unwinding its stack; where C++ of XLA is on it,
that is `std::terminate`, and the process aborts. JAX, on its side, waits at the end for what it
computes; what it still compiles, after Ctrl-C, finds the devices gone and crashes. So when
something runs after a moment of grace:

- what unwinds into C++ stays where it is: the handlers of `std::terminate` and of SIGABRT become
  ``pause``. The last words of such a thread ("Fatal Python error") are not shown; what Python
  itself writes to `sys.stderr` is;
- JAX's clients are kept, so that nobody waits for their threads;
- once the interpreter has done all that it does at its end (other hooks, open files), the C library
  leaves at once with the status that Python gives it: ``_exit`` is called by ``on_exit``. A Python
  function in its place (`os._exit`) would not know the status.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from traceback import walk_stack

import jax

from headrace.executor import interrupts
from headrace.executor.threads import step_threads

__all__ = ["end_orderly"]

_log = logging.getLogger(__name__)

#: What runs gets so many seconds.
GRACE_SECONDS = 0.5
#: How often threads are looked at meanwhile.
_LOOK = 0.01
#: Where a thread is that waits in Python, which C++ has not called.
_WAITING = (
    "concurrent.futures.",
    "grpc.",
    "headrace.distributed.",
    "headrace.executor.errands",
    "headrace.executor.threads",
    "queue",
    "selectors",
    "socket",
    "threading",
)
#: Where one is that computes.
_COMPUTING = ("headrace.", "jax.", "jaxlib.")


def _stacks() -> list[list[str]]:
    """The modules on the stack of each other thread of Python, the innermost first."""
    own = threading.get_ident()
    frames = [f for thread, f in sys._current_frames().items() if thread != own]
    return [[str(f.f_globals.get("__name__")) for f, _ in walk_stack(frame)] for frame in frames]


def _is_computing() -> bool:
    innermost = [stack[0] for stack in _stacks()]
    return any(n.startswith(_COMPUTING) and not n.startswith(_WAITING) for n in innermost)


def _may_unwind() -> bool:
    """Whether a thread may come back to the interpreter from C++.

    What is outermost counts too: a step that takes a lock this moment calls a kernel in the next.
    """
    return any(not name.startswith(_WAITING) for stack in _stacks() for name in stack)


def end_orderly() -> None:
    """To be called at the end of the process: before JAX does, after all that may run steps."""
    began_busy = _may_unwind()
    interrupts.end_all()
    until = time.monotonic() + GRACE_SECONDS
    step_threads.wait_until_idle(GRACE_SECONDS)
    while _is_computing() and time.monotonic() < until:
        time.sleep(_LOOK)
    # A thread that has left Python since may still drop what XLA made for it.
    if began_busy or _may_unwind() or interrupts.has_left_compiling():
        _leave_without_waiting()


def _part_with_stderr() -> None:
    """What C code writes to file 2 is dropped; Python's `sys.stderr` goes where it went."""
    if sys.stderr is not None:
        sys.stderr.flush()
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)


def _leave_without_waiting() -> None:
    """Let the process end although threads are in code that nobody can stop."""
    if _is_computing():
        _log.info("The process ends while a program runs that cannot be stopped.")
    if not sys.platform.startswith("linux"):
        return
    # Another C library has no `on_exit`; one linked into XLA itself would have no handler.
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        runtime = ctypes.CDLL("libstdc++.so.6")
        pause = ctypes.cast(library.pause, ctypes.c_void_p)
        runtime._ZSt13set_terminatePFvvE(pause)
        library.signal(int(signal.SIGABRT), pause)
        _part_with_stderr()
        leave = ctypes.cast(library._exit, ctypes.c_void_p)
        library.on_exit(leave, None)
        flush = ctypes.cast(library.fflush, ctypes.c_void_p)
        library.__cxa_atexit(flush, None, None)  # it is called before the other
        for device in jax.devices():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(device.client))
