"""``tensorflow.python.util``: decorators for deprecation and export, and helpers with functions."""

from __future__ import annotations

import collections.abc
import functools
import inspect
from collections.abc import Callable, Iterator, MutableMapping, MutableSet
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from headrace import logging

collections_abc = collections.abc

_silent = 0
_seen: set[tuple[Any, ...]] = set()


# -- deprecation --------------------------------------------------------------------------------


def _warn(key: tuple[Any, ...], once: bool, message: str, *args: Any) -> None:
    if _silent or (once and key in _seen):
        return
    _seen.add(key)
    logging.warning(message, *args, stacklevel=3)


def _when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls log that the function is deprecated.

    Raises:
        ValueError: if there are no instructions.
    """
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _warn(
                (function,),
                warn_once,
                "%s (from %s) is deprecated and will be removed %s.\n"
                "Instructions for updating:\n%s",
                function.__qualname__,
                function.__module__,
                _when(date),
                instructions,
            )
            return function(*args, **kwargs)

        return wrapper

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls with one of the arguments log that it is deprecated.

    A tuple ``(name, value)`` means an argument with which the function may still be called.
    """
    once = kwargs.get("warn_once", True)
    harmless = {
        entry[0]: entry[1:] if isinstance(entry, tuple) else ()
        for entry in (e if isinstance(e, tuple) else (e,) for e in deprecated_arg_names_or_tuples)
    }

    def given(name: str, value: Any) -> bool:
        allowed = harmless[name]
        return not any(value is a or value == a for a in allowed)

    return _deprecated_values(date, instructions, once, list(harmless), given)


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: calls in which an argument has the value log that it is deprecated."""

    def given(name: str, value: Any) -> bool:
        return bool(value == deprecated_kwargs[name])

    return _deprecated_values(date, instructions, warn_once, list(deprecated_kwargs), given)


def _deprecated_values(
    date: str | None,
    instructions: str,
    once: bool,
    names: list[str],
    given: Callable[[str, Any], bool],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind_partial(*args, **kwargs).arguments
            for name in names:
                if name in bound and given(name, bound[name]):
                    _warn(
                        (function, name),
                        once,
                        "calling %s (from %s) with %s is deprecated and will be removed %s.\n"
                        "Instructions for updating:\n%s",
                        function.__qualname__,
                        function.__module__,
                        name,
                        _when(date),
                        instructions,
                    )
            return function(*args, **kwargs)

        return wrapper

    return decorate


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has an old name too.

    Raises:
        ValueError: if both are given.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old_value


def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True
) -> Any:
    """A function under its old name, whose calls say so; a class as it is."""
    if inspect.isclass(func_or_class):
        return func_or_class
    return deprecated(None, f"Please use {name} instead.", warn_once)(func_or_class)


def _unchanged(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda function_or_class: function_or_class


deprecated_endpoints = _unchanged
#: What is exported under which name is decided elsewhere here.
tf_export = keras_export = estimator_export = _unchanged


@contextmanager
def silence() -> Iterator[None]:
    """No notes of deprecation inside."""
    global _silent
    _silent += 1
    try:
        yield
    finally:
        _silent -= 1


# -- functions ----------------------------------------------------------------------------------


class ArgSpec(NamedTuple):
    """The arguments of a function as Python 2 described them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Any) -> ArgSpec:
    """The arguments of a function, method or callable object.

    Raises:
        TypeError: if it cannot be called.
    """
    if not inspect.isroutine(obj) and not inspect.isclass(obj) and callable(obj):
        obj = obj.__call__
    full = inspect.getfullargspec(unwrap(obj)[1])
    return ArgSpec([*full.args, *full.kwonlyargs], full.varargs, full.varkw, full.defaults)


def fn_args(fn: Any) -> tuple[str, ...]:
    """The names of a function's arguments, without those that are bound."""
    return tuple(
        p.name
        for p in inspect.signature(fn).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY, p.POSITIONAL_ONLY)
    )


def has_kwargs(fn: Any) -> bool:
    """Whether a function takes any keyword argument."""
    kinds = (p.kind for p in inspect.signature(fn).parameters.values())
    return inspect.Parameter.VAR_KEYWORD in kinds


def get_func_name(func: Any) -> str:
    """The name of a callable."""
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return str(getattr(func, "__name__", type(func).__name__))


def get_func_code(func: Any) -> Any:
    """The code of a callable, or None."""
    return getattr(unwrap(func)[1], "__code__", None)


def keyword_args_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function takes keyword arguments only.

    Raises:
        ValueError: from the function, if it is called with positional ones.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(
                f"Must use keyword args to call {func.__name__}; got {len(args)} positional ones."
            )
        return func(**kwargs)

    return wrapper


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """``decorator_func`` with the name and documentation of ``target``."""
    return functools.wraps(target)(decorator_func)


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """The decorated functions around a function, outermost first, and the function itself."""
    layers = []
    while hasattr(maybe_tf_decorator, "__wrapped__"):
        layers.append(maybe_tf_decorator)
        maybe_tf_decorator = maybe_tf_decorator.__wrapped__
    return layers, maybe_tf_decorator


def should_use_result(fn: Any) -> Any:
    """Nothing to do: results that nobody uses are pruned."""
    return fn


must_use_result_or_fatal = should_use_result


def remove_undocumented(
    module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None
) -> None:
    """Nothing to do: a module keeps its names."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module."""
    return [name for name in dir(import_module(module_name)) if not name.startswith("_")]


class LazyLoader(ModuleType):
    """A module that is imported when one of its names is first asked for."""

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str) -> None:
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals

    def _load(self) -> ModuleType:
        module = import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())


# -- containers by identity ---------------------------------------------------------------------


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are the same if they are one object."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}
        self.update(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._items[id(key)][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        del self._items[id(key)]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._items.values())


class ObjectIdentitySet(MutableSet[Any]):
    """A set whose elements are the same if they are one object."""

    def __init__(self, items: Any = ()) -> None:
        self._items = {id(item): item for item in items}

    def __contains__(self, key: Any) -> bool:
        return id(key) in self._items

    def add(self, value: Any) -> None:
        """Add an object."""
        self._items[id(value)] = value

    def discard(self, value: Any) -> None:
        """Remove an object if it is there."""
        self._items.pop(id(value), None)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())
