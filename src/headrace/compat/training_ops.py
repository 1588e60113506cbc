"""``tensorflow.python.training.training_ops``: the updates that optimisers apply, as functions.

``resource_apply_adam(var.handle, ...)`` builds the operation; ``apply_adam(var, ...)``, which took
reference variables, builds the same one and gives the variable's new value.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from headrace.compat import gen_ops
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation
from headrace.ops.state.variables import Variable


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plain = name.lstrip("_")
    if plain.startswith(("apply_", "sparse_apply_")):
        return _on_variables(plain)
    return getattr(gen_ops, name)


@cache
def _on_variables(name: str) -> Any:
    build = getattr(gen_ops, f"resource_{name}")

    def update(var: Any, *args: Any, **kwargs: Any) -> Any:
        done = build(*[_handle(value) for value in (var, *args)], **kwargs)
        op = done if isinstance(done, Operation) else done.op
        with get_default_graph().control_dependencies([op]):
            return var.read_value()

    update.__name__ = update.__qualname__ = name
    return update


def _handle(value: Any) -> Any:
    return value.handle if isinstance(value, Variable) else value


def __dir__() -> list[str]:
    prefixes = ("resource_apply_", "resource_sparse_apply_")
    updates = [n for n in dir(gen_ops) if n.startswith(prefixes)]
    return sorted([*updates, *(n.removeprefix("resource_") for n in updates)])
