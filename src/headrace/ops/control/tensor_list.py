"""Tensor lists, the ops below TensorArray: a list is a ``variant`` (see kernels.tensor_list).

While a program is traced a list is one stacked buffer where it can be, so that compiled loops read
and write it at traced positions; interpreted steps hold a tuple of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.tensor_list_kernels import TensorList, Uniformity
from headrace.ops.core import checks
from headrace.ops.core.array_util import scalar_shape
from headrace.ops.core.build import constant, raw
from headrace.ops.core.checks import NeedsValue
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.static import static_shape

SHAPE_TYPE = "shape_type: index = int32"
_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def differentiable(dtype: Any) -> bool:
    return dtype.name in _FLOATING


def declared(element_shape: Tensor) -> Dims:
    """The static shape that an ``element_shape`` input declares; a scalar -1 declares nothing."""
    return None if element_shape.dims == () else static_shape(element_shape)


def known_shape(element_shape: Any) -> tuple[int, ...] | None:
    """The shape of elements from an ``element_shape`` input (-1 is unknown), if fully known."""
    sizes = np.atleast_1d(np.asarray(element_shape))
    if np.ndim(element_shape) == 0 or (sizes < 0).any():
        return None
    return tuple(int(s) for s in sizes)


def fixed_index(value: Any) -> int | None:
    return int(value) if isinstance(value, (np.ndarray, np.generic, int)) else None


def uniform(value: TensorList) -> TensorList:
    """The stacked form, which traced positions need."""
    try:
        return value.stacked()
    except Uniformity:
        raise NeedsValue("elements of a list differ in shape") from None


def check_index(index: Any, size: Any) -> None:
    checks.require(
        (index >= 0) & (index < size),
        "Trying to access element {0} in a list with {1} elements.",
        index,
        size,
    )


def unwritten_value(element_shape: Any, dtype: Any, index: Any) -> Any:
    dims = known_shape(element_shape)
    if dims is None:
        raise InvalidArgumentError(
            None,
            None,
            f"Trying to read an uninitialized tensor (element {index} of a list) but "
            "element_shape is not fully defined. Write the element first.",
        )
    return np.zeros(dims, dtype.np_dtype)


# -- making lists -------------------------------------------------------------------------------


def _reserve(_: Any, count: Any) -> Any:
    if count < 0:
        raise InvalidArgumentError(None, None, f"num_elements must be non-negative, got {count}")
    return TensorList((None,) * int(count))


define_op(
    "TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=scalar_shape,
    kernel=_reserve,
    interpret=_reserve,
    static=(0, 1),
)

define_op(
    "EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=scalar_shape,
    kernel=lambda _, __: TensorList(()),
    interpret=lambda _, __: TensorList(()),
    static=(0,),
)


def _from_tensor_host(tensor: Any, _: Any) -> TensorList:
    return TensorList(tuple(np.asarray(t) for t in tensor))


def _from_tensor_grad(op: Operation, grad: Any) -> list[Any]:
    return [_stack_like(grad, op.inputs[0]), None]


def _stack_like(grad: Any, tensor: Tensor) -> Any:
    """The gradient list of the rows of ``tensor``, stacked."""
    dims = tensor.dims
    if dims is not None and None not in dims[1:]:
        shape = constant(np.array(dims[1:], np.int32))
    else:
        shape = raw.StridedSlice(raw.Shape(tensor), [1], [0], [1], end_mask=1)
    stacked = raw.TensorListStack(grad, shape, element_dtype=tensor.dtype)
    stacked.set_shape(tensor.shape)
    return stacked


define_op(
    "TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> "
    "output_handle: variant",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=scalar_shape,
    kernel=lambda tensor, _: TensorList.stack_of(tensor),
    interpret=_from_tensor_host,
    static=(1,),
    gradient=_from_tensor_grad,
)


def _place(size: int, indices: Any, tensor: Any, base: tuple[Any, ...] = ()) -> TensorList:
    items = [*base, *[None] * (size - len(base))]
    for position, value in zip(np.asarray(indices).ravel(), tensor, strict=True):
        if not 0 <= position < size:
            raise InvalidArgumentError(
                None, None, f"Scatter to index {position} of a list with {size} elements."
            )
        items[position] = np.asarray(value)
    return TensorList(tuple(items))


def _scatter_size(indices: Any, count: Any) -> int:
    return int(count) if count >= 0 else int(np.max(indices, initial=-1)) + 1


def _scatter(tensor: Any, indices: Any, _: Any, count: Any) -> TensorList:
    if count < 0 and not isinstance(indices, np.ndarray):
        raise NeedsValue("the length of a list depends on computed indices")
    size = _scatter_size(indices, count)
    buffer = jnp.zeros((size, *tensor.shape[1:]), tensor.dtype)
    checks.require_in_range(jnp, jnp.asarray(indices), size)
    return TensorList.stack_of(buffer.at[indices].set(tensor))


def _scatter_grad(op: Operation, grad: Any) -> list[Any]:
    tensor, indices = op.inputs[:2]
    gathered = raw.TensorListGather(
        grad, indices, element_shape_of(tensor), element_dtype=tensor.dtype
    )
    return [gathered, None, None, None]


def element_shape_of(stacked: Tensor) -> Tensor:
    dims = stacked.dims
    if dims is not None and None not in dims[1:]:
        return constant(np.array(dims[1:], np.int32))
    return raw.StridedSlice(raw.Shape(stacked), [1], [0], [1], end_mask=1)


define_op(
    "TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, "
    "num_elements: int32) -> output_handle: variant",
    attrs=f"element_dtype: type, {SHAPE_TYPE}",
    shape=scalar_shape,
    kernel=_scatter,
    interpret=lambda t, i, _, count: _place(_scatter_size(i, count), i, t),
    static=(2, 3),
    gradient=_scatter_grad,
    effects=CHECKS,
)


def _scatter_into(value: TensorList, tensor: Any, indices: Any) -> TensorList:
    if value.unwritten:
        return _scatter(tensor, indices, None, np.int32(value.size))
    dense = uniform(value)
    checks.require_in_range(jnp, jnp.asarray(indices), dense.size)
    return TensorList(buffer=jnp.asarray(dense.buffer).at[indices].set(tensor), size=dense.size)


def _scatter_into_host(value: TensorList, tensor: Any, indices: Any) -> TensorList:
    items = value.to_items().items or ()
    size = max(len(items), _scatter_size(indices, -1))
    return _place(size, indices, tensor, items)


def _scatter_into_grad(op: Operation, grad: Any) -> list[Any]:
    _, tensor, indices = op.inputs
    return [
        raw.TensorListScatterIntoExistingList(
            grad, raw.ZerosLike(tensor), indices, element_dtype=tensor.dtype
        ),
        raw.TensorListGather(grad, indices, element_shape_of(tensor), element_dtype=tensor.dtype),
        None,
    ]


define_op(
    "TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, "
    "indices: int32) -> output_handle: variant",
    attrs="element_dtype: type",
    shape=scalar_shape,
    kernel=_scatter_into,
    interpret=_scatter_into_host,
    gradient=_scatter_into_grad,
    effects=CHECKS,
)

# -- elements -----------------------------------------------------------------------------------


def set_item(
    value: TensorList, index: Any, item: Any, *, resize_if_index_out_of_bounds: bool
) -> TensorList:
    fixed = fixed_index(index)
    if fixed is not None and value.items is not None:
        return _set_host(value, index, item, resize=resize_if_index_out_of_bounds)
    if resize_if_index_out_of_bounds:
        raise NeedsValue("a list of dynamic size is written at a computed position")
    check_index(index, value.size)
    item = uniform(item) if isinstance(item, TensorList) else item
    if value.unwritten:
        buffer = lists.empty_rows(item, value.size)
        dense = TensorList.stack_of(buffer, value.size)
    else:
        dense = uniform(value)
    if not lists.are_rows(dense.buffer, item):
        raise NeedsValue("elements of a list differ in shape")
    if dense.has_static_size and dense.size == 0:
        return dense
    return TensorList(buffer=lists.set_row(dense.buffer, index, item), size=dense.size)


def _set_host(value: TensorList, index: Any, item: Any, resize: bool) -> TensorList:
    items = list(value.items or ())
    position = int(index)
    if resize and position >= len(items):
        items += [None] * (position + 1 - len(items))
    check_index(np.int64(position), len(items))
    items[position] = item
    return TensorList(tuple(items))


def _set_item_grad(op: Operation, grad: Any) -> list[Any]:
    _, index, item = op.inputs
    if not differentiable(item.dtype):
        return [None, None, None]
    taken = raw.TensorListGetItem(
        grad, index, shape_input(item.dims, item), element_dtype=item.dtype
    )
    taken.set_shape(item.shape)
    cleared = raw.TensorListSetItem(grad, index, raw.ZerosLike(taken))
    return [cleared, None, taken]


def shape_input(dims: Dims, tensor: Tensor | None = None) -> Tensor:
    """An ``element_shape`` input: a constant where the shape is known, else from ``tensor``."""
    if dims is not None and None not in dims:
        return constant(np.array(dims, np.int32))
    if tensor is not None:
        return raw.Shape(tensor)
    if dims is None:
        return constant(np.array(-1, np.int32))
    return constant(np.array([-1 if d is None else d for d in dims], np.int32))


define_op(
    "TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> "
    "output_handle: variant",
    attrs="element_dtype: type, resize_if_index_out_of_bounds: newer bool = False",
    shape=scalar_shape,
    kernel=set_item,
    interpret=lambda value, index, item, *, resize_if_index_out_of_bounds: _set_host(
        value.to_items(), index, item, resize_if_index_out_of_bounds
    ),
    gradient=_set_item_grad,
    effects=CHECKS,
)


def _get_item(value: TensorList, index: Any, element_shape: Any, *, element_dtype: Any) -> Any:
    fixed = fixed_index(index)
    if value.items is not None and fixed is not None:
        return get_host(value, index, element_shape, element_dtype)
    check_index(index, value.size)
    if value.repeated is not None:
        return value.repeated
    if value.unwritten:
        if known_shape(element_shape) is None:
            raise NeedsValue("the shape of the elements of a list is not known")
        return unwritten_value(element_shape, element_dtype, "?")
    dense = uniform(value)
    if dense.has_static_size and dense.size == 0:  # the check above has failed
        return np.zeros(dense.buffer.shape[1:], element_dtype.np_dtype)
    return lists.row(dense.buffer, index)


def get_host(value: TensorList, index: Any, element_shape: Any, element_dtype: Any) -> Any:
    items = value.items or ()
    position = int(index)
    check_index(np.int64(position), len(items))
    item = items[position]
    return unwritten_value(element_shape, element_dtype, position) if item is None else item


def _element_dims(position: int) -> Any:
    return lambda op: [declared(op.inputs[position])]


def _get_item_grad(op: Operation, grad: Any) -> list[Any]:
    if not differentiable(grad.dtype):
        return [None, None, None]
    length = raw.TensorListLength(op.inputs[0])
    return [raw.TensorListOneItem(length, op.inputs[1], grad), None, None]


define_op(
    "TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> "
    "item: element_dtype",
    attrs="element_dtype: type, Tshape: newer index = int32",
    shape=_element_dims(2),
    kernel=_get_item,
    interpret=lambda value, index, element_shape, *, element_dtype: get_host(
        value.to_items(), index, element_shape, element_dtype
    ),
    static=(2,),
    gradient=_get_item_grad,
    effects=CHECKS,
)


def _push_back(value: TensorList, tensor: Any) -> TensorList:
    if value.items is not None:
        return TensorList((*value.items, tensor))
    if not value.has_static_size:
        raise NeedsValue("a list of computed length grows")
    dense = uniform(value)
    if dense.items is not None:
        return TensorList((*dense.items, tensor))
    try:
        last = TensorList((tensor,)).stacked().buffer
        return TensorList.stack_of(lists.joined(lists.rows(dense.buffer, dense.size), last))
    except Uniformity:
        raise NeedsValue("elements of a list differ in shape") from None


def _push_grad(op: Operation, grad: Any) -> list[Any]:
    item = op.inputs[1]
    shape = shape_input(item.dims, item)
    rest, last = raw.TensorListPopBack(grad, shape, element_dtype=item.dtype)
    last.set_shape(item.shape)
    return [rest, last if differentiable(item.dtype) else None]


define_op(
    "TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant",
    attrs="element_dtype: type",
    shape=scalar_shape,
    kernel=_push_back,
    interpret=lambda value, tensor: TensorList((*(value.to_items().items or ()), tensor)),
    gradient=_push_grad,
)


def _pop_back(value: TensorList, element_shape: Any, *, element_dtype: Any) -> Any:
    if isinstance(value.size, int) and value.size == 0:
        raise InvalidArgumentError(None, None, "Trying to pop from an empty list.")
    if value.items is not None:
        last = value.items[-1]
        if last is None:
            last = unwritten_value(element_shape, element_dtype, value.size - 1)
        return TensorList(value.items[:-1]), last
    if not value.has_static_size:
        raise NeedsValue("a list of computed length shrinks")
    dense = uniform(value)
    last = lists.row(dense.buffer, dense.size - 1)
    return TensorList.stack_of(lists.rows(dense.buffer, dense.size - 1)), last


def _pop_grad(op: Operation, list_grad: Any, item_grad: Any) -> list[Any]:
    if item_grad is None:
        return [None, None]
    if list_grad is None:
        length = raw.Sub(raw.TensorListLength(op.inputs[0]), 1)
        shape = shape_input(item_grad.dims, item_grad)
        list_grad = raw.TensorListReserve(shape, length, element_dtype=item_grad.dtype)
    return [raw.TensorListPushBack(list_grad, item_grad), None]


define_op(
    "TensorListPopBack(input_handle: variant, element_shape: int32) -> "
    "(output_handle: variant, tensor: element_dtype)",
    attrs="element_dtype: type",
    shape=lambda op: [(), declared(op.inputs[1])],
    kernel=_pop_back,
    interpret=lambda value, element_shape, *, element_dtype: _pop_back(
        value.to_items(), element_shape, element_dtype=element_dtype
    ),
    static=(1,),
    gradient=_pop_grad,
)

__all__: list[str] = []
