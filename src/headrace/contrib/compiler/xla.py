"""``tf.contrib.compiler.xla``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.scopes_api import control_dependencies, name_scope

__all__ = ["compile"]


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """What ``computation`` of ``inputs`` gives: one value as a tuple of it, lists as they are.

    Operations among the results are run before the others; only operations, or nothing, give an
    operation.

    Results keep their shapes.

    Raises:
        TypeError: if ``inputs`` are neither None, a list nor a tuple.
    """
    if inputs is not None and not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a list, but is {inputs!r}")
    with name_scope("cluster"):
        given = [raw.Identity(convert_to_tensor(x)) for x in inputs or ()]
        outputs = computation(*given)
        found = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        ops = [x for x in found if isinstance(x, Operation)]
        values = [x for x in found if x is not None and not isinstance(x, Operation)]
        if not values:
            return group(*ops, name="output_0")
        with control_dependencies(ops):
            results = [raw.Identity(convert_to_tensor(x)) for x in values]
    return results if isinstance(outputs, list) else tuple(results)
