"""Input gradients of strided convolutions: phase by phase, and equal to the textbook form."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headrace.ops.nn import conv_geometry, conv_kernels, conv_phases
from headrace.settings import flags

#: These programs run once.
QUICK = {"xla_backend_optimization_level": 0}
FORMATS = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


@pytest.fixture(autouse=True)
def _by_xla_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "native", "")


def full(values: tuple[int, ...], data_format: str) -> tuple[int, ...]:
    return (1, *values, 1) if data_format.endswith("C") else (1, 1, *values)


def gradients(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Any = "SAME",
    *,
    dilations: tuple[int, ...] = (),
    channels: tuple[int, int, int] = (2, 2, 3),
    batch: int = 2,
    last: bool = True,
    dtype: str = "float64",
) -> tuple[np.ndarray, np.ndarray]:
    """The input gradient by our form and by that for other platforms, which XLA works out.

    Args:
        channels: those of the input, of the filter and of the output.
        padding: a name, or pairs for the spatial dimensions.
    """
    rank = len(sizes)
    data_format = FORMATS[rank][0 if last else 1]
    dilations = dilations or (1,) * rank
    explicit: tuple[tuple[int, int], ...] = () if isinstance(padding, str) else tuple(padding)
    name = padding if isinstance(padding, str) else "EXPLICIT"
    pads = conv_geometry.spatial_pads(sizes, kernel, strides, dilations, name, explicit)
    out = tuple(
        (n + lo + hi - (k - 1) * d - 1) // s + 1
        for n, (lo, hi), k, d, s in zip(sizes, pads, kernel, dilations, strides, strict=True)
    )
    inputs, depth, outputs = channels
    pairs = [(0, 0), *explicit, (0, 0)] if last else [(0, 0), (0, 0), *explicit]
    attrs = {
        "strides": full(strides, data_format),
        "dilations": full(dilations, data_format),
        "padding": name,
        "data_format": data_format,
        "explicit_paddings": [p for pair in pairs for p in pair] if explicit else [],
    }
    rng = np.random.default_rng(0)
    w = rng.standard_normal((*kernel, depth, outputs)).astype(dtype)
    dy = rng.standard_normal((batch, *out, outputs) if last else (batch, outputs, *out))
    shape = (batch, *sizes, inputs) if last else (batch, inputs, *sizes)

    def gradient(platform: str) -> Any:
        def run(w: Any, dy: Any) -> Any:
            return conv_kernels.convolution_backprop_input(shape, w, dy, platform=platform, **attrs)

        with jax.enable_x64(True):
            return np.asarray(jax.jit(run, compiler_options=QUICK)(w, dy.astype(dtype)))

    return gradient("cpu"), gradient("gpu")


def test_no_zeros_are_multiplied() -> None:
    """XLA's convolution of a `dy` with zeros between its elements is up to fifty times slower."""
    attrs = {"strides": (1, 2, 2, 1), "padding": "SAME"}

    def run(w: Any, dy: Any) -> Any:
        return conv_kernels.convolution_backprop_input((4, 20, 20, 8), w, dy, **attrs)

    w, dy = np.ones((9, 9, 8, 8), np.float32), np.ones((4, 10, 10, 8), np.float32)
    equations = [
        equation
        for equation in jax.make_jaxpr(run)(w, dy).jaxpr.eqns
        if equation.primitive.name == "conv_general_dilated"
    ]
    assert 1 <= len(equations) <= 4
    assert all(equation.params["lhs_dilation"] == (1, 1) for equation in equations)
    products = sum(
        2
        * int(np.prod(equation.outvars[0].aval.shape) * np.prod(equation.invars[1].aval.shape[:3]))
        for equation in equations
    )
    assert products <= 1.25 * (2 * 4 * 10 * 10 * 81 * 8 * 8)


@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "channels"),
    [
        ((20, 20), 3, 1, (3, 64)),
        ((20, 20), 5, 3, (3, 64)),
        ((8, 8, 8), 3, 1, (3, 32)),
        ((8, 8, 8), 3, 2, (1, 16)),
    ],
)
def test_few_channels_are_one_product(
    sizes: tuple[int, ...], kernel: int, strides: int, channels: tuple[int, int]
) -> None:
    """XLA's convolution to few channels is up to thirty times slower."""
    rank = len(sizes)

    def run(w: Any, dy: Any) -> Any:
        return conv_kernels.convolution_backprop_input(
            (2, *sizes, channels[0]),
            w,
            dy,
            strides=(1, *(strides,) * rank, 1),
            padding="SAME",
            data_format=FORMATS[rank][0],
        )

    w = np.ones((*(kernel,) * rank, *channels), np.float32)
    dy = np.ones((2, *(-(-n // strides) for n in sizes), channels[1]), np.float32)
    used = {equation.primitive.name for equation in jax.make_jaxpr(run)(w, dy).jaxpr.eqns}
    assert "dot_general" in used
    assert "conv_general_dilated" not in used


@pytest.mark.parametrize("part", ["forward", "input", "filter"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_in_three_dimensions_are_flat(part: str, stride: int) -> None:
    """XLA's are up to twenty times slower."""
    x, w = np.ones((2, 6, 5, 7, 40), np.float32), np.ones((3, 2, 3, 40, 50), np.float32)
    attrs: dict[str, Any] = {
        "strides": (1, stride, stride, stride, 1),
        "padding": "SAME",
        "data_format": "NDHWC",
    }

    def run(x: Any, w: Any) -> Any:
        if part == "forward":
            return conv_kernels.convolution(x, w, **attrs)
        dy = jnp.ones((2, *(-(-n // stride) for n in x.shape[1:-1]), 50), jnp.float32)
        if part == "input":
            return conv_kernels.convolution_backprop_input(x.shape, w, dy, **attrs)
        return conv_kernels.convolution_backprop_filter(x, w.shape, dy, **attrs)

    ranks = [
        len(equation.params["window_strides"])
        for equation in jax.make_jaxpr(run)(x, w).jaxpr.eqns
        if equation.primitive.name == "conv_general_dilated"
    ]
    assert set(ranks) == {2}


@pytest.mark.parametrize("last", [True, False], ids=["NDHWC", "NCDHW"])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_flat_convolutions_agree_in_all_passes(
    padding: str, strides: tuple[int, int, int], last: bool
) -> None:
    data_format = FORMATS[3][0 if last else 1]
    attrs: dict[str, Any] = {
        "strides": full(strides, data_format),
        "dilations": full((2, 1, 1) if strides[0] == 1 else (1, 1, 1), data_format),
        "padding": padding,
        "data_format": data_format,
    }
    rng = np.random.default_rng(1)
    sizes = (2, 7, 5, 6, 3) if last else (2, 3, 7, 5, 6)
    x = rng.standard_normal(sizes).astype(np.float32)
    w = rng.standard_normal((3, 2, 3, 3, 4)).astype(np.float32)

    def passes(platform: str) -> Any:
        def run(x: Any, w: Any) -> Any:
            y = conv_kernels.convolution(x, w, platform=platform, **attrs)
            dy = jnp.sin(y)
            return (
                y,
                conv_kernels.convolution_backprop_input(x.shape, w, dy, platform=platform, **attrs),
                conv_kernels.convolution_backprop_filter(
                    x, w.shape, dy, platform=platform, **attrs
                ),
            )

        return jax.jit(run, compiler_options=QUICK)(x, w)

    for ours, theirs in zip(passes("cpu"), passes("gpu"), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


def test_large_products_are_made_for_some_images_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"channels": (3, 3, 32), "batch": 6, "dtype": "float32"}
    whole, textbook = gradients((6, 7), (3, 3), (1, 1), **options)
    monkeypatch.setattr(conv_phases, "_PRODUCT_BYTES", 4 * 9 * 8 * 9 * 3 * 4)  # four images
    parts, _ = gradients((6, 7), (3, 3), (1, 1), **options)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_allclose(whole, textbook, 1e-4, 1e-4)
    monkeypatch.setattr(conv_phases, "_MOST_PRODUCT_BYTES", 1)
    convolved, _ = gradients((6, 7), (3, 3), (1, 1), **options)
    np.testing.assert_allclose(convolved, whole, 1e-4, 1e-4)


@pytest.mark.parametrize("last", [True, False], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((3, 0), (0, 5))])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"),
    [((2, 3), (1, 1), (2, 1)), ((3, 4), (2, 3), (1, 1)), ((1, 3), (4, 2), (1, 1))],
)
def test_products_agree_with_the_textbook_form(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: Any,
    last: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conv_phases, "_SUM_OVERHEAD", -1e9)
    case = gradients(
        (8, 9), kernel, strides, padding, dilations=dilations, last=last, dtype="float32"
    )
    np.testing.assert_allclose(*case, 1e-4, 1e-4)


@pytest.mark.parametrize("last", [True, False], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((3, 0), (0, 5))])
def test_agrees_with_the_textbook_form(padding: Any, last: bool) -> None:
    np.testing.assert_allclose(*gradients((8, 9), (3, 4), (2, 3), padding, last=last), 1e-10, 1e-12)


@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "options"),
    [
        ((7, 8), (1, 1), (2, 4), {}),
        ((9, 8), (2, 1), (4, 3), {"padding": "VALID"}),
        ((11, 4), (3, 2), (2, 2), {"padding": "VALID"}),
        ((9, 9), (3, 3), (2, 2), {"dilations": (2, 3)}),
        ((9, 9), (3, 3), (4, 6), {"dilations": (2, 4)}),
        ((5, 4, 6), (2, 3, 3), (2, 1, 3), {}),
        ((6, 7), (3, 3), (2, 2), {"channels": (4, 2, 6)}),
        ((6, 7), (3, 3), (2, 3), {"channels": (3, 1, 6)}),
        ((6, 7), (3, 3), (2, 2), {"batch": 0}),
        ((40, 24), (16, 16), (8, 8), {"channels": (1, 1, 1)}),
        ((6, 5), (4, 4), (2, 2), {"dtype": "float16"}),
        ((6, 5), (3, 3), (1, 1), {"channels": (2, 2, 40), "batch": 0, "dtype": "float32"}),
    ],
)
def test_agrees_for(
    sizes: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], options: Any
) -> None:
    ours, theirs = gradients(sizes, kernel, strides, **options)
    assert ours.dtype == theirs.dtype
    tolerance = 1e-10 if ours.dtype == np.float64 else 2e-2
    np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("kernel", range(1, 10))
def test_agrees_for_every_kernel_and_stride(kernel: int, padding: str) -> None:
    for rows, columns in itertools.product(range(1, 5), range(2, 5)):
        case = gradients((kernel + 5, kernel + 4), (kernel, kernel), (rows, columns), padding)
        np.testing.assert_allclose(*case, 1e-10, 1e-12)
