"""Local response and fused batch normalisation with TensorFlow's semantics, traceable by JAX."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.core.array_util import widened
from headrace.ops.core.reducing import in_vectors


def column_sums(x: jax.Array) -> jax.Array:
    """Sum of `x` over all dimensions but the last: shape [x.shape[-1]], dtype of `x`."""
    axes = tuple(range(x.ndim - 1))
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.sum(x, axis=axes)
    sums: jax.Array = in_vectors(lax.reduce_sum, widened(x), axes)
    return sums.astype(x.dtype)


# --- local response normalisation ------------------------------------------------------------


def _depth_sums(x: jax.Array, radius: int) -> jax.Array:
    """Sum over the channels at most `radius` away."""
    depth = x.shape[-1]
    radius = min(radius, max(depth - 1, 0))
    if radius > 16:
        distance = np.abs(np.subtract.outer(np.arange(depth), np.arange(depth)))
        return x @ jnp.asarray(distance <= radius, x.dtype)
    padded = lax.pad(x, jnp.zeros((), x.dtype), [*[(0, 0, 0)] * (x.ndim - 1), (radius, radius, 0)])
    total = padded[..., :depth]
    for shift in range(1, 2 * radius + 1):
        total = total + padded[..., shift : shift + depth]
    return total


def _power(norm: jax.Array, beta: float) -> jax.Array:
    """norm ** -beta; the usual exponents without the slow general power."""
    if beta == 1.0:
        return 1.0 / norm
    if beta == 0.5:
        return lax.rsqrt(norm)
    if beta == 0.75:
        root = lax.rsqrt(norm)
        return root * jnp.sqrt(root)
    return jnp.power(norm, -beta)


def lrn(
    x: jax.Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> jax.Array:
    """x / (bias + alpha * sum of x**2 over the channels within `depth_radius`) ** beta.

    `x` is [n, h, w, c]; the result has its shape and dtype.
    """
    wide = widened(x)
    norm = bias + alpha * _depth_sums(wide * wide, depth_radius)
    return (wide * _power(norm, beta)).astype(x.dtype)


def lrn_grad(
    input_grads: jax.Array,
    input_image: jax.Array,
    output_image: jax.Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> jax.Array:
    """Gradient of `lrn` for `input_image`, given its output and the gradient of that.

    All three and the result have one shape and dtype.
    """
    grads, x, y = widened(input_grads), widened(input_image), widened(output_image)
    norm = bias + alpha * _depth_sums(x * x, depth_radius)
    spread = _depth_sums(grads * y / norm, depth_radius)
    dx = grads * _power(norm, beta) - 2.0 * alpha * beta * x * spread
    return dx.astype(input_image.dtype)


# --- fused batch normalisation ---------------------------------------------------------------


class BatchNorm(NamedTuple):
    """Results of `fused_batch_norm`; all but `y` have shape [channels].

    `reserve_1` and `reserve_2` are what `fused_batch_norm_grad` wants: the mean and the
    variance of the batch (without correction) in training, the given ones otherwise.
    """

    y: jax.Array
    batch_mean: jax.Array
    batch_variance: jax.Array
    reserve_1: jax.Array
    reserve_2: jax.Array


class BatchNormGrad(NamedTuple):
    """Results of `fused_batch_norm_grad`: like the input, and twice [channels]."""

    x: jax.Array
    scale: jax.Array
    offset: jax.Array


def _channels_last(x: jax.Array, data_format: str) -> jax.Array:
    if data_format in ("NHWC", "NDHWC"):
        return x
    if data_format in ("NCHW", "NCDHW"):
        return jnp.moveaxis(x, 1, -1)
    raise ValueError(f"data_format must be NHWC, NCHW, NDHWC or NCDHW, got {data_format!r}")


def _restore(x: jax.Array, data_format: str) -> jax.Array:
    return jnp.moveaxis(x, -1, 1) if data_format in ("NCHW", "NCDHW") else x


def fused_batch_norm(
    x: jax.Array,
    scale: jax.Array,
    offset: jax.Array,
    mean: jax.Array,
    variance: jax.Array,
    *,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> BatchNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset over each channel.

    In training the mean and variance are the batch's; `batch_variance` carries Bessel's
    correction n / (n - 1), and both are averaged into `mean` and `variance` (which may be empty
    otherwise) when `exponential_avg_factor` is not 1. `x` may be float16 or bfloat16 with
    float32 parameters; `y` has its dtype. Raises ValueError for parameters that are not
    [channels].
    """
    last = _channels_last(x, data_format)
    wide = last.astype(scale.dtype)
    channels = last.shape[-1]
    _check_channels(channels, scale=scale, offset=offset)
    if not is_training or exponential_avg_factor != 1.0:
        _check_channels(channels, mean=mean, variance=variance)
    if not is_training:
        y = _normalize(wide, mean, variance, scale, offset, epsilon)
        return BatchNorm(_restore(y.astype(x.dtype), data_format), mean, variance, mean, variance)
    rows = math.prod(last.shape[:-1])
    batch_mean = column_sums(wide) / rows
    centred = wide - batch_mean
    batch_variance = column_sums(centred * centred) / rows
    y = _normalize(wide, batch_mean, batch_variance, scale, offset, epsilon)
    new_mean, new_variance = batch_mean, batch_variance * (rows / max(rows - 1, 1))
    if exponential_avg_factor != 1.0:
        kept = 1.0 - exponential_avg_factor
        new_mean = kept * mean + exponential_avg_factor * new_mean
        new_variance = kept * variance + exponential_avg_factor * new_variance
    y = _restore(y.astype(x.dtype), data_format)
    return BatchNorm(y, new_mean, new_variance, batch_mean, batch_variance)


def _normalize(
    x: jax.Array,
    mean: jax.Array,
    variance: jax.Array,
    scale: jax.Array,
    offset: jax.Array,
    epsilon: float,
) -> jax.Array:
    return (x - mean) * (lax.rsqrt(variance + epsilon) * scale) + offset


def fused_batch_norm_grad(
    y_backprop: jax.Array,
    x: jax.Array,
    scale: jax.Array,
    reserve_1: jax.Array,
    reserve_2: jax.Array,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> BatchNormGrad:
    """Gradients of `fused_batch_norm` for x, scale and offset, from what that reserved.

    Without training the mean and variance count as constants. An empty batch gives zeros.
    """
    last = _channels_last(x, data_format)
    wide = last.astype(scale.dtype)
    dy = _channels_last(y_backprop, data_format).astype(scale.dtype)
    _check_channels(last.shape[-1], scale=scale, reserve_1=reserve_1, reserve_2=reserve_2)
    inverse = lax.rsqrt(reserve_2 + epsilon)
    centred = wide - reserve_1
    offset_grad = column_sums(dy)
    centred_sum = column_sums(dy * centred)
    if is_training:
        rows = math.prod(last.shape[:-1])
        slope = centred_sum * inverse * inverse / rows
        dx = (dy - offset_grad / rows - centred * slope) * (inverse * scale)
    else:
        dx = dy * (inverse * scale)
    dx = _restore(dx.astype(x.dtype), data_format)
    # The statistics of an empty batch are NaN; what it says of the scale is nothing.
    scale_grad = centred_sum if 0 in last.shape else centred_sum * inverse
    return BatchNormGrad(dx, scale_grad, offset_grad)


def _check_channels(channels: int, **parameters: jax.Array) -> None:
    for name, value in parameters.items():
        if value.shape != (channels,):
            raise ValueError(f"{name} must have shape ({channels},), got {tuple(value.shape)}")
