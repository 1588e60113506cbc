"""Names that a module imports when they are first asked for, so that importing it stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from headrace.namespaces.missing import attribute_error

__all__ = ["lazy"]


def lazy(
    module: str,
    names: Mapping[str, Iterable[str]] | None = None,
    modules: Mapping[str, str] | Iterable[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with late names (PEP 562).

    What is found is kept in the module, so each name comes here once. `tools/make_stubs.py` reads
    the same arguments to write down the names for editors and type checkers.

    Args:
        module: ``__name__`` of the module that is to have them.
        names: the names that come from each module.
        modules: modules under the name that they have here; or names of modules below this one.

    Raises:
        AttributeError: from what it returns, with the nearest name, for a name that is not there.

    >>> __getattr__, __dir__ = lazy("headrace", {"fractions": ["Fraction"]}, {"m": "cmath"})
    >>> __getattr__("Fraction")(1, 2)
    Fraction(1, 2)
    >>> __getattr__("m").sqrt(-1)
    1j
    >>> "Fraction" in __dir__()
    True
    """
    sources = {name: source for source, several in (names or {}).items() for name in several}
    if not isinstance(modules, Mapping):
        modules = {name: f"{module}.{name}" for name in modules}

    def get(name: str) -> Any:
        if name in sources:
            value = getattr(import_module(sources[name]), name)
        elif name in modules:
            value = import_module(modules[name])
        else:
            raise attribute_error(module, name, names_of())
        vars(sys.modules[module])[name] = value
        return value

    def names_of() -> list[str]:
        return sorted({*vars(sys.modules[module]), *sources, *modules})

    return get, names_of
