"""Operations as functions: what `raw` is.

Type checkers read `raw_ops.pyi` instead, where `tools/make_stubs.py` writes one method for each
operation of the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.ops.core.registry import OpDef, get_op_def


class RawOps:
    """Every registered op as a function: ``raw.MatMul(a, b, transpose_b=True)``.

    Gradient rules and the public API build ops through this, so op modules need not import one
    another.

    Args:
        apply: ``apply(op_def, args, kwargs)`` adds an op to the default graph.
    """

    def __init__(self, apply: Callable[[OpDef, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._apply = apply

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            op_def = get_op_def(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None
        apply = self._apply

        def build(*args: Any, **kwargs: Any) -> Any:
            return apply(op_def, args, kwargs)

        build.__name__ = build.__qualname__ = name
        setattr(self, name, build)
        return build
