"""The modules ``tensorflow.python.ops.gen_*``: each operation as a function in lower case.

``gen_math_ops.mat_mul(a, b)`` (``_mat_mul`` in older releases) builds a MatMul: inputs first, then
attributes, both in the order of the operation's definition.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from headrace.namespaces.missing import attribute_error
from headrace.ops.core import registry
from headrace.ops.core.build import raw


def snake_case(op_type: str) -> str:
    """The function's name of an operation: ``MatMul`` gives ``mat_mul``.

    >>> snake_case("Conv2DBackpropInput")
    'conv2d_backprop_input'
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", op_type)
    spaced = re.sub(r"(?<=[A-Z])(?=[A-Z][a-z])", "_", spaced)
    return re.sub(r"(?<=\d)_?D(?=_|$)", "d", spaced).lower()


@cache
def _functions() -> dict[str, str]:
    return {snake_case(name): name for name in registry._OPS}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plain = name.lstrip("_")
    plain = plain.removesuffix("_eager_fallback")
    op_type = _functions().get(plain)
    if op_type is None:
        raise attribute_error("headrace.python.ops.gen_ops", name, _functions())
    return _generated(plain, op_type)


@cache
def _generated(name: str, op_type: str) -> Any:
    """The function ``name``. Positional arguments: inputs, attributes without a default, others."""
    build, definition = getattr(raw, op_type), registry._OPS[op_type]
    inferred = {
        attr for a in definition.inputs for attr in (a.type_attr, a.number_attr, a.type_list_attr)
    }
    open_attrs = [a for a in definition.attrs.values() if a.name not in inferred]
    order = [a.name for a in sorted(open_attrs, key=lambda a: a.has_default)] + ["name"]
    count = len(definition.inputs)

    def function(*args: Any, **kwargs: Any) -> Any:
        return build(*args[:count], **dict(zip(order, args[count:], strict=False)), **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def __dir__() -> list[str]:
    return sorted(_functions())
