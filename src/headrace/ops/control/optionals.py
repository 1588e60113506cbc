"""Optional values: what branches of TensorFlow 2 hand to their gradients.

An optional is a list of one element for each component, unwritten where there is no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.tensor_list_kernels import TensorList, Uniformity
from headrace.ops.core.build import raw
from headrace.ops.core.checks import NeedsValue
from headrace.ops.core.registry import define_op


def _from_value(components: Sequence[Any]) -> TensorList:
    made = TensorList(tuple(components))
    try:
        return made.stacked()
    except Uniformity:
        raise NeedsValue("the components of an optional differ in shape") from None


def _from_value_gradient(op: Operation, grad: Any) -> list[Any]:
    types = op.attrs["Toutput_types"]
    values = raw.OptionalGetValue(
        grad, output_types=types, output_shapes=[t.shape for t in op.inputs]
    )
    return list(values)


define_op(
    "OptionalFromValue(components: Toutput_types) -> optional: variant",
    attrs="Toutput_types: list(type) >= 1",
    shape=lambda op: [()],
    kernel=_from_value,
    interpret=lambda components: TensorList(tuple(components)),
    gradient=_from_value_gradient,
)

define_op(
    "OptionalNone() -> optional: variant",
    shape=lambda op: [()],
    kernel=lambda: TensorList((None,)),
    interpret=lambda: TensorList((None,)),
)


def _has_value(optional: TensorList) -> Any:
    return np.bool_(not optional.unwritten)


define_op(
    "OptionalHasValue(optional: variant) -> has_value: bool",
    shape=lambda op: [()],
    kernel=_has_value,
    interpret=_has_value,
)


def _shapes(op: Operation) -> list[Dims]:
    return [s.as_tuple for s in op.attrs["output_shapes"]]


def _components(
    optional: TensorList, *, output_types: Sequence[Any], output_shapes: Sequence[Any]
) -> list[Any]:
    if optional.unwritten:
        raise InvalidArgumentError(None, None, "The given optional does not have a value.")
    if optional.items is not None:
        return list(optional.items)
    return [lists.row(optional.buffer, i) for i in range(len(output_types))]


def _get_value_gradient(op: Operation, *grads: Any) -> list[Any]:
    if any(g is None for g in grads):
        grads = tuple(
            raw.ZerosLike(t) if g is None else g for g, t in zip(grads, op.outputs, strict=True)
        )
    return [raw.OptionalFromValue(list(grads))]


define_op(
    "OptionalGetValue(optional: variant) -> components: output_types",
    attrs="output_types: list(type) >= 1, output_shapes: list(shape) >= 1",
    shape=_shapes,
    kernel=lambda optional, *, output_types, output_shapes: (
        _components(optional, output_types=output_types, output_shapes=output_shapes),
    ),
    interpret=lambda optional, *, output_types, output_shapes: (
        _components(optional, output_types=output_types, output_shapes=output_shapes),
    ),
    gradient=_get_value_gradient,
)

__all__: list[str] = []
