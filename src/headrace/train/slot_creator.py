"""Slots: variables that accompany another variable, such as an optimiser's moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, raw
from headrace.ops.state import variable_scope
from headrace.ops.state.variable_getters import get_slot_variable
from headrace.ops.state.variables import Variable


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A slot of ``primary`` named ``<primary>/<name>`` that starts as ``val``."""
    dtype = val.dtype if isinstance(val, Tensor) else primary.dtype
    return _create(primary, val, dtype, name, colocate_with_primary)


def create_slot_with_initializer(
    primary: Any,
    initializer: Callable[..., Any],
    shape: Any,
    dtype: DType,
    name: str,
    colocate_with_primary: bool = True,
) -> Variable:
    """A slot of the given shape and type that starts as ``initializer(shape, dtype)``."""
    return _create(
        primary, lambda: initializer(shape, dtype=dtype), dtype, name, colocate_with_primary
    )


def create_zeros_slot(
    primary: Any, name: str, dtype: DType | None = None, colocate_with_primary: bool = True
) -> Variable:
    """A slot of ``primary``'s shape that starts at zero."""
    kind = dtype or primary.dtype
    return _create(primary, filled(primary, 0, kind), kind, name, colocate_with_primary)


def filled(primary: Any, value: Any, dtype: DType | None = None) -> Callable[[], Any]:
    """An initial value of ``primary``'s shape, all of it ``value``."""
    dims = primary.shape.as_tuple
    known = dims is not None and None not in dims

    def initial() -> Any:
        shape = list(dims) if known else raw.Shape(primary.initialized_value())
        return raw.Fill(shape, constant(value, dtype or primary.dtype))

    return initial


def _create(primary: Any, value: Any, dtype: DType, name: str, colocate: bool) -> Variable:
    """A new slot, or under ``reuse`` the one that was made before under the same scopes."""
    graph = get_default_graph()
    prefix = getattr(primary, "_shared_name", None) or primary.op.name
    with variable_scope.variable_scope(None, f"{prefix}/{name}") as scope:
        known = primary.shape.is_fully_defined()
        with graph.colocate_with(primary if colocate else None):
            slot = get_slot_variable(scope, value, dtype, known)
    _keep_slice(primary, slot)
    return slot


def _keep_slice(primary: Any, slot: Variable) -> None:
    """A slot of a part of a variable is saved as that part of a slot of the whole.

    TensorFlow cuts the name of the slot at the length of the part's name, also where a scope stands
    before it: in scope ``dnn`` the slot of ``dnn/kernel`` is saved as ``dnn/kernel/t_0/Adagrad``.
    Checkpoints have these names.
    """
    info = getattr(primary, "_save_slice_info", None)
    if info is None or slot.shape.as_tuple != primary.shape.as_tuple:
        return
    rest = slot.op.name[len(primary.op.name) + 1 :]
    slot._set_save_slice_info(
        Variable.SaveSliceInfo(
            f"{info.full_name}/{rest}", info.full_shape, info.var_offset, info.var_shape
        )
    )
