"""Elementwise ops of many inputs, or with rules of their own: sums, clipping, buckets."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.graph.composite import composite_function
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import flops
from headrace.ops.core.array_util import both, is_half, like_first, summed
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import ELEMENTWISE, Stacked
from headrace.ops.math.elementwise_util import (
    INTEGER,
    NUMBERS,
    REALS,
)

# -- sums ---------------------------------------------------------------------------------------


def _merged_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    for tensor in op.inputs[1:]:
        if tensor.dims != dims:
            dims = merge_static(dims, tensor.dims)
    return [dims]


def _check_equal(values: Sequence[Any]) -> None:
    shape = values[0].shape
    for i, value in enumerate(values):
        if value.shape != shape:
            raise ValueError(
                f"Inputs to operation must have the same size and shape. Input 0: {list(shape)} "
                f"!= input {i}: {list(value.shape)}"
            )


def _add_n(inputs: list[Any]) -> Any:
    return _added(lax.add, inputs)


def _add_n_np(inputs: list[Any]) -> Any:
    return _added(np.add, inputs)


def _added(add: Callable[[Any, Any], Any], inputs: list[Any]) -> Any:
    _check_equal(inputs)
    if len(inputs) > 2 and is_half(inputs[0]):
        wide = functools.reduce(add, [x.astype(np.float32) for x in inputs])
        return wide.astype(inputs[0].dtype)
    return functools.reduce(add, inputs)


def _add_stack(values: Any) -> Any:
    if is_half(values):
        return _add_stack(values.astype(np.float32)).astype(values.dtype)
    return lax.reduce(values, np.zeros((), values.dtype), lax.add, (0,))


def _add_stack_np(values: Any) -> Any:
    return summed(values, 0)


def _add_n_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    return [g] * len(op.inputs)


define_op(
    "AddN(inputs: N * T) -> sum: T",
    attrs=f"T: {NUMBERS}, N: int >= 1",
    shape=_merged_shape,
    kernel=_add_n,
    interpret=_add_n_np,
    gradient=_add_n_grad,
    traits=ELEMENTWISE.but(
        cheap=True,
        flops=flops.addition,
        linear=slice(None),
        takes_stack=Stacked(_add_stack, _add_stack_np),
        made_once=True,
    ),
)

define_op(
    "AccumulateNV2(inputs: N * T) -> sum: T",
    attrs=f"T: {NUMBERS}, N: int >= 1, shape: shape",
    shape=_merged_shape,
    kernel=_add_n,
    interpret=_add_n_np,
    gradient=_add_n_grad,
)


@public("add_n", "math.add_n")
@composite_function
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and type.

    Raises:
        ValueError: if ``inputs`` is no list of at least one tensor, or shapes or types differ.
        InvalidArgumentError: when run, if shapes known only then differ.

    >>> with tf.Session() as session:
    ...     session.run(add_n([[1, 2], [3, 4], [5, 6]])).tolist()
    [9, 12]
    """
    tensors = _tensor_list(inputs, "add_n")
    if len(tensors) == 1 and name is None:
        return tensors[0]
    return raw.AddN(tensors, name=name)


@public("accumulate_n", "math.accumulate_n")
def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """The sum of tensors of one shape and type; ``shape`` tells what the inputs do not.

    Raises:
        ValueError: if ``inputs`` is no list of at least one tensor, or shapes or types differ.

    >>> with tf.Session() as session:
    ...     session.run(accumulate_n([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    tensors = _tensor_list(inputs, "accumulate_n")
    total = raw.AddN(tensors, name=name or "AccumulateNV2")
    if tensor_dtype is not None and total.dtype != tensor_dtype:
        raise TypeError(f"tensor_dtype is {tensor_dtype}, but input is of type {total.dtype!r}")
    if shape is not None:
        total.set_shape(shape)
    return total


def _tensor_list(inputs: Any, function: str) -> list[Tensor]:
    message = (
        f"{function}: inputs must be a list of at least one Tensor/IndexedSlices with the same "
        "dtype and shape"
    )
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(message)
    dtype = next((t.dtype for t in inputs if isinstance(t, Tensor)), None)
    return [convert_to_tensor(v, dtype) for v in inputs]


# -- clipping -----------------------------------------------------------------------------------


def _clip_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    for tensor in op.inputs[1:]:
        bound = tensor.dims
        if bound is not None and bound != () and dims is not None:
            if len(bound) != len(dims):
                raise ValueError(
                    f"clip_value_min and clip_value_max must be scalars or of the shape of t: "
                    f"{shape_text(bound)} against {shape_text(dims)}"
                )
            merge_static(dims, bound)
    return [dims]


def _clip(xp: Any, t: Any, low: Any, high: Any) -> Any:
    return xp.maximum(xp.minimum(t, high), low)


def _clip_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    t, low, high = op.inputs
    zero = raw.ZerosLike(g)
    below, above = raw.Less(t, low), raw.Greater(t, high)
    inner = raw.Select(raw.LogicalOr(below, above), zero, g)
    sides = [raw.Select(below, g, zero), raw.Select(above, g, zero)]
    return [inner, *[_like_bound(s, b) for s, b in zip(sides, (low, high), strict=True)]]


def _like_bound(grad: Tensor, bound: Tensor) -> Tensor:
    """The gradient of a bound: summed up where the bound is one number for all."""
    if bound.dims == ():
        return raw.Sum(grad, raw.Range(0, raw.Rank(grad), 1))
    return grad


define_op(
    "ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> output: T",
    attrs=f"T: {REALS}",
    shape=_clip_shape,
    gradient=_clip_grad,
    **both(_clip),
    traits=ELEMENTWISE,
)


@public("clip_by_value")
@composite_function
def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor | Any:
    """``t`` with what is outside ``[clip_value_min, clip_value_max]`` moved to the nearer end.

    Args:
        t: tensor or IndexedSlices of any shape, which the result has.
        clip_value_min, clip_value_max: numbers or tensors that broadcast to ``t``.

    Raises:
        TypeError: if ``t`` does not hold real numbers, or the bounds are of another type.
        ValueError: if the bounds would make the result larger than ``t``.

    >>> with tf.Session() as session:
    ...     session.run(clip_by_value([-5, 3, 9], 0, 6)).tolist()
    [0, 3, 6]
    """
    is_sparse = hasattr(t, "indices") and hasattr(t, "values")
    with default_graph_stack.current().name_scope(name or "clip_by_value") as scope:
        values = convert_to_tensor(t.values if is_sparse else t, name="t")
        below = raw.Minimum(values, clip_value_max)
        _check_same(below, values)
        result = raw.Maximum(below, clip_value_min, name=scope)
        _check_same(result, values)
    return type(t)(result, t.indices, t.dense_shape) if is_sparse else result


def _check_same(result: Tensor, values: Tensor) -> None:
    merge_static(values.dims, result.dims)


# -- buckets, cross products, the incomplete beta function --------------------------------------


def _bucketize(xp: Any, value: Any, *, boundaries: Any) -> Any:
    limits = np.asarray(boundaries, np.float32)
    if value.dtype != np.float32:
        limits = limits.astype(np.float64)
        value = value.astype(np.float64)
    return (
        xp.searchsorted(limits, value.ravel(), side="right").reshape(value.shape).astype(np.int32)
    )


def _sorted_boundaries(op: Operation) -> list[Dims]:
    boundaries = op.attrs["boundaries"]
    if any(a > b for a, b in itertools.pairwise(boundaries)):
        raise ValueError(f"Expected sorted boundaries, but they are {list(boundaries)}")
    return like_first(op)


def _bucketize_kernel(value: Any, *, boundaries: Any) -> Any:
    return _bucketize(jnp, value, boundaries=boundaries)


def _bucketize_np(value: Any, *, boundaries: Any) -> Any:
    return _bucketize(np, np.asarray(value), boundaries=boundaries)


define_op(
    "Bucketize(input: T) -> output: int32",
    attrs="T: {int32, int64, float32, float64}, boundaries: list(float)",
    shape=_sorted_boundaries,
    kernel=_bucketize_kernel,
    interpret=_bucketize_np,
    gradient=INTEGER,
)


def _cross_shape(op: Operation) -> list[Dims]:
    dims = merge_static(op.inputs[0].dims, op.inputs[1].dims)
    if dims is not None and (not dims or dims[-1] not in (3, None)):
        raise ValueError(f"The last dimension of cross must be 3, the shape is {shape_text(dims)}")
    return [dims]


def _cross(xp: Any, a: Any, b: Any) -> Any:
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


def _cross_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    a, b = op.inputs
    return [raw.Cross(b, g), raw.Cross(g, a)]


define_op(
    "Cross(a: T, b: T) -> product: T",
    attrs=f"T: {REALS}",
    shape=_cross_shape,
    gradient=_cross_grad,
    **both(_cross),
)


@public("cross", "linalg.cross")
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of 3-vectors in the last dimension; both ``[..., 3]``, as is the result.

    Raises:
        TypeError: if they are not real numbers of one type.
        ValueError: if the shapes differ, or the last dimension is not 3.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    return raw.Cross(a, b, name=name)


def _betainc_shape(op: Operation) -> list[Dims]:
    dims: Dims = ()
    for tensor in op.inputs:
        if tensor.dims != ():
            dims = merge_static(dims, tensor.dims) if dims != () else tensor.dims
    return [dims]


def _betainc(a: Any, b: Any, x: Any) -> Any:
    """XLA's continued fraction, with TensorFlow's values at the ends."""
    a, b, x = jnp.broadcast_arrays(a, b, x)
    nan = lax.full_like(x, np.nan)
    result = lax.select(jnp.isinf(a) | jnp.isinf(b), nan, lax.betainc(a, b, x))
    result = lax.select((x == 0) | (x == 1), x, result)
    return lax.select((a <= 0) | (b <= 0), nan, result)


def _betainc_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    a, b, x = op.inputs
    norm = raw.Sub(raw.AddV2(raw.Lgamma(a), raw.Lgamma(b)), raw.Lgamma(raw.AddV2(a, b)))
    powers = raw.AddV2(
        raw.Mul(raw.Sub(b, 1), raw.Log1p(raw.Neg(x))), raw.Mul(raw.Sub(a, 1), raw.Log(x))
    )
    slope = raw.Mul(g, raw.Exp(raw.Sub(powers, norm)))
    return [None, None, slope if x.dims != () else _like_bound(slope, x)]


define_op(
    "Betainc(a: T, b: T, x: T) -> z: T",
    attrs="T: {float32, float64}",
    shape=_betainc_shape,
    kernel=_betainc,
    gradient=_betainc_grad,
)


@public("betainc", "math.betainc")
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function ``I_x(a, b)``, elementwise.

    See the Digital Library of Mathematical Functions, 8.17.2.

    Args:
        a, b, x: float32 or float64, all of one shape, or scalars; ``x`` in [0, 1].

    Raises:
        TypeError: for another type.
        ValueError: if the shapes differ.
        InvalidArgumentError: when run, if shapes known only then differ.
    """
    return raw.Betainc(a, b, x, name=name)
