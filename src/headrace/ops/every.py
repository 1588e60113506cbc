"""Every operation: importing this registers all of them, whichever module of a room has them."""

from importlib import import_module
from pkgutil import iter_modules

from headrace import ops

for _room in iter_modules(ops.__path__, "headrace.ops."):
    if _room.ispkg:
        for _module in iter_modules(import_module(_room.name).__path__, f"{_room.name}."):
            import_module(_module.name)
