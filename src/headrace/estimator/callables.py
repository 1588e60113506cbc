"""Which arguments a function of the user takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from headrace.graph.tensor import Tensor

__all__ = ["argument_names", "call_logit_fn", "described", "required_names"]


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


def required_names(function: Any) -> tuple[str, ...]:
    """Those of `argument_names` that have no default.

    >>> required_names(lambda mode, size=3: None)
    ('mode',)
    """
    parameters = inspect.signature(function).parameters
    names = argument_names(function)
    return tuple(n for n in names if parameters[n].default is inspect.Parameter.empty)


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


def call_logit_fn(
    logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any
) -> Any:
    """Call ``logit_fn`` with those of these arguments that it takes.

    Args:
        logit_fn: gives a tensor, or a dictionary of tensors by head, of shape (batch, classes).

    Raises:
        ValueError: if it gives anything else.
    """
    names = argument_names(logit_fn)
    given = {"mode": mode, "params": params, "config": config}
    found = logit_fn(features=features, **{n: v for n, v in given.items() if n in names})
    by_head = isinstance(found, dict) and all(
        isinstance(k, str) and isinstance(v, Tensor) for k, v in found.items()
    )
    if not (by_head or isinstance(found, Tensor)):
        raise ValueError(
            "logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  logit_fn "
            f"returned: {found}"
        )
    return found
