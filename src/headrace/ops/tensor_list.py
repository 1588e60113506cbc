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
from headrace.ops import checks
from headrace.ops.build import constant, raw
from headrace.ops.checks import NeedsValue
from headrace.ops.kernels import tensor_list as lists
from headrace.ops.kernels.tensor_list import TensorList, Uniformity
from headrace.ops.registry import CHECKS, define_op
from headrace.ops.static import static_shape

_SHAPE_TYPE = "shape_type: index = int32"
_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def _differentiable(dtype: Any) -> bool:
    return dtype.name in _FLOATING


def _declared(element_shape: Tensor) -> Dims:
    """The static shape that an ``element_shape`` input declares; a scalar -1 declares nothing."""
    return None if element_shape.dims == () else static_shape(element_shape)


def known_shape(element_shape: Any) -> tuple[int, ...] | None:
    """The shape of elements from an ``element_shape`` input (-1 is unknown), if fully known."""
    sizes = np.atleast_1d(np.asarray(element_shape))
    if np.ndim(element_shape) == 0 or (sizes < 0).any():
        return None
    return tuple(int(s) for s in sizes)


def _fixed_index(value: Any) -> int | None:
    return int(value) if isinstance(value, (np.ndarray, np.generic, int)) else None


def _uniform(value: TensorList) -> TensorList:
    """The stacked form, which traced positions need."""
    try:
        return value.stacked()
    except Uniformity:
        raise NeedsValue("elements of a list differ in shape") from None


def _check_index(index: Any, size: Any) -> None:
    checks.require(
        (index >= 0) & (index < size),
        "Trying to access element {0} in a list with {1} elements.",
        index,
        size,
    )


def _unwritten_value(element_shape: Any, dtype: Any, index: Any) -> Any:
    dims = known_shape(element_shape)
    if dims is None:
        raise InvalidArgumentError(
            None,
            None,
            f"Trying to read an uninitialized tensor (element {index} of a list) but "
            "element_shape is not fully defined. Write the element first.",
        )
    return np.zeros(dims, dtype.np_dtype)


def _scalar(op: Operation) -> list[Dims]:
    return [()]


# -- making lists -------------------------------------------------------------------------------


def _reserve(_: Any, count: Any) -> Any:
    if count < 0:
        raise InvalidArgumentError(None, None, f"num_elements must be non-negative, got {count}")
    return TensorList((None,) * int(count))


define_op(
    "TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant",
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
    shape=_scalar,
    kernel=_reserve,
    interpret=_reserve,
    static=(0, 1),
)

define_op(
    "EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant",
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
    shape=_scalar,
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
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
    shape=_scalar,
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
        grad, indices, _element_shape_of(tensor), element_dtype=tensor.dtype
    )
    return [gathered, None, None, None]


def _element_shape_of(stacked: Tensor) -> Tensor:
    dims = stacked.dims
    if dims is not None and None not in dims[1:]:
        return constant(np.array(dims[1:], np.int32))
    return raw.StridedSlice(raw.Shape(stacked), [1], [0], [1], end_mask=1)  # type: ignore[no-any-return]


define_op(
    "TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, "
    "num_elements: int32) -> output_handle: variant",
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
    shape=_scalar,
    kernel=_scatter,
    interpret=lambda t, i, _, count: _place(_scatter_size(i, count), i, t),
    static=(2, 3),
    gradient=_scatter_grad,
    effects=CHECKS,
)


def _scatter_into(value: TensorList, tensor: Any, indices: Any) -> TensorList:
    if value.unwritten:
        return _scatter(tensor, indices, None, np.int32(value.size))
    dense = _uniform(value)
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
        raw.TensorListGather(grad, indices, _element_shape_of(tensor), element_dtype=tensor.dtype),
        None,
    ]


define_op(
    "TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, "
    "indices: int32) -> output_handle: variant",
    attrs="element_dtype: type",
    shape=_scalar,
    kernel=_scatter_into,
    interpret=_scatter_into_host,
    gradient=_scatter_into_grad,
    effects=CHECKS,
)

# -- elements -----------------------------------------------------------------------------------


def _set_item(
    value: TensorList, index: Any, item: Any, *, resize_if_index_out_of_bounds: bool
) -> TensorList:
    fixed = _fixed_index(index)
    if fixed is not None and value.items is not None:
        return _set_host(value, index, item, resize=resize_if_index_out_of_bounds)
    if resize_if_index_out_of_bounds:
        raise NeedsValue("a list of dynamic size is written at a computed position")
    _check_index(index, value.size)
    if value.unwritten:
        buffer = jnp.zeros((value.size, *item.shape), item.dtype)
        dense = TensorList.stack_of(buffer, value.size)
    else:
        dense = _uniform(value)
    if dense.buffer.shape[1:] != item.shape:
        raise NeedsValue("elements of a list differ in shape")
    if dense.size == 0:
        return dense
    return TensorList(buffer=lists.set_row(dense.buffer, index, item), size=dense.size)


def _set_host(value: TensorList, index: Any, item: Any, resize: bool) -> TensorList:
    items = list(value.items or ())
    position = int(index)
    if resize and position >= len(items):
        items += [None] * (position + 1 - len(items))
    _check_index(np.int64(position), len(items))
    items[position] = item
    return TensorList(tuple(items))


def _set_item_grad(op: Operation, grad: Any) -> list[Any]:
    _, index, item = op.inputs
    if not _differentiable(item.dtype):
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
        return raw.Shape(tensor)  # type: ignore[no-any-return]
    if dims is None:
        return constant(np.array(-1, np.int32))
    return constant(np.array([-1 if d is None else d for d in dims], np.int32))


define_op(
    "TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> "
    "output_handle: variant",
    attrs="element_dtype: type, resize_if_index_out_of_bounds: bool = False",
    shape=_scalar,
    kernel=_set_item,
    interpret=lambda value, index, item, *, resize_if_index_out_of_bounds: _set_host(
        value.to_items(), index, item, resize_if_index_out_of_bounds
    ),
    gradient=_set_item_grad,
    effects=CHECKS,
)


def _get_item(value: TensorList, index: Any, element_shape: Any, *, element_dtype: Any) -> Any:
    fixed = _fixed_index(index)
    if value.items is not None and fixed is not None:
        return _get_host(value, index, element_shape, element_dtype)
    _check_index(index, value.size)
    if value.repeated is not None:
        return value.repeated
    if value.unwritten:
        if known_shape(element_shape) is None:
            raise NeedsValue("the shape of the elements of a list is not known")
        return _unwritten_value(element_shape, element_dtype, "?")
    dense = _uniform(value)
    if dense.size == 0:  # the check above has failed
        return np.zeros(dense.buffer.shape[1:], element_dtype.np_dtype)
    return lists.row(dense.buffer, index)


def _get_host(value: TensorList, index: Any, element_shape: Any, element_dtype: Any) -> Any:
    items = value.items or ()
    position = int(index)
    _check_index(np.int64(position), len(items))
    item = items[position]
    return _unwritten_value(element_shape, element_dtype, position) if item is None else item


def _element_dims(position: int) -> Any:
    return lambda op: [_declared(op.inputs[position])]


def _get_item_grad(op: Operation, grad: Any) -> list[Any]:
    if not _differentiable(grad.dtype):
        return [None, None, None]
    length = raw.TensorListLength(op.inputs[0])
    return [raw.TensorListOneItem(length, op.inputs[1], grad), None, None]


define_op(
    "TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> "
    "item: element_dtype",
    attrs="element_dtype: type, Tshape: index = int32",
    shape=_element_dims(2),
    kernel=_get_item,
    interpret=lambda value, index, element_shape, *, element_dtype: _get_host(
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
    dense = _uniform(value)
    if dense.items is not None:
        return TensorList((*dense.items, tensor))
    if dense.buffer.shape[1:] != tensor.shape:
        raise NeedsValue("elements of a list differ in shape")
    return TensorList.stack_of(jnp.concatenate([dense.buffer[: dense.size], tensor[None]]))


def _push_grad(op: Operation, grad: Any) -> list[Any]:
    item = op.inputs[1]
    shape = shape_input(item.dims, item)
    rest, last = raw.TensorListPopBack(grad, shape, element_dtype=item.dtype)
    last.set_shape(item.shape)
    return [rest, last if _differentiable(item.dtype) else None]


define_op(
    "TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant",
    attrs="element_dtype: type",
    shape=_scalar,
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
            last = _unwritten_value(element_shape, element_dtype, value.size - 1)
        return TensorList(value.items[:-1]), last
    if not value.has_static_size:
        raise NeedsValue("a list of computed length shrinks")
    dense = _uniform(value)
    last = lists.row(dense.buffer, dense.size - 1)
    return TensorList.stack_of(dense.buffer[: dense.size - 1]), last


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
    shape=lambda op: [(), _declared(op.inputs[1])],
    kernel=_pop_back,
    interpret=lambda value, element_shape, *, element_dtype: _pop_back(
        value.to_items(), element_shape, element_dtype=element_dtype
    ),
    static=(1,),
    gradient=_pop_grad,
)

# -- whole lists --------------------------------------------------------------------------------


def _length(value: TensorList) -> Any:
    return np.int32(value.size) if value.has_static_size else jnp.asarray(value.size, jnp.int32)


define_op(
    "TensorListLength(input_handle: variant) -> length: int32",
    shape=_scalar,
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
        value = TensorList(tuple(lists.row(_uniform(value).buffer, t) for t in range(value.size)))
    items = (value.items or ())[:wanted]
    return TensorList((*items, *[None] * (wanted - len(items))))


define_op(
    "TensorListResize(input_handle: variant, size: int32) -> output_handle: variant",
    shape=_scalar,
    kernel=_resize,
    interpret=lambda value, size: _resize(value.to_items(), size),
    static=(1,),
    gradient=lambda op, grad: [
        raw.TensorListResize(grad, raw.TensorListLength(op.inputs[0])),
        None,
    ],
)


def _stack_shape(op: Operation) -> list[Dims]:
    element = _declared(op.inputs[1])
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
    dense = _uniform(value)
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
        raw.TensorListFromTensor(grad, op.inputs[1]) if _differentiable(grad.dtype) else None,
        None,
    ],
)


def _gather(value: TensorList, indices: Any, element_shape: Any, *, element_dtype: Any) -> Any:
    if value.unwritten:
        if known_shape(element_shape) is None:
            raise NeedsValue("the shape of the elements of a list is not known")
        return jnp.asarray(_unwritten_stack(indices.size, element_shape, element_dtype))
    if value.items is not None and isinstance(indices, np.ndarray):
        chosen = [_get_host(value, i, element_shape, element_dtype) for i in indices.ravel()]
        if not chosen:
            return np.zeros((0, *(known_shape(element_shape) or ())), element_dtype.np_dtype)
        return _uniform(TensorList(tuple(chosen))).buffer
    dense = _uniform(value)
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
    if not _differentiable(grad.dtype):
        return [None, None, None]
    rows = raw.UnsortedSegmentSum(grad, indices, raw.TensorListLength(value))
    return [raw.TensorListFromTensor(rows, op.inputs[2]), None, None]


def _gather_shape(op: Operation) -> list[Dims]:
    element, indices = _declared(op.inputs[2]), op.inputs[1].dims
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
        return [lists.row(_uniform(value).buffer, t) for t in range(value.size)]
    rows = list(value.items)
    for i, item in enumerate(rows):
        if item is None:
            shape = np.asarray(element_shape)
            if i < leading.size and shape.ndim:
                if not isinstance(leading, np.ndarray):
                    raise NeedsValue("the lengths of the elements of a list are computed")
                shape = np.concatenate([[leading[i]], shape[1:]])
            rows[i] = _unwritten_value(shape, dtype, i)
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
    element = _declared(op.inputs[1])
    return [None if not element else (None, *element[1:]), (None,)]


define_op(
    "TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) "
    "-> (tensor: element_dtype, lengths: int64)",
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
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
    rest = _element_shape_of(tensor)
    any_rows = constant(np.array([-1], np.int32))
    shape = raw.ConcatV2([any_rows, rest], constant(np.int32(0)))
    whole, _ = raw.TensorListConcatV2(grad, shape, lengths, element_dtype=tensor.dtype)
    whole.set_shape(tensor.shape)
    return [whole, None, None]


define_op(
    "TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> "
    "output_handle: variant",
    attrs=f"element_dtype: type, {_SHAPE_TYPE}",
    shape=_scalar,
    kernel=_split,
    interpret=_split,
    static=(1, 2),
    gradient=_split_grad,
)

# -- for gradients ------------------------------------------------------------------------------


def _one_item(length: Any, index: Any, item: Any) -> TensorList:
    size = _fixed_index(length)
    if size is None:
        raise NeedsValue("the length of a list is computed")
    return _set_item(TensorList((None,) * size), index, item, resize_if_index_out_of_bounds=False)


define_op(
    "TensorListOneItem(length: int32, index: int32, item: element_dtype) -> handle: variant",
    attrs="element_dtype: type",
    shape=_scalar,
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
    if value.unwritten or (value.items is not None and _fixed_index(index) is not None):
        size = value.size
        return lists.add(value, _one_item(np.int32(size), index, item))  # type: ignore[no-any-return]
    dense = _uniform(value)
    _check_index(index, dense.size)
    return TensorList(buffer=jnp.asarray(dense.buffer).at[index].add(item), size=dense.size)


define_op(
    "TensorListAccumulate(input_handle: variant, index: int32, item: element_dtype) -> "
    "output_handle: variant",
    attrs="element_dtype: type",
    shape=_scalar,
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
    shape=_scalar,
    kernel=lists.add,
    interpret=lambda a, b: lists.add(a.to_items(), b.to_items()),
    gradient=lambda op, grad: [grad, grad],
)

define_op(
    "TensorListZerosLike(input_handle: variant) -> zeros: variant",
    shape=_scalar,
    kernel=lists.zeros_like,
    interpret=lambda value: lists.zeros_like(value.to_items()),
    gradient=lambda op, grad: [None],
)

__all__: list[str] = []
