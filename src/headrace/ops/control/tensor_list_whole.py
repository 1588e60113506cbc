"""Tensor lists as a whole: length, stacking, gathering, joining, and what gradients need."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.tensor_list import (
    SHAPE_TYPE,
    check_index,
    declared,
    differentiable,
    element_shape_of,
    fixed_index,
    get_host,
    known_shape,
    set_item,
    shape_input,
    uniform,
    unwritten_value,
)
from headrace.ops.control.tensor_list_kernels import TensorList
from headrace.ops.core import checks
from headrace.ops.core.array_util import scalar_shape
from headrace.ops.core.build import constant, raw
from headrace.ops.core.checks import NeedsValue
from headrace.ops.core.registry import CHECKS, define_op


def _length(value: TensorList) -> Any:
    return np.int32(value.size) if value.has_static_size else jnp.asarray(value.size, jnp.int32)


define_op(
    "TensorListLength(input_handle: variant) -> length: int32",
    shape=scalar_shape,
    kernel=_length,
    interpret=_length,
    gradient=lambda op, grad: [None],
)


def _element_shape_value(value: TensorList, *, shape_type: Any) -> Any:
    if value.unwritten:
        return np.array(-1, shape_type.np_dtype)
    if value.items is not None:
        sample = next(i for i in value.items if i is not None)
        return np.array(np.shape(sample), shape_type.np_dtype)
    if value.repeated is not None:
        return np.array(np.shape(value.repeated), shape_type.np_dtype)
    return np.array(value.buffer.shape[1:], shape_type.np_dtype)


define_op(
    "TensorListElementShape(input_handle: variant) -> element_shape: shape_type",
    attrs="shape_type: index",
    shape=lambda op: [None],
    kernel=_element_shape_value,
    interpret=_element_shape_value,
    gradient=lambda op, grad: [None],
)


def _resize(value: TensorList, size: Any) -> TensorList:
    wanted = int(size)
    if value.items is None:
        if not value.has_static_size:
            raise NeedsValue("a list of computed length is resized")
        value = TensorList(tuple(lists.row(uniform(value).buffer, t) for t in range(value.size)))
    items = (value.items or ())[:wanted]
    return TensorList((*items, *[None] * (wanted - len(items))))


define_op(
    "TensorListResize(input_handle: variant, size: int32) -> output_handle: variant",
    shape=scalar_shape,
    kernel=_resize,
    interpret=lambda value, size: _resize(value.to_items(), size),
    static=(1,),
    gradient=lambda op, grad: [
        raw.TensorListResize(grad, raw.TensorListLength(op.inputs[0])),
        None,
    ],
)


def _stack_shape(op: Operation) -> list[Dims]:
    element = declared(op.inputs[1])
    count = op.attrs["num_elements"]
    return [None if element is None else (None if count < 0 else count, *element)]


def _check_count(size: Any, expected: int) -> None:
    if expected >= 0 and isinstance(size, int) and size != expected:
        raise InvalidArgumentError(
            None,
            None,
            f"Operation expected a list with {expected} elements but got a list with "
            f"{size} elements.",
        )


def _unwritten_stack(size: int, element_shape: Any, dtype: Any) -> Any:
    dims = known_shape(element_shape)
    if dims is None:
        raise InvalidArgumentError(
            None,
            None,
            "Tried to stack elements of a list of which nothing has been written, with an "
            "element_shape that is not fully defined.",
        )
    return np.zeros((size, *dims), dtype.np_dtype)


def _check_elements(shape: tuple[int, ...], element_shape: Any) -> None:
    wanted = np.asarray(element_shape)
    if wanted.ndim == 0:
        return
    if len(shape) != wanted.size or any(
        w not in (-1, s) for w, s in zip(wanted.ravel(), shape, strict=True)
    ):
        raise InvalidArgumentError(
            None,
            None,
            f"Tried to stack list which contains elements of shape {list(shape)}; "
            f"element_shape is {wanted.ravel().tolist()}.",
        )


def _stack(value: TensorList, element_shape: Any, *, element_dtype: Any, num_elements: int) -> Any:
    _check_count(value.size, num_elements)
    if value.unwritten:
        return _unwritten_stack(value.size, element_shape, element_dtype)
    if not value.has_static_size:
        raise NeedsValue("a list of computed length is stacked")
    dense = uniform(value)
    if dense.repeated is not None:
        return np.zeros((0, *np.shape(dense.repeated)), element_dtype.np_dtype)
    _check_elements(dense.buffer.shape[1:], element_shape)
    if lists.capacity(dense.buffer) != dense.size:
        return dense.buffer[: dense.size]
    return dense.buffer


def _stack_host(
    value: TensorList, element_shape: Any, *, element_dtype: Any, num_elements: int
) -> Any:
    items = value.to_items()
    try:
        result = _stack(
            items, element_shape, element_dtype=element_dtype, num_elements=num_elements
        )
    except NeedsValue:
        shapes = [np.shape(i) for i in items.items or () if i is not None]
        raise InvalidArgumentError(
            None, None, f"Tried to stack list which contains elements of different shapes: {shapes}"
        ) from None
    return np.asarray(result)


define_op(
    "TensorListStack(input_handle: variant, element_shape: int32) -> tensor: element_dtype",
    attrs="element_dtype: type, num_elements: int = -1",
    shape=_stack_shape,
    kernel=_stack,
    interpret=_stack_host,
    static=(1,),
    gradient=lambda op, grad: [
        raw.TensorListFromTensor(grad, op.inputs[1]) if differentiable(grad.dtype) else None,
        None,
    ],
)


def _gather(value: TensorList, indices: Any, element_shape: Any, *, element_dtype: Any) -> Any:
    if value.unwritten:
        if known_shape(element_shape) is None:
            raise NeedsValue("the shape of the elements of a list is not known")
        return jnp.asarray(_unwritten_stack(indices.size, element_shape, element_dtype))
    if value.items is not None and isinstance(indices, np.ndarray):
        chosen = [get_host(value, i, element_shape, element_dtype) for i in indices.ravel()]
        if not chosen:
            return np.zeros((0, *(known_shape(element_shape) or ())), element_dtype.np_dtype)
        return uniform(TensorList(tuple(chosen))).buffer
    dense = uniform(value)
    checks.require_in_range(jnp, jnp.asarray(indices), dense.size)
    return jnp.take(jnp.asarray(dense.buffer), indices, axis=0, mode="clip")


def _gather_host(value: TensorList, indices: Any, element_shape: Any, *, element_dtype: Any) -> Any:
    try:
        result = _gather(
            value.to_items(), np.asarray(indices), element_shape, element_dtype=element_dtype
        )
    except NeedsValue as error:
        raise InvalidArgumentError(None, None, f"Tried to gather from a list: {error}") from None
    return np.asarray(result)


def _gather_grad(op: Operation, grad: Any) -> list[Any]:
    value, indices = op.inputs[:2]
    if not differentiable(grad.dtype):
        return [None, None, None]
    rows = raw.UnsortedSegmentSum(grad, indices, raw.TensorListLength(value))
    return [raw.TensorListFromTensor(rows, op.inputs[2]), None, None]


def _gather_shape(op: Operation) -> list[Dims]:
    element, indices = declared(op.inputs[2]), op.inputs[1].dims
    if element is None:
        return [None]
    return [(indices[0] if indices else None, *element)]


define_op(
    "TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> "
    "values: element_dtype",
    attrs="element_dtype: type",
    shape=_gather_shape,
    kernel=_gather,
    interpret=_gather_host,
    static=(2,),
    gradient=_gather_grad,
    effects=CHECKS,
)


def _rows_of(value: TensorList, element_shape: Any, leading: Any, dtype: Any) -> list[Any]:
    if value.items is None:
        if not value.has_static_size:
            raise NeedsValue("a list of computed length is concatenated")
        return [lists.row(uniform(value).buffer, t) for t in range(value.size)]
    rows = list(value.items)
    for i, item in enumerate(rows):
        if item is None:
            shape = np.asarray(element_shape)
            if i < leading.size and shape.ndim:
                if not isinstance(leading, np.ndarray):
                    raise NeedsValue("the lengths of the elements of a list are computed")
                shape = np.concatenate([[leading[i]], shape[1:]])
            rows[i] = unwritten_value(shape, dtype, i)
    return rows


def _concat(xp: Any, value: TensorList, element_shape: Any, leading: Any, dtype: Any) -> Any:
    rows = _rows_of(value, element_shape, leading, dtype)
    if not rows:
        dims = known_shape(np.atleast_1d(np.asarray(element_shape))[1:])
        return np.zeros((0, *(dims or ())), dtype.np_dtype), np.zeros((0,), np.int64)
    if any(np.ndim(r) == 0 for r in rows):
        raise InvalidArgumentError(None, None, "Concat requires elements to be at least vectors.")
    return xp.concatenate(rows), np.array([r.shape[0] for r in rows], np.int64)


def _concat_shape(op: Operation) -> list[Dims]:
    element = declared(op.inputs[1])
    return [None if not element else (None, *element[1:]), (None,)]


define_op(
    "TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) "
    "-> (tensor: element_dtype, lengths: int64)",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=_concat_shape,
    kernel=lambda value, shape, leading, *, element_dtype: _concat(
        jnp, value, shape, leading, element_dtype
    ),
    interpret=lambda value, shape, leading, *, element_dtype: _concat(
        np, value.to_items(), shape, leading, element_dtype
    ),
    static=(1,),
    gradient=lambda op, grad, _: [
        raw.TensorListSplit(grad, op.inputs[1], op.outputs[1]),
        None,
        None,
    ],
)


def _split(tensor: Any, _: Any, lengths: Any) -> TensorList:
    if int(np.sum(lengths)) != tensor.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected sum of lengths to be equal to values.shape[0], but sum of "
            f"lengths is {int(np.sum(lengths))} and value's shape is: {list(tensor.shape)}",
        )
    bounds = np.cumsum(lengths)
    starts = bounds - lengths
    return TensorList(tuple(tensor[a:b] for a, b in zip(starts, bounds, strict=True)))


def _split_grad(op: Operation, grad: Any) -> list[Any]:
    tensor, _, lengths = op.inputs
    rest = element_shape_of(tensor)
    any_rows = constant(np.array([-1], np.int32))
    shape = raw.ConcatV2([any_rows, rest], constant(np.int32(0)))
    whole, _ = raw.TensorListConcatV2(grad, shape, lengths, element_dtype=tensor.dtype)
    whole.set_shape(tensor.shape)
    return [whole, None, None]


define_op(
    "TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> "
    "output_handle: variant",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=scalar_shape,
    kernel=_split,
    interpret=_split,
    static=(1, 2),
    gradient=_split_grad,
)

# -- for gradients ------------------------------------------------------------------------------


def _one_item(length: Any, index: Any, item: Any) -> TensorList:
    size = fixed_index(length)
    if size is None:
        raise NeedsValue("the length of a list is computed")
    return set_item(TensorList((None,) * size), index, item, resize_if_index_out_of_bounds=False)


define_op(
    "TensorListOneItem(length: int32, index: int32, item: element_dtype) -> handle: variant",
    attrs="element_dtype: type",
    shape=scalar_shape,
    kernel=_one_item,
    interpret=_one_item,
    gradient=lambda op, grad: [
        None,
        None,
        raw.TensorListGetItem(
            grad,
            op.inputs[1],
            shape_input(op.inputs[2].dims, op.inputs[2]),
            element_dtype=op.inputs[2].dtype,
        ),
    ],
    effects=CHECKS,
)


def _accumulate(value: TensorList, index: Any, item: Any) -> TensorList:
    if value.unwritten or (value.items is not None and fixed_index(index) is not None):
        size = value.size
        result: TensorList = lists.add(value, _one_item(np.int32(size), index, item))
        return result
    dense = uniform(value)
    check_index(index, dense.size)
    return TensorList(buffer=jnp.asarray(dense.buffer).at[index].add(item), size=dense.size)


define_op(
    "TensorListAccumulate(input_handle: variant, index: int32, item: element_dtype) -> "
    "output_handle: variant",
    attrs="element_dtype: type",
    shape=scalar_shape,
    kernel=_accumulate,
    interpret=lambda value, index, item: _accumulate(value.to_items(), index, item),
    gradient=lambda op, grad: [
        grad,
        None,
        raw.TensorListGetItem(
            grad,
            op.inputs[1],
            shape_input(op.inputs[2].dims, op.inputs[2]),
            element_dtype=op.inputs[2].dtype,
        ),
    ],
    effects=CHECKS,
)

define_op(
    "TensorListAdd(a: variant, b: variant) -> sum: variant",
    shape=scalar_shape,
    kernel=lists.add,
    interpret=lambda a, b: lists.add(a.to_items(), b.to_items()),
    gradient=lambda op, grad: [grad, grad],
)

define_op(
    "TensorListZerosLike(input_handle: variant) -> zeros: variant",
    shape=scalar_shape,
    kernel=lists.zeros_like,
    interpret=lambda value: lists.zeros_like(value.to_items()),
    gradient=lambda op, grad: [None],
)

__all__: list[str] = []
