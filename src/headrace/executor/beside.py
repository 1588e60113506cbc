"""Programs that another thread compiles while their steps are interpreted.

Compiling may take seconds, and interpreting one step a few milliseconds. So a program is handed to
another thread when its region runs again, and the steps that come meanwhile are interpreted. How
many these are is fixed by the graph (`executor.policy`), never by a clock, so that runs repeat to
the last bit: the step after them waits for the thread, if that is not done by then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax

from headrace.executor.compile_notice import told_at_terminal
from headrace.executor.interrupts import Watch
from headrace.executor.resources import ResourceStore
from headrace.executor.threads import step_threads

if TYPE_CHECKING:
    from headrace.executor.program import Program
    from headrace.executor.region import Region

__all__ = ["Beside", "may_compile_beside"]

_log = logging.getLogger(__name__)

#: How often who waits looks whether its step is given up.
_LOOK = 0.05
#: One program at a time: interpreting needs a processor, too.
_one = threading.Lock()


def may_compile_beside(region: Region) -> bool:
    """Whether another thread may compile programs of a region: their arguments are arrays whose
    shapes and types do not change when a program has run, on the device that JAX takes by itself.
    """
    options = region.options
    on_host = options.device is None and options.host is not None
    return on_host and not (region.takes_lists or region.spare)


class Beside:
    """The compilation of one program in another thread.

    Args:
        program: what is compiled.
        store: what its region reads.
        dynamic: what comes in; it is asked for its shapes only.
    """

    def __init__(self, program: Program, store: ResourceStore, dynamic: Sequence[Any]) -> None:
        self._program = program
        #: Held by who compiles: the thread, or a step that waits before the thread has begun.
        self._claim = threading.Lock()
        self._is_over = threading.Event()
        values = [*store.get_all(program.region.read_keys), *dynamic]
        args = [_shaped(value) for value in values]
        if any(arg is None for arg in args) or not step_threads.submit(self._compile, args):
            self._claim.acquire()
            self._is_over.set()

    def _compile(self, args: Sequence[Any]) -> None:
        with _one:
            try:
                if self._claim.acquire(blocking=False):
                    with self._program.region.options.scope():
                        self._program.compile(args, beside=True)
            except Exception as error:  # the step that compiles it again says what is wrong
                _log.debug("%s: not compiled beside: %s", self._program.region.label, error)
            finally:
                self._is_over.set()

    def wait(self, watch: Watch) -> None:
        """Wait until the thread is done; where it has not begun, the step does it itself.

        Raises:
            OpError: if the step is given up meanwhile.
        """
        if self._is_over.is_set() or self._claim.acquire(blocking=False):
            return
        with told_at_terminal(self._program.region.label):
            while not self._is_over.wait(_LOOK):
                watch.check()


def _shaped(value: Any) -> Any:
    """What tells the compiler of an argument; None if that is no array."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return None
    weak = getattr(value, "weak_type", False)
    return jax.ShapeDtypeStruct(value.shape, value.dtype, weak_type=weak)  # type: ignore[no-untyped-call]
