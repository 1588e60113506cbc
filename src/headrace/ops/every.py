"""Every operation: importing this registers all of them, whichever module of a room has them.

A room may keep modules ``LATE``: functions without operations of their own, which load when they
are first needed.
"""

import gc
import sys
from importlib import import_module
from pkgutil import iter_modules

from headrace import ops
from headrace.ops.core.public import MARKED


def _import_rooms() -> None:
    """Imports every module with operations.

    The garbage collector waits: nearly all that definitions make stays, and looking through it
    again and again was a fifth of the time that they take.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        for found in iter_modules(ops.__path__, "headrace.ops."):
            if found.ispkg:
                room = import_module(found.name)
                for module in iter_modules(room.__path__):
                    if module.name not in getattr(room, "LATE", ()):
                        import_module(f"{room.__name__}.{module.name}")
    finally:
        if collects:
            gc.enable()


_import_rooms()


def fill(module: str) -> list[str]:
    """Gives a namespace all that the rooms mark as public for it (`ops.core.public`).

    `tools/make_stubs.py` writes the names down for editors and type checkers.

    Args:
        module: ``__name__`` of the namespace: ``headrace`` or ``headrace.<namespace>``.

    Returns:
        The names, sorted.
    """
    marked = MARKED.get(module.partition(".")[2], {})
    vars(sys.modules[module]).update({name: mark.value for name, mark in marked.items()})
    return sorted(marked)
