"""Second derivatives of scalars: `tf.hessians`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.autodiff.gradients import Gradient, as_list, gradients
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.functional import map_fn
from headrace.ops.core.build import constant, convert_to_tensor, raw

__all__ = ["hessians"]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """Second derivatives of the sum of ``ys`` with respect to each x: shape ``x.shape * 2``.

    The sizes of the xs need not be known before the step runs.

    Raises:
        ValueError: if the ys do not depend on an x.
    """
    xs = as_list(xs)
    options = (colocate_gradients_with_ops, gate_gradients, aggregation_method)
    graph = get_default_graph()
    with graph.name_scope(name):
        firsts = gradients(ys, xs, None, "gradients", *options)
        return [_hessian(x, g, options) for x, g in zip(xs, firsts, strict=True)]


def _hessian(x: Any, gradient: Gradient, options: tuple[Any, ...]) -> Tensor:
    if gradient is None:
        raise ValueError(f"hessians: the ys do not depend on {x!r}.")
    flat = raw.Reshape(convert_to_tensor(gradient), [-1])
    value = convert_to_tensor(x)
    size = flat.dims[0] if flat.dims else None
    rows = _rows_of_known(flat, x, size, options) if size else _rows_of_any(flat, x, options)
    shape = raw.Shape(value)
    result: Tensor = raw.Reshape(rows, raw.ConcatV2([shape, shape], 0))
    if value.dims is not None:
        result.set_shape(value.dims * 2)
    return result


def _rows_of_known(flat: Tensor, x: Any, size: int, options: tuple[Any, ...]) -> Tensor:
    rows = []
    for i in range(size):
        row = gradients(raw.Reshape(raw.Slice(flat, [i], [1]), []), [x], None, "row", *options)[0]
        rows.append(raw.ZerosLike(convert_to_tensor(x)) if row is None else convert_to_tensor(row))
    return raw.Pack(rows)


def _rows_of_any(flat: Tensor, x: Any, options: tuple[Any, ...]) -> Tensor:
    """The rows, each the product of the Hessian and a unit vector.

    A product is built once, for a vector of zeros, and its operations are copied into the body of a
    map over the unit vectors.
    """
    start = raw.ZerosLike(flat)
    product = gradients(flat, [x], [start], "row", *options)[0]
    value = convert_to_tensor(x)
    size = raw.Reshape(raw.Shape(flat), [])
    if product is None:
        return raw.Fill(
            raw.ConcatV2([raw.Shape(flat), raw.Shape(value)], 0),
            constant(np.zeros((), flat.dtype.np_dtype)),
        )
    row = convert_to_tensor(product)
    path = _between(start, row)
    one, zero = (constant(np.array(v, flat.dtype.np_dtype)) for v in (1, 0))

    def product_with(index: Tensor) -> Tensor:
        unit = raw.OneHot(index, size, one, zero)
        return _copied(path, {start: unit})[row]

    indices = raw.Range(constant(np.int32(0)), size, constant(np.int32(1)))
    result: Tensor = map_fn(product_with, indices, dtype=dtypes.as_dtype(flat.dtype))
    return result


def _between(start: Tensor, end: Tensor) -> list[Operation]:
    """The operations through which ``end`` depends on ``start``, each behind its inputs."""
    before: set[Operation] = set()
    stack = [end.op]
    while stack:
        op = stack.pop()
        # What is older than the start does not depend on it.
        if op not in before and op._id > start.op._id:
            before.add(op)
            stack.extend(t.op for t in op.inputs)
    reached = {start}
    path = []
    for op in sorted(before, key=lambda op: op._id):
        if not reached.isdisjoint(op.inputs):
            path.append(op)
            reached.update(op.outputs)
    return path


def _copied(path: Sequence[Operation], values: dict[Tensor, Tensor]) -> dict[Tensor, Tensor]:
    """The outputs of copies of operations in the current graph, by those of the originals.

    Args:
        values: stand-ins for some tensors; all others are taken as they are.
    """
    graph = get_default_graph()
    values = dict(values)
    for op in path:
        copy = graph.add_op(
            op.op_def,
            [values.get(t, t) for t in op.inputs],
            op.attrs,
            [t.dtype for t in op.outputs],
            op.name.rpartition("/")[2],
            device=op.device,
        )
        for old, new in zip(op.outputs, copy.outputs, strict=True):
            new.set_shape(old.shape)
            values[old] = new
    return values
