"""Every operation: importing this registers all of them, whichever module of a room has them.

A room may keep modules ``LATE``: functions without operations of their own, which load when they
are first needed.
"""

import sys
from importlib import import_module
from pkgutil import iter_modules

from headrace import ops
from headrace.ops.core.public import MARKED

for _found in iter_modules(ops.__path__, "headrace.ops."):
    if _found.ispkg:
        _room = import_module(_found.name)
        for _module in iter_modules(_room.__path__):
            if _module.name not in getattr(_room, "LATE", ()):
                import_module(f"{_room.__name__}.{_module.name}")


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
