"""Decorators that note the use of deprecated functions and arguments in the log."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from headrace import logging

F = TypeVar("F", bound=Callable[..., Any])
_noted: set[Any] = set()


def _check(date: str | None, instructions: str) -> str:
    """When what is deprecated goes away.

    Raises:
        ValueError: if the date is not written YYYY-MM-DD, or there are no instructions.
    """
    parts = (date or "2000-01-01").split("-")
    if [len(p) for p in parts] != [4, 2, 2] or not all(p.isdigit() for p in parts):
        raise ValueError(f"Date must be YYYY-MM-DD, not {date!r}.")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")
    return "in a future version" if date is None else f"after {date}"


def _note(func: Any, what: str, key: Any, when: str, instructions: str, once: bool) -> None:
    if once and key in _noted:
        return
    _noted.add(key)
    logging.warning(
        "%s (from %s) %s will be removed %s.\nInstructions for updating:\n%s",
        getattr(func, "__qualname__", func),
        getattr(func, "__module__", "?"),
        what,
        when,
        instructions,
    )


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[F], F]:
    """Decorate a function, or a class, that will be removed; its use is noted in the log.

    Raises:
        ValueError: if ``date`` is not written YYYY-MM-DD, or ``instructions`` are empty.
    """
    when = _check(date, instructions)

    def decorate(func: F) -> F:
        if inspect.isclass(func):
            func.__init__ = decorate(func.__init__)  # type: ignore[method-assign]
            return func

        @functools.wraps(func)
        def noted(*args: Any, **kwargs: Any) -> Any:
            _note(func, "is deprecated and", func, when, instructions, warn_once)
            return func(*args, **kwargs)

        return noted  # type: ignore[return-value]

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[F], F]:
    """Decorate a function some of whose arguments will be removed; their use is noted.

    Args:
        deprecated_arg_names_or_tuples: names, or pairs of a name and a value that is no use of it.

    Raises:
        ValueError: if the function has no such argument.
    """
    when = _check(date, instructions)
    once = kwargs.pop("warn_once", True)
    wanted: dict[str, Any] = dict(
        x if isinstance(x, tuple) else (x, inspect.Parameter.empty)
        for x in deprecated_arg_names_or_tuples
    )

    def decorate(func: F) -> F:
        signature = inspect.signature(func)
        absent = sorted(set(wanted) - set(signature.parameters))
        if absent:
            raise ValueError(f"The following arguments are missing from {func}: {absent}")

        @functools.wraps(func)
        def noted(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name, ignored in wanted.items():
                if name in given and not (given[name] is ignored or given[name] == ignored):
                    what = f"was called with the argument {name!r}, which"
                    _note(func, what, (func, name), when, instructions, once)
            return func(*args, **kwargs)

        return noted  # type: ignore[return-value]

    return decorate


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[F], F]:
    """Decorate a function some values of whose arguments will be refused; their use is noted.

    Raises:
        ValueError: if no argument is given.
    """
    when = _check(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(func: F) -> F:
        signature = inspect.signature(func)

        @functools.wraps(func)
        def noted(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments
            for name, value in deprecated_kwargs.items():
                if name in given and given[name] == value:
                    what = f"was called with {name}={value!r}, which"
                    _note(func, what, (func, name), when, instructions, warn_once)
            return func(*args, **kwargs)

        return noted  # type: ignore[return-value]

    return decorate


__all__ = ["deprecated", "deprecated_arg_values", "deprecated_args"]
