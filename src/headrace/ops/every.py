"""Every operation: importing this registers all of them, whichever module of a room has them.

A room may keep modules ``LATE``: functions without operations of their own, which load when they
are first needed.
"""

from importlib import import_module
from pkgutil import iter_modules

from headrace import ops

for _found in iter_modules(ops.__path__, "headrace.ops."):
    if _found.ispkg:
        _room = import_module(_found.name)
        for _module in iter_modules(_room.__path__):
            if _module.name not in getattr(_room, "LATE", ()):
                import_module(f"{_room.__name__}.{_module.name}")
