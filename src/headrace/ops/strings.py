"""String ops that run on the host: joining (``+`` on strings), and matching patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import merge_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.registry import NotDifferentiable, define_op

_NO_GRADIENT = NotDifferentiable("it works on strings")


def _bytes(item: Any) -> bytes:
    return item.encode() if isinstance(item, str) else item


def _join_shape(op: Operation) -> list[Dims]:
    dims: Dims = None
    scalars = 0
    for tensor in op.inputs:
        if tensor.dims == ():
            scalars += 1
            continue
        try:
            dims = merge_static(dims, tensor.dims)
        except ValueError:
            raise ValueError(
                f"StringJoin needs inputs of one shape, or scalars; there are "
                f"{shape_text(dims)} and {shape_text(tensor.dims)}."
            ) from None
    return [() if scalars == len(op.inputs) else dims]


def _join(context: Any, inputs: Sequence[Any], *, separator: str) -> Any:
    shapes = {np.shape(x) for x in inputs} - {()}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None, None, f"StringJoin needs inputs of one shape, or scalars; got {sorted(shapes)}."
        )
    result = np.empty(shapes.pop() if shapes else (), object)
    columns = [np.broadcast_to(np.asarray(x, object), result.shape).reshape(-1) for x in inputs]
    rows = zip(*(c.tolist() for c in columns), strict=True)
    result.reshape(-1)[:] = [_bytes(separator).join(map(_bytes, row)) for row in rows]
    return result


define_op(
    "StringJoin(inputs: N * string) -> output: string",
    attrs="N: int, separator: string = ''",
    shape=_join_shape,
    host=_join,
    gradient=_NO_GRADIENT,
)


def _full_match(context: Any, input: Any, *, pattern: str) -> Any:
    items = np.asarray(input, object).reshape(-1).tolist()
    found = [re.fullmatch(_bytes(pattern), _bytes(item)) is not None for item in items]
    return np.array(found, bool).reshape(np.shape(input))


define_op(
    "StaticRegexFullMatch(input: string) -> output: bool",
    attrs="pattern: string",
    shape=lambda op: [op.inputs[0].dims],
    host=_full_match,
    gradient=_NO_GRADIENT,
)
