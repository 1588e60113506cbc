"""The stub of `raw`: one method for each operation of the registry, with its types."""

from __future__ import annotations

from headrace.graph.dtypes import DType
from headrace.ops import every
from headrace.ops.core.registry import ArgDef, AttrDef, OpDef, all_op_defs

__all__ = ["text"]

del every  # imported for the operations that it registers

HEAD = '''# Written by tools/make_stubs.py from the registry of operations; do not edit.
"""Operations as functions. Inputs are whatever converts to a tensor."""

from collections.abc import Callable, Iterable
from typing import Any as _Any
from typing import TypeAlias

import numpy as np

from headrace.graph.dtypes import DType
from headrace.graph.shapes import Dimension, TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.registry import OpDef

_Bool: TypeAlias = bool | np.bool_
_Int: TypeAlias = int | np.integer[_Any] | Dimension
_Float: TypeAlias = float | np.floating[_Any]
_Text: TypeAlias = str | bytes
_Type: TypeAlias = DType | np.dtype[_Any] | type[_Any] | str | int
_Shape: TypeAlias = TensorShape | Iterable[int | Dimension | None] | int

class RawOps:
    def __init__(self, apply: Callable[[OpDef, tuple[_Any, ...], dict[str, _Any]], _Any]): ...
'''

_KINDS = {
    "bool": "_Bool",
    "float": "_Float",
    "int": "_Int",
    "shape": "_Shape",
    "string": "_Text",
    "type": "_Type",
}


def text() -> str:
    """The text of the stub file."""
    return HEAD + "".join(_method(op) for _, op in sorted(all_op_defs().items()))


def _method(op: OpDef) -> str:
    inferred = {n for a in op.inputs for n in (a.type_attr, a.number_attr, a.type_list_attr)}
    parameters = ["self", *(f"{a.name}: _Any" for a in op.inputs), "*"]
    parameters += [_attribute(a, a.name in inferred) for a in op.attrs.values()]
    parameters.append("name: str | None = None")
    lines = "".join(f"        {p},\n" for p in parameters)
    return f"    def {op.name}(\n{lines}    ) -> {_result(op)}: ...\n"


def _attribute(attr: AttrDef, is_inferred: bool) -> str:
    """An attribute; None is what is left to the inputs, or to the default."""
    kind, is_list = attr.kind, attr.kind.startswith("list(")
    if is_list:
        inner = _KINDS.get(kind[5:-1])
        found = f"Iterable[{inner}]" if inner else "Iterable[_Any]"
    else:
        found = _KINDS.get(kind, "_Any")
    if not attr.has_default:
        return f"{attr.name}: {found}" + (" | None = None" if is_inferred else "")
    return f"{attr.name}: {found} | None = {_default(attr.default)}"


def _default(value: object) -> str:
    """A default, as far as it can be written down."""
    if isinstance(value, tuple) and any(isinstance(v, DType) for v in value):
        return "..."
    return "..." if isinstance(value, DType) else repr(value)


def _result(op: OpDef) -> str:
    if not op.outputs:
        return "Operation"
    kinds = list(map(_output, op.outputs))
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _output(output: ArgDef) -> str:
    return "list[Tensor]" if output.is_list else "Tensor"
