"""Convolutions that are matrix products: what XLA's library is slow at, or has plain loops for."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headrace.ops.nn import conv_geometry, conv_kernels
from headrace.settings import flags

#: These programs run once.
QUICK = {"xla_backend_optimization_level": 0}
FORMATS = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}

#: Sizes, taps, channels in and out, and other attributes.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], dict[str, Any]]] = {
    "one tap": ((5, 6), (1, 1), (3, 4), {}),
    "one tap, strided": ((5, 6), (1, 1), (3, 4), {"strides": (2, 3)}),
    "one tap, padded": ((5, 6), (1, 1), (3, 4), {"padding": ((1, 2), (0, 1)), "strides": (2, 1)}),
    "one tap in three dimensions": ((3, 4, 5), (1, 1, 1), (3, 4), {"strides": (1, 2, 1)}),
    "more taps than elements": ((2, 2), (3, 3), (3, 4), {}),
    "more taps in one dimension": ((2, 9), (3, 3), (3, 4), {}),
    "more taps, strided": ((4, 3), (5, 5), (3, 4), {"strides": (2, 2)}),
    "more taps, dilated": ((2, 3), (3, 5), (3, 4), {"dilations": (2, 1)}),
    "more taps, far padding": ((2, 2), (3, 3), (3, 4), {"padding": ((3, 4), (5, 2))}),
    "more taps in three dimensions": ((2, 3, 2), (3, 3, 3), (3, 4), {}),
    "the whole input": ((4, 5), (4, 5), (3, 4), {"padding": "VALID"}),
    "the whole input in three dimensions": ((2, 3, 2), (2, 3, 2), (3, 4), {"padding": "VALID"}),
    "patches": ((4, 6), (2, 3), (3, 4), {"strides": (2, 3), "padding": "VALID"}),
    "patches that leave a rest": ((7, 8), (3, 3), (3, 4), {"strides": (3, 3), "padding": "VALID"}),
    "patches in three dimensions": (
        (4, 3, 5),
        (2, 1, 2),
        (3, 4),
        {"strides": (2, 1, 2), "padding": "VALID"},
    ),
    "a row": ((3, 9), (1, 3), (3, 4), {"strides": (1, 2)}),
    "a column": ((9, 3), (5, 1), (3, 4), {"dilations": (2, 1)}),
    "few rows, large filter": ((3, 3), (3, 3), (240, 256), {}),
    "one element": ((1, 1), (3, 3), (3, 4), {}),
}


@pytest.fixture(autouse=True)
def _xla_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "native", "")


class Passes:
    """The three passes of a case, as functions of its operands."""

    def __init__(self, name: str, *, last: bool = True, batch: int = 2) -> None:
        sizes, kernel, channels, options = CASES[name]
        rank = len(sizes)
        ones = (1,) * rank
        strides, dilations = options.get("strides", ones), options.get("dilations", ones)
        padding = options.get("padding", "SAME")
        explicit = () if isinstance(padding, str) else padding
        named = padding if isinstance(padding, str) else "EXPLICIT"
        pads = conv_geometry.spatial_pads(sizes, kernel, strides, dilations, named, explicit)
        out = tuple(
            (n + lo + hi - (k - 1) * d - 1) // s + 1
            for n, (lo, hi), k, d, s in zip(sizes, pads, kernel, dilations, strides, strict=True)
        )

        def full(values: tuple[Any, ...], edge: Any) -> tuple[Any, ...]:
            return (edge, *values, edge) if last else (edge, edge, *values)

        self.attrs = {
            "strides": full(strides, 1),
            "dilations": full(dilations, 1),
            "padding": named,
            "data_format": FORMATS[rank][0 if last else 1],
            "explicit_paddings": [p for pair in full(explicit, (0, 0)) for p in pair if explicit],
        }

        def data(values: tuple[int, ...], depth: int) -> tuple[int, ...]:
            return (batch, *values, depth) if last else (batch, depth, *values)

        self.x, self.y = data(sizes, channels[0]), data(out, channels[1])
        self.w = (*kernel, *channels)

    def operands(self, dtype: Any = np.float32) -> list[Any]:
        rng = np.random.default_rng(3)
        return [jnp.asarray(rng.standard_normal(s), dtype) for s in (self.x, self.w, self.y)]

    def on(self, platform: str) -> Any:
        def run(x: Any, w: Any, dy: Any) -> Any:
            return (
                conv_kernels.convolution(x, w, platform=platform, **self.attrs),
                conv_kernels.convolution_backprop_input(
                    self.x, w, dy, platform=platform, **self.attrs
                ),
                conv_kernels.convolution_backprop_filter(
                    x, self.w, dy, platform=platform, **self.attrs
                ),
            )

        return run


@pytest.mark.parametrize("last", [True, False], ids=["last", "first"])
@pytest.mark.parametrize("name", CASES)
def test_all_passes_agree_with_one_convolution_of_xla(name: str, last: bool) -> None:
    passes = Passes(name, last=last)
    ours, theirs = (
        jax.jit(passes.on(platform), compiler_options=QUICK)(*passes.operands())
        for platform in ("cpu", "gpu")
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-3)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("name", ["one tap", "more taps than elements", "the whole input"])
def test_short_floats_are_added_up_as_float32(name: str, dtype: Any) -> None:
    passes = Passes(name)
    operands = passes.operands(dtype)
    exact = passes.on("cpu")(*[operand.astype(jnp.float32) for operand in operands])
    for got, want in zip(passes.on("cpu")(*operands), exact, strict=True):
        assert got.dtype == dtype
        unit = float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(got.astype(np.float32), want, unit, unit)


@pytest.mark.parametrize("name", CASES)
def test_an_input_without_images_has_passes(name: str) -> None:
    passes = Passes(name, batch=0)
    y, dx, dw = passes.on("cpu")(*passes.operands())
    assert (y.shape, dx.shape, dw.shape) == (passes.y, passes.x, passes.w)
    assert not dw.any()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("one tap", 0),
        ("one tap, strided", 0),
        ("the whole input", 0),
        ("patches", 0),
        ("a column", 2),  # but for the gradient of the filter
        ("few rows, large filter", 0),
        ("more taps than elements", 1),  # the gradient of the filter, which XLA is quick at
    ],
)
def test_what_xla_is_slow_at_is_no_convolution(name: str, kept: int) -> None:
    """Up to a hundred times as slow: see `headrace.ops.nn.conv_products`."""
    passes = Passes(name)
    used = [
        equation.primitive.name
        for equation in jax.make_jaxpr(passes.on("cpu"))(*passes.operands()).jaxpr.eqns
    ]
    assert used.count("conv_general_dilated") == kept
    assert "dot_general" in used


def test_second_derivatives_of_products() -> None:
    passes = Passes("more taps than elements")
    x, w, _ = passes.operands()

    def loss(platform: str) -> Any:
        def of(x: Any) -> Any:
            return jnp.sum(
                jnp.sin(conv_kernels.convolution(x, w, platform=platform, **passes.attrs))
            )

        return jax.hessian(of)(x)

    np.testing.assert_allclose(loss("cpu"), loss("gpu"), 1e-3, 1e-3)


@pytest.mark.parametrize(
    "name", ["one tap", "more taps than elements", "the whole input", "patches"]
)
def test_any_number_of_images_can_be_exported(name: str) -> None:
    passes = Passes(name)
    x, w, dy = passes.operands()
    (batch,) = jax.export.symbolic_shape("batch")

    def run(x: Any, w: Any, dy: Any) -> Any:
        shape = (x.shape[0], *passes.x[1:])
        return (
            conv_kernels.convolution(x, w, **passes.attrs),
            conv_kernels.convolution_backprop_filter(x, passes.w, dy, **passes.attrs),
            conv_kernels._input_gradient(shape, w, dy, geometry),
        )

    geometry = conv_geometry.geometry_of(passes.x, passes.w, **passes.attrs, platform="cpu")
    shapes = [
        jax.ShapeDtypeStruct((batch, *x.shape[1:]), x.dtype),
        jax.ShapeDtypeStruct(w.shape, w.dtype),
        jax.ShapeDtypeStruct((batch, *dy.shape[1:]), dy.dtype),
    ]
    exported = jax.export.export(jax.jit(run))(*shapes)
    for got, want in zip(exported.call(x, w, dy), run(x, w, dy), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-3)
