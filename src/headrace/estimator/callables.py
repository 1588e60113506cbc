"""Which arguments a function of the user takes."""

from __future__ import annotations

import functools
import inspect
from typing import Any

__all__ = ["argument_names", "described"]


def argument_names(function: Any) -> tuple[str, ...]:
    """The names of the arguments that are still to be given to ``function``.

    >>> argument_names(functools.partial(lambda features, labels, mode: None, mode="train"))
    ('features', 'labels')
    """
    bound = function.keywords if isinstance(function, functools.partial) else {}
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    parameters = inspect.signature(function).parameters
    return tuple(n for n, p in parameters.items() if p.kind in kinds and n not in bound)


def described(function: Any) -> str:
    """A function as messages name it: its name, and the line that defines it."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(
        vars(type(function)).get("__call__"), "__code__", None
    )
    name = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return str(name)
    return f"{name} ({code.co_filename}, line {code.co_firstlineno})"
