"""Modules of other libraries as programs of the era know them.

Nothing is imported before the program does: a finder waits for the modules' names.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from headrace.compat import older_images, older_sklearn

__all__ = ["restore"]

_CHANGES: dict[str, Callable[[Any], None]] = {**older_images.CHANGES, **older_sklearn.CHANGES}
_REPLACED: dict[str, str] = {**older_images.REPLACED, **older_sklearn.REPLACED}


def restore() -> None:
    """Wait for the modules whose names are to be restored."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the modules of `_CHANGES` where they are, and completes them when they are loaded."""

    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _REPLACED:
            return ModuleSpec(fullname, _Replacing(_REPLACED[fullname]))
        if fullname not in _CHANGES or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Completing(spec.loader, _CHANGES[fullname])
        return spec


class _Replacing(Loader):
    """A module with the names of another one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found = vars(importlib.import_module(self._name))
        names = [n for n in found if not n.startswith("__") or n == "__getattr__"]
        vars(module).update({name: found[name] for name in names})


class _Completing(Loader):
    """A module's own loader, and what is to be done afterwards."""

    def __init__(self, loader: Loader, change: Callable[[Any], None]) -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)
