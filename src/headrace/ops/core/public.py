"""The mark beside a public function, from which the namespaces of the interface take it.

>>> @public("cube", "math.cube")
... def cube(x):
...     return x * x * x
>>> MARKED["math"]["cube"].value(2)
8
>>> del MARKED[""]["cube"], MARKED["math"]["cube"]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

__all__ = ["MARKED", "Marked", "public"]

T = TypeVar("T")


class Marked(NamedTuple):
    """A public function or class, and the module that marks it."""

    value: Any
    module: str


#: For each namespace (``""`` is ``tf`` itself), what is marked for it, by the name it has there.
MARKED: dict[str, dict[str, Marked]] = {}


def public(*paths: str) -> Callable[[T], T]:
    """Marks a function or class as ``tf.<path>``, for each path: ``@public("sin", "math.sin")``.

    `ops.every.fill` gives a namespace what is marked for it. A function that was made from a row of
    a table gets its name and its module here: those of the mark, where it is found.

    Raises:
        ValueError: if something has one of these names already.
    """
    module = sys._getframe(1).f_globals["__name__"]

    def mark(value: T) -> T:
        for path in paths:
            namespace, _, name = path.rpartition(".")
            names = MARKED.setdefault(namespace, {})
            if name in names:
                other = names[name].module
                raise ValueError(f"{module} marks tf.{path}, as {other} has done.")
            names[name] = Marked(value, module)
        if isinstance(value, FunctionType) and _is_from_table(value):
            value.__name__ = value.__qualname__ = paths[0].rpartition(".")[2]
            value.__module__ = module
        return value

    return mark


def _is_from_table(function: FunctionType) -> bool:
    """Whether a function has another name than its code, and wraps no function that had it."""
    return function.__name__ != function.__code__.co_name and not hasattr(function, "__wrapped__")
