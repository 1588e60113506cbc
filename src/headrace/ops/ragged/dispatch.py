"""What public functions do when they meet a ragged tensor.

Functions made of ops listed as elementwise need no entry here: their ops dispatch. The others are
marked ``composite_function`` where they are defined, and look up their handler by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.graph import dtypes
from headrace.ops.core.build import raw
from headrace.ops.core.old_arguments import concat_arguments
from headrace.ops.math.reduction_api import one_of
from headrace.ops.ragged import array, math
from headrace.ops.ragged.elementwise import elementwise
from headrace.ops.ragged.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from headrace.ops.ragged.value import positive_axis
from headrace.ops.state.scopes_api import scope_or


def call_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """The result of a public function with ragged arguments, or NotImplemented."""
    handler = _HANDLERS.get(function.__name__)
    if handler is not None:
        return handler(*args, **kwargs)
    count = _ELEMENTWISE.get(function.__name__)
    if count is None:
        return NotImplemented
    return _of_values(function, count, args, kwargs)


#: Functions of several ops that are elementwise in their first arguments: how many these are.
_ELEMENTWISE = {
    "abs": 1,
    "angle": 1,
    "clip_by_value": 3,
    "conj": 1,
    "div": 2,
    "divide": 2,
    "dropout": 1,
    "floordiv": 2,
    "imag": 1,
    "leaky_relu": 1,
    "log_sigmoid": 1,
    "logical_xor": 2,
    "ones_like": 1,
    "real": 1,
    "saturate_cast": 1,
    "swish": 1,
    "truediv": 2,
    "zeros_like": 1,
}


def _of_values(
    function: Callable[..., Any], count: int, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    import inspect

    bound = inspect.signature(function).bind(*args, **kwargs)
    names = list(bound.signature.parameters)[:count]
    values = [bound.arguments.pop(n) for n in names if n in bound.arguments]
    return elementwise(lambda *flat: function(*flat, **bound.arguments), *values)


# -- handlers, with the signatures of their functions -------------------------------------------


def _reduce(
    kind: str,
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Any:
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    with scope_or(name, f"RaggedReduce{kind}"):
        return math.reduce(kind, input_tensor, axis, bool(keep))


def _concat(values: Any, axis: Any = None, name: str = "concat", concat_dim: Any = None) -> Any:
    values, axis = concat_arguments(values, axis, concat_dim)
    return array.concat(values, axis, name)


def _gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Any:
    rank = None
    if isinstance(params, RaggedTensor):
        rank = params.shape.ndims
    axis = batch_dims if axis is None else axis
    if not isinstance(axis, int):
        raise ValueError("A ragged gather needs an axis that is known while the graph is built.")
    axis = positive_axis(axis, rank)
    if axis == batch_dims == 0:
        return array.gather(params, indices, name)
    shape = getattr(indices, "shape", None)
    if axis == batch_dims and shape is not None and shape.ndims == batch_dims + 1:
        return array.batch_gather(params, indices, name)
    raise ValueError(
        f"A ragged gather with axis={axis} and batch_dims={batch_dims} is not supported: axis must "
        "equal batch_dims, and indices have one dimension more."
    )


def _gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Any:
    if batch_dims:
        raise ValueError("batch_dims != 0 is not supported for ragged gather_nd yet.")
    return array.gather_nd(params, indices, name)


def _expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    return array.expand_dims(input, one_of("axis", axis, "dim", dim), name)


def _squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Any:
    axes = one_of("axis", axis, "squeeze_dims", squeeze_dims)
    return array.squeeze(input, axes, name)


def _size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Any:
    return raw.Size(input.flat_values, out_type=out_type, name=name)


def _rank(input: Any, name: str | None = None) -> Any:
    return raw.AddV2(raw.Rank(input.flat_values), input.ragged_rank, name=name or "RaggedRank")


def _one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    from headrace.ops.array.layout_api import one_hot

    if axis is not None:
        axis = positive_axis(axis, (indices.shape.ndims or 0) + 1) - indices.ragged_rank
        if axis < 1:
            raise ValueError("axis may not be less than indices.ragged_rank.")
    return indices.with_flat_values(
        one_hot(indices.flat_values, depth, on_value, off_value, axis, dtype, name)
    )


def _boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Any:
    if axis:
        raise ValueError("A ragged boolean_mask is along the first axis only.")
    return array.boolean_mask(tensor, mask, name)


def _embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Any:
    from headrace.ops.nn.embedding import embedding_lookup

    if not isinstance(ids, RaggedTensor):
        return NotImplemented
    found = embedding_lookup(params, ids.flat_values, partition_strategy, name, True, max_norm)
    return ids.with_flat_values(found)


def _segment(
    kind: str, data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Any:
    return math.unsorted_segment(kind, data, segment_ids, num_segments, name)


def _reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    axes = [axis] if isinstance(axis, int) else list(axis)
    with scope_or(name, "Reverse"):
        key: list[Any] = [slice(None)] * (tensor.shape.ndims or 0)
        for one in axes:
            key[positive_axis(one, tensor.shape.ndims)] = slice(None, None, -1)
        return tensor[tuple(key)]


def _add_n(inputs: Any, name: str | None = None) -> Any:
    tensors = [convert_to_tensor_or_ragged_tensor(i) for i in inputs]
    return elementwise(lambda *flat: raw.AddN(list(flat), name=name), *tensors)


def _map_fn(*args: Any, **kwargs: Any) -> Any:
    from headrace.ops.ragged.map import map_fn

    return map_fn(*args, **kwargs)


_HANDLERS: dict[str, Callable[..., Any]] = {
    **{
        f"reduce_{kind}": partial(_reduce, kind.capitalize())
        for kind in ("sum", "mean", "prod", "max", "min", "all", "any")
    },
    **{
        f"unsorted_segment_{kind}": partial(_segment, kind.capitalize())
        for kind in ("sum", "prod", "max", "min", "mean")
    },
    "unsorted_segment_sqrt_n": partial(_segment, "SqrtN"),
    "add_n": _add_n,
    "batch_gather": array.batch_gather,
    "boolean_mask": _boolean_mask,
    "concat": _concat,
    "embedding_lookup": _embedding_lookup,
    "expand_dims": _expand_dims,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "map_fn": _map_fn,
    "one_hot": _one_hot,
    "rank": _rank,
    "reverse": _reverse,
    "size": _size,
    "squeeze": _squeeze,
    "stack": array.stack,
    "tile": array.tile,
    "where": array.where,
    "where_v2": array.where,
}
