"""The filter's gradient of few pictures takes them in strips; that of single channels, too."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest

from headrace.ops.nn import conv_kernels, conv_strips
from headrace.ops.nn.conv_geometry import Geometry, geometry_of
from headrace.settings import flags

#: These programs run once.
QUICK = {"xla_backend_optimization_level": 0}
#: Sizes, taps, stride, dilation, padding.
CASES = (
    ((17, 6), (3, 3), 1, 1, "SAME"),
    ((30, 5), (5, 3), 2, 1, "SAME"),
    ((31, 5), (3, 2), 2, 1, "VALID"),
    ((33, 9), (3, 3), 1, 4, "SAME"),
    ((22, 7), (1, 3), 3, 1, "VALID"),
    ((19, 4), (2, 2), 3, 1, "VALID"),  # strides that pass by rows
    ((1, 40), (1, 5), 1, 2, "SAME"),  # a series
    ((37, 3), (7, 1), 1, 1, "VALID"),
)
FORMATS = ("NHWC", "NCHW")


@pytest.fixture(autouse=True)
def _xla_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "native", "")


def geometry(case: Any, data_format: str, x_shape: Any, w_shape: Any) -> tuple[Geometry, Any]:
    _, _, stride, dilation, padding = case
    last = data_format == "NHWC"
    options = {
        "strides": (1, stride, stride, 1) if last else (1, 1, stride, stride),
        "dilations": (1, dilation, dilation, 1) if last else (1, 1, dilation, dilation),
        "padding": padding,
        "data_format": data_format,
        "platform": "cpu",
    }
    return geometry_of(x_shape, w_shape, explicit_paddings=(), **options), options


def operands(case: Any, batch: int, channels: int, outputs: int, data_format: str) -> Any:
    """Input, filter, their convolution's geometry and options, and a gradient of the output."""
    rng, (sizes, kernel) = np.random.default_rng(0), case[:2]
    x = rng.standard_normal((batch, *sizes, channels)).astype(np.float32)
    if data_format == "NCHW":
        x = np.moveaxis(x, -1, 1)
    w = rng.standard_normal((*kernel, channels, outputs)).astype(np.float32)
    geo, options = geometry(case, data_format, x.shape, w.shape)
    y = lax_conv(x, w, geo)
    return x, w, geo, options, rng.standard_normal(y.shape).astype(np.float32)


def lax_conv(x: Any, w: Any, geo: Geometry) -> Any:
    letters = geo.data_format
    return jax.lax.conv_general_dilated(
        x,
        w,
        geo.strides,
        geo.pads,
        rhs_dilation=geo.dilations,
        dimension_numbers=(letters, "HWIO", letters),
        feature_group_count=geo.groups,
    )


def gradient_by_lax(x: Any, w: Any, geo: Geometry, dy: Any) -> Any:
    return jax.vjp(lambda w: lax_conv(x, w, geo), w)[1](dy)[0]


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize(("case", "batch"), list(itertools.product(CASES, (1, 3))))
def test_strips_of_pictures_have_the_gradient_of_the_whole(case, batch, data_format) -> None:
    x, w, geo, options, dy = operands(case, batch, 32, 4, data_format)
    assert conv_strips.count(x.shape, w.shape, geo)[0] > 1 or min(dy.shape[1:]) < 8
    run = jax.jit(
        lambda x, dy: conv_kernels.convolution_backprop_filter(x, w.shape, dy, **options),
        compiler_options=QUICK,
    )
    np.testing.assert_allclose(run(x, dy), gradient_by_lax(x, w, geo, dy), 1e-3, 1e-3)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("case", [*CASES, ((48, 5), (3, 3), 1, 1, "SAME")])
def test_gradients_of_single_channels(case, multiplier) -> None:
    x, _, _, options, _ = operands(case, 2, 3, 3, "NHWC")
    rng, kernel = np.random.default_rng(1), case[1]
    w = rng.standard_normal((*kernel, 3, multiplier)).astype(np.float32)
    flat = w.reshape(*kernel, 1, 3 * multiplier)
    geo, _ = geometry(case, "NHWC", x.shape, flat.shape)
    dy = rng.standard_normal(lax_conv(x, flat, geo).shape).astype(np.float32)
    run = jax.jit(
        lambda x, dy: conv_kernels.depthwise_conv2d_native_backprop_filter(
            x, w.shape, dy, **options
        ),
        compiler_options=QUICK,
    )
    want = gradient_by_lax(x, flat, geo, dy).reshape(w.shape)
    np.testing.assert_allclose(run(x, dy), want, 1e-3, 1e-3)


@pytest.mark.parametrize("channels", [1, 32])
def test_nan_where_no_filter_looks_stays_there(channels) -> None:
    case = ((19, 4), (2, 2), 3, 1, "VALID")  # takes rows 0, 1, 3, 4, ..., 15, 16 of 19
    x, w, _, options, dy = operands(case, 1, channels, 32, "NHWC")
    x[:, 17:], x[:, 2::3] = np.nan, np.nan
    if channels == 1:
        found = conv_kernels.depthwise_conv2d_native_backprop_filter(x, w.shape, dy, **options)
    else:
        found = conv_kernels.convolution_backprop_filter(x, w.shape, dy, **options)
    assert np.isfinite(np.asarray(found)).all()


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "strips", "axis"),
    [
        ((1, 128, 128, 64), (3, 3, 64, 64), 8, 0),
        ((2, 56, 56, 64), (3, 3, 64, 64), 4, 0),
        ((7, 56, 56, 64), (3, 3, 64, 64), 2, 0),
        ((8, 56, 56, 64), (3, 3, 64, 64), 1, 0),
        ((1, 14, 14, 64), (3, 3, 64, 64), 3, 0),
        ((1, 7, 7, 64), (3, 3, 64, 64), 1, 0),
        ((1, 1, 8000, 64), (1, 2, 64, 64), 8, 1),
        ((2, 96, 96, 8), (3, 3, 8, 8), 4, 0),
        ((4, 96, 96, 8), (3, 3, 8, 8), 1, 0),
    ],
)
def test_how_many_strips(x_shape, w_shape, strips, axis) -> None:
    geo = geometry((0, 0, 1, 1, "SAME"), "NHWC", x_shape, w_shape)[0]
    assert conv_strips.count(x_shape, w_shape, geo) == (strips, axis)


def test_no_strips_elsewhere() -> None:
    geo = geometry((0, 0, 1, 1, "SAME"), "NHWC", (1, 64, 64, 64), (3, 3, 64, 64))[0]
    gpu = Geometry(True, geo.strides, geo.dilations, geo.pads, 1, cpu=False)
    assert conv_strips.count((1, 64, 64, 64), (3, 3, 64, 64), gpu) == (1, 0)
