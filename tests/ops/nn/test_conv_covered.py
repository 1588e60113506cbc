"""The input's gradient where a filter covers a dimension, as one of words does an embedding."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from headrace.ops.nn import conv_covered, conv_kernels
from headrace.ops.nn.conv_geometry import geometry_of
from headrace.settings import flags

#: These programs run once.
QUICK = {"xla_backend_optimization_level": 0}
#: Sizes, taps, strides, dilations, padding, and the dimensions that are covered.
CASES = (
    ((9, 5), (3, 5), (1, 1), (1, 1), "VALID", (1,)),
    ((9, 5), (3, 5), (2, 3), (2, 1), "VALID", (1,)),
    ((4, 11), (4, 3), (1, 2), (1, 1), "VALID", (0,)),
    ((9, 5), (3, 5), (1, 1), (1, 1), "SAME", ()),
    ((9, 1), (3, 1), (1, 1), (1, 1), "VALID", ()),
    ((3, 6, 4), (3, 2, 4), (1, 1, 1), (1, 1, 1), "VALID", (0, 2)),
    ((5, 3, 4), (2, 3, 2), (1, 1, 1), (1, 1, 1), "VALID", (1,)),
)


@pytest.fixture(autouse=True)
def _without_native_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "native", "")


def _options(case: Any, first: bool) -> dict[str, Any]:
    sizes, _, strides, dilations, padding, _ = case
    letters = {2: "HW", 3: "DHW"}[len(sizes)]

    def around(values: tuple[int, ...]) -> tuple[int, ...]:
        return (1, 1, *values) if first else (1, *values, 1)

    return {
        "strides": around(strides),
        "dilations": around(dilations),
        "padding": padding,
        "data_format": f"NC{letters}" if first else f"N{letters}C",
        "platform": "cpu",
    }


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_that_of_the_plain_convolution(case, first):
    sizes, kernel = case[:2]
    rng, options = np.random.default_rng(0), _options(case, first)
    x_shape = (2, 3, *sizes) if first else (2, *sizes, 3)
    w = rng.standard_normal((*kernel, 3, 4)).astype(np.float32)
    geo = geometry_of(x_shape, w.shape, explicit_paddings=(), **options)
    assert conv_covered.dimensions(sizes, kernel, geo) == case[5]
    filter_letters = {2: "HWIO", 3: "DHWIO"}[len(sizes)]

    def plain(x):
        return lax.conv_general_dilated(
            x,
            w,
            geo.strides,
            geo.pads,
            rhs_dilation=geo.dilations,
            dimension_numbers=(geo.data_format, filter_letters, geo.data_format),
        )

    dy = rng.standard_normal(jax.eval_shape(plain, np.zeros(x_shape, "f")).shape).astype("f")

    def both(dy):
        (expected,) = jax.linear_transpose(plain, np.zeros(x_shape, np.float32))(dy)
        return conv_kernels.convolution_backprop_input(x_shape, w, dy, **options), expected

    found, expected = jax.jit(both, compiler_options=QUICK)(dy)
    assert found.shape == x_shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_nothing_is_made_that_is_larger_than_the_input():
    w, dy = np.zeros((3, 32, 1, 16), np.float32), np.zeros((8, 38, 1, 16), np.float32)

    def gradient(dy):
        return conv_kernels.convolution_backprop_input(
            (8, 40, 32, 1), w, dy, strides=(1, 1, 1, 1), padding="VALID"
        )

    made = [value.aval.size for e in jax.make_jaxpr(gradient)(dy).jaxpr.eqns for value in e.outvars]
    assert max(made) == 8 * 40 * 32
