"""Reductions: sums, products, extremes and their positions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph.shapes import num_elements_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import flops
from headrace.ops.core.array_util import is_half, summed
from headrace.ops.core.build import raw
from headrace.ops.core.reducing import extreme_in_vectors, in_vectors, position_in_vectors
from headrace.ops.core.registry import NotDifferentiable, OpDef, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.math.elementwise_util import BOOLEAN, NUMBERS, REALS, scalar, shape_of
from headrace.ops.math.means import integer_mean

__all__: list[str] = []

Axes = tuple[int, ...]
Grads = list[Tensor | None]


# -- axes and shapes ----------------------------------------------------------------------------


def normal_axes(indices: Any, rank: int) -> Axes:
    """Axes counted from the front, in order.

    Raises:
        ValueError: if one is out of range or stands twice.
    """
    axes = []
    if np.ndim(indices) > 1:
        raise ValueError(
            f"Reduction indices must be at most rank 1 but are rank {np.ndim(indices)}."
        )
    for index in np.ravel(indices).tolist():
        if not -rank <= index < rank:
            raise ValueError(
                f"Invalid reduction dimension {index} for input with {rank} dimensions."
            )
        axes.append(index + rank if index < 0 else index)
    if len(set(axes)) != len(axes):
        raise ValueError(f"Invalid reduction arguments: Axes contains duplicate dimension: {axes}")
    return tuple(sorted(axes))


def reduced_dims(dims: Sequence[Any], axes: Axes, keep_dims: bool) -> tuple[Any, ...]:
    """The shape that is left."""
    if keep_dims:
        return tuple([1 if i in axes else d for i, d in enumerate(dims)])
    return tuple([d for i, d in enumerate(dims) if i not in axes])


def _reduction_shape(op: Operation) -> list[Dims]:
    dims, indices = op.inputs[0].dims, op.inputs[1]
    keep = op.attrs["keep_dims"]
    value = static_value(indices)
    if dims is None:
        return [None]
    if value is not None:
        return [reduced_dims(dims, normal_axes(value, len(dims)), keep)]
    if keep:
        return [(None,) * len(dims)]
    count = 1 if indices.dims == () else indices.dims[0] if indices.dims else None
    return [None if count is None else (None,) * (len(dims) - count)]


# -- kernels ------------------------------------------------------------------------------------


def _kernel(reduce: Callable[[Any, Axes], Any]) -> Callable[..., Any]:
    def kernel(x: Any, indices: Any, *, keep_dims: bool) -> Any:
        axes = normal_axes(indices, len(x.shape))
        result = reduce(x, axes)
        if keep_dims:
            return lax.reshape(result, reduced_dims(x.shape, axes, True))
        return result

    return kernel


def _interpreter(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def interpret(x: Any, indices: Any, *, keep_dims: bool) -> Any:
        return reduce(x, normal_axes(indices, x.ndim), keep_dims)

    return interpret


_reduce_sum = partial(in_vectors, lax.reduce_sum)
_reduce_prod = partial(in_vectors, lax.reduce_prod)
_max = partial(extreme_in_vectors, lax.reduce_max)
_min = partial(extreme_in_vectors, lax.reduce_min)


def _sum(x: Any, axes: Axes) -> Any:
    if is_half(x):
        wide = lax.convert_element_type(x, np.float32)
        return lax.convert_element_type(_reduce_sum(wide, axes), x.dtype)
    return _reduce_sum(x, axes)


def _count(x: Any, axes: Axes) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def _mean(x: Any, axes: Axes) -> Any:
    count = _count(x, axes)
    if x.dtype.kind in "iu":
        many = max(count, 1)
        return integer_mean(jnp, x, many, many, lambda part: _reduce_sum(part, axes))
    wide = lax.convert_element_type(x, np.float32) if is_half(x) else x
    total = _reduce_sum(wide, axes)
    return lax.convert_element_type(lax.div(total, lax.full_like(total, count)), x.dtype)


def _mean_np(x: Any, axes: Axes, keep: bool) -> Any:
    count = _count(x, axes)
    if x.dtype.kind in "iu":
        many = max(count, 1)

        def add(part: Any) -> Any:
            return np.sum(part, axis=axes, keepdims=keep, dtype=part.dtype)

        return integer_mean(np, x, many, many, add)
    wide = x.astype(np.float32) if is_half(x) else x
    total = np.sum(wide, axis=axes, keepdims=keep)
    return (total / scalar(count, wide)).astype(x.dtype)


def _prod(x: Any, axes: Axes) -> Any:
    if is_half(x):
        wide = lax.convert_element_type(x, np.float32)
        return lax.convert_element_type(_reduce_prod(wide, axes), x.dtype)
    return _reduce_prod(x, axes)


def _prod_np(x: Any, axes: Axes, keep: bool) -> Any:
    if is_half(x):
        return np.prod(x.astype(np.float32), axis=axes, keepdims=keep).astype(x.dtype)
    return np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _lowest(dtype: Any) -> Any:
    return dtype.type(-np.inf) if dtype.kind in "fV" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return dtype.type(np.inf) if dtype.kind in "fV" else np.iinfo(dtype).max


def _max_np(x: Any, axes: Axes, keep: bool) -> Any:
    return np.max(x, axis=axes, keepdims=keep, initial=_lowest(x.dtype))


def _min_np(x: Any, axes: Axes, keep: bool) -> Any:
    return np.min(x, axis=axes, keepdims=keep, initial=_highest(x.dtype))


def _norm_of_integers(xp: Any, x: Any, add: Callable[[Any], Any]) -> Any:
    """Cut towards zero, and to the range of the type: squares of integers soon leave theirs."""
    wide = x.astype(np.float64)
    norm = xp.floor(xp.sqrt(add(wide * wide)))
    highest = np.iinfo(x.dtype).max
    fits = norm < float(highest)
    return xp.where(fits, xp.where(fits, norm, 0).astype(x.dtype), x.dtype.type(highest))


def _euclidean_norm(x: Any, axes: Axes) -> Any:
    if x.dtype.kind in "iu":
        return _norm_of_integers(jnp, x, lambda part: _reduce_sum(part, axes))
    if x.dtype.kind == "c":
        squares = lax.mul(x, lax.conj(x))
    elif is_half(x):
        wide = lax.convert_element_type(x, np.float32)
        return lax.convert_element_type(_euclidean_norm(wide, axes), x.dtype)
    else:
        squares = lax.mul(x, x)
    return lax.sqrt(_reduce_sum(squares, axes))


def _euclidean_norm_np(x: Any, axes: Axes, keep: bool) -> Any:
    if x.dtype.kind in "iu":
        return _norm_of_integers(np, x, lambda part: np.sum(part, axis=axes, keepdims=keep))
    wide = x.astype(np.float32) if is_half(x) else x
    squares = wide * np.conj(wide) if x.dtype.kind == "c" else wide * wide
    total = np.sum(squares, axis=axes, keepdims=keep, dtype=wide.dtype)
    return np.sqrt(total).astype(x.dtype)


# -- gradients ----------------------------------------------------------------------------------


def _static_axes(op: Operation) -> Axes | None:
    """The reduced axes if rank and indices are known while the graph is built."""
    dims, value = op.inputs[0].dims, static_value(op.inputs[1])
    if dims is None or value is None:
        return None
    return normal_axes(value, len(dims))


def _kept(op: Operation, tensor: Tensor) -> Tensor:
    """``tensor`` (of the output's shape) such that it broadcasts against the input."""
    if op.attrs["keep_dims"]:
        return tensor
    axes = _static_axes(op)
    if axes is None:
        whole = raw.Sum(op.inputs[0], op.inputs[1], keep_dims=True)
        return raw.Reshape(tensor, raw.Shape(whole))
    if axes == tuple(range(len(axes))):
        return tensor
    dims = op.inputs[0].dims
    assert dims is not None
    kept = reduced_dims(dims, axes, True)
    if None not in kept:
        return raw.Reshape(tensor, np.array(kept, np.int32))
    for axis in axes:
        tensor = raw.ExpandDims(tensor, axis)
    return tensor


def _sum_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.BroadcastTo(_kept(op, g), shape_of(op.inputs[0])), None]


def _mean_grad(op: Operation, g: Tensor) -> Grads:
    before = num_elements_static(op.inputs[0].dims)
    after = num_elements_static(op.outputs[0].dims)
    if before is not None and after:
        scaled = raw.RealDiv(g, float(before // after))
    else:
        sizes = raw.Size(op.inputs[0]), raw.Maximum(raw.Size(op.outputs[0]), 1)
        scaled = raw.RealDiv(g, raw.Cast(raw.FloorDiv(*sizes), DstT=g.dtype))
    return _sum_grad(op, scaled)


def _extreme_grad(op: Operation, g: Tensor) -> Grads:
    """Elements that are equally extreme share the gradient."""
    x, y = op.inputs[0], _kept(op, op.outputs[0])
    chosen = raw.Cast(raw.Equal(y, x), DstT=g.dtype)
    count = raw.Sum(chosen, op.inputs[1], keep_dims=True)
    return [raw.Mul(raw.RealDiv(chosen, count), _kept(op, g)), None]


def _norm_grad(op: Operation, g: Tensor) -> Grads:
    scale = raw.RealDiv(g, op.outputs[0])
    return [raw.Mul(op.inputs[0], _kept(op, scale)), None]


# -- the table ----------------------------------------------------------------------------------


_OTHER = Traits(reduces="other")


def _reduction(
    name: str,
    types: str,
    reduce: Callable[[Any, Axes], Any],
    numpy: Callable[..., Any],
    gradient: Any,
    traits: Traits = _OTHER,
) -> OpDef:
    return define_op(
        f"{name}(input: T, reduction_indices: Tidx) -> output: T",
        attrs=f"keep_dims: bool = False, T: {types}, Tidx: index = int32",
        shape=_reduction_shape,
        kernel=_kernel(reduce),
        interpret=_interpreter(numpy),
        static=(1,),
        gradient=gradient,
        cost=_input_size,
        traits=traits,
    )


def _input_size(op: Operation) -> float:
    size = num_elements_static(op.inputs[0].dims)
    return float(size or 0)


def _logical(name: str, reduce: Callable[[Any, Axes], Any], numpy: Callable[..., Any]) -> OpDef:
    def interpret(x: Any, axes: Axes, keep: bool) -> Any:
        return numpy(x, axis=axes, keepdims=keep)

    return define_op(
        f"{name}(input: bool, reduction_indices: Tidx) -> output: bool",
        attrs="keep_dims: bool = False, Tidx: index = int32",
        shape=_reduction_shape,
        kernel=_kernel(reduce),
        interpret=_interpreter(interpret),
        static=(1,),
        gradient=BOOLEAN,
        cost=_input_size,
        traits=_OTHER,
    )


_LINEAR = Traits(linear=slice(1), reduces="sum", flops=flops.reduction)
SUM = _reduction("Sum", NUMBERS, _sum, summed, _sum_grad, traits=_LINEAR)
_LINEAR_MEAN = _LINEAR.but(reduces="mean", flops=flops.mean)
MEAN = _reduction("Mean", NUMBERS, _mean, _mean_np, _mean_grad, traits=_LINEAR_MEAN)
PROD = _reduction("Prod", NUMBERS, _prod, _prod_np, None)
MAX = _reduction("Max", REALS, _max, _max_np, _extreme_grad)
MIN = _reduction("Min", REALS, _min, _min_np, _extreme_grad)
EUCLIDEAN_NORM = _reduction(
    "EuclideanNorm", NUMBERS, _euclidean_norm, _euclidean_norm_np, _norm_grad
)
ALL = _logical("All", partial(in_vectors, lax.reduce_and), np.all)
ANY = _logical("Any", partial(in_vectors, lax.reduce_or), np.any)


# -- the gradient of broadcasting ---------------------------------------------------------------


def _repeated(x: Any, like: Any) -> tuple[Axes, tuple[int, ...]]:
    """The axes of ``x`` along which something of the shape of ``like`` was repeated."""
    lead = len(x.shape) - len(like.shape)
    fits = lead >= 0 and all(b in (1, a) for a, b in zip(x.shape[lead:], like.shape, strict=True))
    if not fits:
        raise ValueError(f"Shape {list(like.shape)} does not broadcast to {list(x.shape)}.")
    inner = [i for i, b in enumerate(like.shape, lead) if b == 1 and x.shape[i] != 1]
    return (*range(lead), *inner), like.shape


def _sum_like(x: Any, like: Any) -> Any:
    axes, shape = _repeated(x, like)
    if not axes:
        return x
    result = _sum(x, axes)
    return result if result.shape == shape else lax.reshape(result, shape)


def _sum_like_np(x: Any, like: Any) -> Any:
    axes, shape = _repeated(x, like)
    return np.reshape(summed(x, axes, False), shape) if axes else x


def _sum_like_grad(op: Operation, g: Tensor) -> Grads:
    return [raw.BroadcastTo(g, shape_of(op.inputs[0])), None]


define_op(
    "SumLike(x: T, like: T) -> y: T",
    attrs=f"T: {NUMBERS}",
    shape=lambda op: [op.inputs[1].dims],
    kernel=_sum_like,
    interpret=_sum_like_np,
    gradient=_sum_like_grad,
    cost=_input_size,
)


# -- positions of extremes ----------------------------------------------------------------------

#: NumPy finds them in rows of so many elements, in tensors of so many, sooner than a program.
_LONG_ROW, _MANY_ELEMENTS = 128, 1 << 17


def _one_axis(index: Any, rank: int) -> int:
    if np.size(index) != 1:
        raise ValueError(f"Expected one dimension, but got {np.ravel(index).tolist()}")
    axis = int(np.ravel(index)[0])
    if not -rank <= axis < rank:
        raise ValueError(f"Expected dimension in the range [{-rank}, {rank}), but got {axis}")
    return axis + rank if axis < 0 else axis


def _arg_shape(op: Operation) -> list[Dims]:
    dims, value = op.inputs[0].dims, static_value(op.inputs[1])
    if dims is None:
        return [None]
    if value is None:
        return [(None,) * (len(dims) - 1)]
    axis = _one_axis(value, len(dims))
    if dims[axis] == 0:
        raise ValueError(f"Reduction axis {axis} is empty in shape {list(dims)}")
    return [(*dims[:axis], *dims[axis + 1 :])]


def _prepared_arg(x: Any, index: Any) -> tuple[Any, int]:
    axis = _one_axis(index, len(x.shape))
    if x.shape[axis] == 0:
        raise ValueError(f"Reduction axis {axis} is empty in shape {list(x.shape)}")
    return x.astype(np.uint8) if x.dtype.kind == "b" else x, axis


def _without_nan(xp: Any, x: Any, last: Any) -> Any:
    """NaN is never an extreme: TensorFlow compares with < and >."""
    return xp.where(x == x, x, x.dtype.type(last)) if x.dtype.kind in "fV" else x


def _numpy_finds(x: Any, index: Any) -> bool:
    """Whether NumPy is faster: along rows it compares vectors, XLA single elements."""
    rank = len(x.shape)
    return (
        rank > 0
        and _one_axis(index, rank) == rank - 1
        and x.shape[-1] >= _LONG_ROW
        and math.prod(x.shape) >= _MANY_ELEMENTS
    )


def _arg(name: str, last: float, compiled: Any, numpy: Any, index_types: str) -> OpDef:
    def kernel(x: Any, index: Any, *, output_type: Any) -> Any:
        x, axis = _prepared_arg(x, index)
        plain, reduce = compiled
        place = position_in_vectors(plain, reduce, _without_nan(jnp, x, last), axis)
        return lax.convert_element_type(place, output_type.np_dtype)

    def interpret(x: Any, index: Any, *, output_type: Any) -> Any:
        x, axis = _prepared_arg(x, index)
        place = numpy(x, axis=axis, keepdims=True)
        found = np.take_along_axis(x, place, axis)
        if not (found == found).all():  # NumPy takes the first NaN
            place = numpy(_without_nan(np, x, last), axis=axis, keepdims=True)
        return place.squeeze(axis).astype(output_type.np_dtype)

    return define_op(
        f"{name}(input: T, dimension: Tidx) -> output: output_type",
        attrs=f"T: type, Tidx: index = int32, output_type: {index_types} = int64",
        shape=_arg_shape,
        kernel=kernel,
        interpret=interpret,
        static=(1,),
        gradient=NotDifferentiable("the result is a position"),
        cost=_input_size,
        traits=Traits(flops=flops.reduction, numpy_calls=1, numpy_wins=_numpy_finds),
    )


_MOST = (lax.argmax, lax.reduce_max)
_LEAST = (lax.argmin, lax.reduce_min)
ARG_MAX = _arg("ArgMax", -np.inf, _MOST, np.argmax, "{int16, uint16, int32, int64}")
ARG_MIN = _arg("ArgMin", np.inf, _LEAST, np.argmin, "index")
