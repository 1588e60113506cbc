"""Default arguments for functions, inside a ``with`` block."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from headrace.graph.stacks import inherit

F = TypeVar("F", bound=Callable[..., Any])
Scope = dict[Any, dict[str, Any]]


class _Scopes(threading.local):
    """Per thread: the scopes that are open, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Scope] = [{}]


_scopes = _Scopes()
inherit(_scopes)
#: The arguments with defaults of each function that takes part.
_arguments: dict[Any, tuple[str, ...]] = {}


def current_arg_scope() -> Scope:
    """The default arguments that hold here, by function."""
    return _scopes.stack[-1]


def arg_scope_func_key(op: Any) -> Any:
    """What stands for a function in scopes."""
    return getattr(op, "_key_op", str(op))


def has_arg_scope(func: Any) -> bool:
    """Whether a function takes default arguments from scopes."""
    return hasattr(func, "_key_op")


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments of a function that a scope can set.

    Raises:
        KeyError: if the function takes no part.
    """
    return _arguments[arg_scope_func_key(func)]


def add_arg_scope(func: F) -> F:
    """Decorate a function to take default arguments from `arg_scope`.

    Raises:
        TypeError: if it is no function.
    """
    if not callable(func):
        raise TypeError(f"add_arg_scope decorates a function, got {func!r:.100}.")
    key = getattr(func, "_key_op", (func.__module__, func.__name__))

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        defaults = _scopes.stack[-1].get(key)
        return func(*args, **({**defaults, **kwargs} if defaults else kwargs))

    parameters = inspect.signature(func).parameters.values()
    _arguments[key] = tuple(p.name for p in parameters if p.default is not p.empty)
    with_defaults._key_op = key  # type: ignore[attr-defined]
    return with_defaults  # type: ignore[return-value]


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """A block in which the functions of a list have other default arguments.

    Args:
        list_ops_or_scope: functions decorated by `add_arg_scope`; or a scope that an earlier
            ``with`` gave, to use again.
        kwargs: the defaults. Inner blocks add to outer ones and win.

    Raises:
        TypeError: if the first argument is neither.
        ValueError: if a function is not decorated, or defaults are given with a scope.
    """
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by suppling a dictionary, kwargs must be empty."
            )
        scope = dict(list_ops_or_scope)
    elif isinstance(list_ops_or_scope, (list, tuple)):
        scope = dict(_scopes.stack[-1])
        for op in list_ops_or_scope:
            if not has_arg_scope(op):
                raise ValueError(f"{_place(op)} is not decorated with @add_arg_scope")
            key = arg_scope_func_key(op)
            scope[key] = {**scope.get(key, {}), **kwargs}
    else:
        raise TypeError(
            "list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict), not "
            f"{list_ops_or_scope!r}"
        )
    _scopes.stack.append(scope)
    try:
        yield scope
    finally:
        _scopes.stack.pop()


def _place(op: Any) -> str:
    return f"{getattr(op, '__module__', '?')}.{getattr(op, '__name__', repr(op))}"


__all__ = [
    "add_arg_scope",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "current_arg_scope",
    "has_arg_scope",
]
