"""Names that a module imports when they are first asked for, so that importing it stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from headrace.namespaces.missing import LATE, attribute_error

__all__ = ["LATE", "lazy"]


def lazy(
    module: str,
    names: Mapping[str, Iterable[str]] | None = None,
    modules: Mapping[str, str] | Iterable[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with late names (PEP 562).

    What is found is kept in the module, so each name comes here once. `tools/make_stubs.py` writes
    the names down for editors and type checkers.

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
    late = {
        name: f"{source}:{name}" for source, several in (names or {}).items() for name in several
    }
    if not isinstance(modules, Mapping):
        modules = {name: f"{module}.{name}" for name in modules}
    late.update(modules)
    LATE[module] = late

    def get(name: str) -> Any:
        if name not in late:
            raise attribute_error(module, name, names_of())
        home, _, attribute = late[name].partition(":")
        value = import_module(home)
        if attribute:
            value = getattr(value, attribute)
        vars(sys.modules[module])[name] = value
        return value

    def names_of() -> list[str]:
        return sorted({*vars(sys.modules[module]), *late})

    return get, names_of
