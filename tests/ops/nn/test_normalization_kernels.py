"""The normalisation kernels against plain NumPy, in float64 unless said otherwise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
import pytest

from headrace.ops.nn import normalization_kernels

RNG_SEED = 7
FORMATS = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


@pytest.fixture(autouse=True)
def _wide_types() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def random(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(RNG_SEED + math.prod(shape)).standard_normal(shape).astype(dtype)


def jitted(kernel: Callable, **attrs: object) -> Callable:
    """`kernel` as one program: an eager call would compile each of its operations alone."""
    return jax.jit(functools.partial(kernel, **attrs))


def layout(values: Sequence[int], data_format: str, edge: int = 1) -> list[int]:
    """Spatial attribute values with those of batch and channels around, in `data_format` order."""
    if data_format.endswith("C"):
        return [edge, *values, edge]
    return [edge, edge, *values]


def place(x: np.ndarray, data_format: str) -> np.ndarray:
    return x if data_format.endswith("C") else np.moveaxis(x, -1, 1)


# --- normalisation ---------------------------------------------------------------------------


def naive_lrn(x, depth_radius, bias, alpha, beta):
    y = np.zeros(x.shape)
    for c in range(x.shape[-1]):
        near = x[..., max(c - depth_radius, 0) : c + depth_radius + 1]
        y[..., c] = x[..., c] / (bias + alpha * (near**2).sum(-1)) ** beta
    return y


@pytest.mark.parametrize(
    ("depth_radius", "bias", "alpha", "beta", "channels"),
    [(5, 1.0, 1.0, 0.5, 8), (2, 2.0, 0.1, 0.75, 7), (3, 1.0, 0.5, 1.0, 9), (18, 1.5, 0.3, 0.6, 40)],
)
def test_lrn_and_its_gradient(
    depth_radius: int, bias: float, alpha: float, beta: float, channels: int
) -> None:
    x, dy, step = random(2, 3, channels), random(2, 3, channels), 1e-6
    x, dy = x.reshape(1, 2, 3, channels), dy.reshape(1, 2, 3, channels)
    attrs = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    y = jitted(normalization_kernels.lrn, **attrs)(x)
    np.testing.assert_allclose(y, naive_lrn(x, **attrs), rtol=1e-12)
    direction = np.random.default_rng(3).standard_normal(x.shape)
    ahead, behind = (naive_lrn(x + s * direction, **attrs) for s in (step, -step))
    slope = ((ahead - behind) / (2 * step) * dy).sum()
    dx = jitted(normalization_kernels.lrn_grad, **attrs)(dy, x, np.asarray(y))
    np.testing.assert_allclose((dx * direction).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("data_format", "shape"),
    [("NHWC", (3, 4, 5, 6)), ("NCHW", (3, 6, 4, 5)), ("NDHWC", (2, 2, 3, 2, 6))],
)
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_batch_norm_in_training(data_format: str, shape: tuple[int, ...], factor: float) -> None:
    x = random(*shape) * 2 + 1
    scale, offset, mean, variance = (random(6) + i for i in range(4))
    attrs = {"epsilon": 1e-3, "exponential_avg_factor": factor, "data_format": data_format}
    kernel = jitted(normalization_kernels.fused_batch_norm, **attrs)
    result = kernel(x, scale, offset, mean, variance)
    last = x if data_format.endswith("C") else np.moveaxis(x, 1, -1)
    axes = tuple(range(last.ndim - 1))
    rows = math.prod(last.shape[:-1])
    m, v = last.mean(axes), last.var(axes)
    y = (last - m) / np.sqrt(v + 1e-3) * scale + offset
    np.testing.assert_allclose(result.y, place(y, data_format), rtol=1e-9, atol=1e-9)
    corrected = v * rows / (rows - 1)
    np.testing.assert_allclose(result.batch_mean, (1 - factor) * mean + factor * m, rtol=1e-9)
    np.testing.assert_allclose(
        result.batch_variance, (1 - factor) * variance + factor * corrected, rtol=1e-9
    )
    np.testing.assert_allclose(result.reserve_1, m, rtol=1e-9)
    np.testing.assert_allclose(result.reserve_2, v, rtol=1e-9)


def test_batch_norm_at_inference_uses_the_given_statistics() -> None:
    x, scale, offset, mean, variance = (
        random(2, 3, 3, 4),
        *(np.abs(random(4)) + i for i in range(4)),
    )
    result = jitted(normalization_kernels.fused_batch_norm, is_training=False)(
        x, scale, offset, mean, variance
    )
    y = (x - mean) / np.sqrt(variance + 1e-4) * scale + offset
    np.testing.assert_allclose(result.y, y, rtol=1e-9)
    np.testing.assert_array_equal(result.batch_mean, mean)
    np.testing.assert_array_equal(result.reserve_2, variance)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_batch_norm_gradient_is_the_derivative(data_format: str, is_training: bool) -> None:
    shape = (3, 2, 4, 5) if data_format == "NHWC" else (3, 5, 2, 4)
    x, dy = random(*shape), random(*shape[::-1]).reshape(shape)
    scale, offset, mean, variance = (np.abs(random(5)) + i for i in range(4))
    attrs = {"epsilon": 1e-3, "data_format": data_format, "is_training": is_training}

    def y(x, scale, offset):
        return normalization_kernels.fused_batch_norm(x, scale, offset, mean, variance, **attrs).y

    expected = jax.jit(lambda dy, *args: jax.vjp(y, *args)[1](dy))(dy, x, scale, offset)
    reserved = jitted(normalization_kernels.fused_batch_norm, **attrs)(
        x, scale, offset, mean, variance
    )
    got = normalization_kernels.fused_batch_norm_grad(
        dy, x, scale, reserved.reserve_1, reserved.reserve_2, **attrs
    )
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_batch_norm_of_half_precision_keeps_float32_statistics() -> None:
    x = random(8, 4, 4, 3, dtype="float16")
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    empty = np.zeros(0, np.float32)
    result = jitted(normalization_kernels.fused_batch_norm)(x, ones, zeros, empty, empty)
    assert [part.dtype.name for part in result] == ["float16"] + ["float32"] * 4
    np.testing.assert_allclose(result.reserve_1, x.astype("f8").mean((0, 1, 2)), atol=1e-6)
    grad = jitted(normalization_kernels.fused_batch_norm_grad)(
        x, x, ones, result.reserve_1, result.reserve_2
    )
    assert [part.dtype.name for part in grad] == ["float16", "float32", "float32"]


def test_batch_norm_refuses_parameters_of_another_length() -> None:
    x, four, three = random(1, 2, 2, 4), random(4), random(3)
    with pytest.raises(ValueError, match=r"scale must have shape \(4,\), got \(3,\)"):
        normalization_kernels.fused_batch_norm(x, three, four, four, four)
    with pytest.raises(ValueError, match=r"mean must have shape \(4,\), got \(0,\)"):
        normalization_kernels.fused_batch_norm(x, four, four, np.zeros(0), four, is_training=False)


@pytest.mark.parametrize("shape", [(7, 3), (64, 5), (2, 96, 3), (0, 4)])
def test_column_sums(shape: tuple[int, ...]) -> None:
    x = random(*shape)
    expected = x.sum(tuple(range(x.ndim - 1)))
    np.testing.assert_allclose(normalization_kernels.column_sums(x), expected, atol=1e-10)
