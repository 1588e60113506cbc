"""The neural-network kernels against naive loops in NumPy, in float64 unless said otherwise."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headrace.ops.nn import conv_kernels, pool_kernels
from headrace.ops.nn import dilation_kernels as dilation

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


def halves(*shape: int) -> np.ndarray:
    """Few distinct values, so that maxima tie."""
    return np.round(random(*shape) * 2) / 2


def same_pads(n: int, k: int, s: int, d: int) -> tuple[int, int]:
    total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
    return total // 2, total - total // 2


def window_index(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> Iterator[tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]]:
    """(output position, [(window position, input position) inside the input]) of each window."""
    rows = list(zip(sizes, kernel, strides, dilations, pads, strict=True))
    out = [(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, d, p in rows]
    for o in itertools.product(*map(range, out)):
        inside = []
        for q in itertools.product(*map(range, kernel)):
            at = tuple(
                a * s + b * d - p[0] for a, b, (_, _, s, d, p) in zip(o, q, rows, strict=True)
            )
            if all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
                inside.append((q, at))
        yield o, inside


class NaiveConv:
    """Output and gradients of a channels-last convolution, one multiply-add at a time."""

    def __init__(self, x, w, strides, dilations, pads, groups=1):
        rank = w.ndim - 2
        self.args = x, w, groups
        self.index = list(window_index(x.shape[1:-1], w.shape[:rank], strides, dilations, pads))
        out = np.add(self.index[-1][0], 1)
        self.y = np.zeros((x.shape[0], *out, w.shape[-1]))
        for o, q, at, ins, outs in self.terms():
            self.y[:, *o, outs] += x[:, *at, ins] @ w[*q, :, outs]

    def terms(self):
        _, w, groups = self.args
        depth, width = w.shape[-2], w.shape[-1] // groups
        for (o, inside), g in itertools.product(self.index, range(groups)):
            ins, outs = slice(g * depth, (g + 1) * depth), slice(g * width, (g + 1) * width)
            for q, at in inside:
                yield o, q, at, ins, outs

    def gradients(self, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, w, _ = self.args
        dx, dw = np.zeros(x.shape), np.zeros(w.shape)
        for o, q, at, ins, outs in self.terms():
            dx[:, *at, ins] += dy[:, *o, outs] @ w[*q, :, outs].T
            dw[*q, :, outs] += x[:, *at, ins].T @ dy[:, *o, outs]
        return dx, dw


def layout(values: Sequence[int], data_format: str, edge: int = 1) -> list[int]:
    """Spatial attribute values with those of batch and channels around, in `data_format` order."""
    if data_format.endswith("C"):
        return [edge, *values, edge]
    return [edge, edge, *values]


def place(x: np.ndarray, data_format: str) -> np.ndarray:
    return x if data_format.endswith("C") else np.moveaxis(x, -1, 1)


def explicit(pads: Sequence[tuple[int, int]], data_format: str) -> list[int]:
    flat = [n for pad in pads for n in pad]
    return [0, 0, *flat, 0, 0] if data_format.endswith("C") else [0, 0, 0, 0, *flat]


CONV_CASES = [
    # kernel, strides, dilations, padding, (channels, outputs, groups), dtype
    ((3, 2), (1, 1), (1, 1), "SAME", (3, 4, 1), "float32"),
    ((3, 3), (2, 1), (1, 1), "SAME", (3, 4, 1), "float64"),
    ((2, 3), (2, 3), (1, 1), "VALID", (3, 4, 1), "float32"),
    ((3, 2), (1, 1), (2, 1), "VALID", (2, 3, 1), "float64"),
    ((2, 2), (2, 1), (2, 2), "SAME", (2, 3, 1), "float32"),
    ((3, 3), (2, 2), (1, 1), "EXPLICIT", (3, 2, 1), "float32"),
    ((3, 3), (1, 2), (1, 1), "EXPLICIT", (3, 2, 1), "float64"),
    ((1, 1), (2, 2), (1, 1), "SAME", (4, 3, 1), "float32"),
    ((3, 3), (1, 1), (1, 1), "SAME", (1, 4, 1), "float32"),
    ((3, 3), (2, 2), (1, 1), "SAME", (4, 6, 2), "float32"),
    ((2, 3), (1, 1), (1, 2), "VALID", (4, 4, 2), "float64"),
    ((9, 9), (1, 1), (1, 1), "SAME", (2, 2, 1), "float64"),
    ((2, 3, 2), (2, 1, 1), (1, 1, 1), "SAME", (2, 3, 1), "float32"),
    ((3, 1, 2), (1, 2, 1), (1, 1, 1), "VALID", (2, 3, 1), "float64"),
]


def conv_case(kernel, strides, dilations, padding, channels, dtype):
    """x, w, dy, the naive answers and the attributes, all channels last."""
    rank = len(kernel)
    sizes = (7, 6, 5)[:rank]
    ci, co, groups = channels
    if padding == "SAME":
        pads = [same_pads(*row) for row in zip(sizes, kernel, strides, dilations, strict=True)]
    else:
        pads = [(1, 2), (0, 1), (0, 0)][:rank] if padding == "EXPLICIT" else [(0, 0)] * rank
    x = random(2, *sizes, ci, dtype=dtype)
    w = random(*kernel, ci // groups, co, dtype=dtype)
    naive = NaiveConv(x, w, strides, dilations, pads, groups)
    return x, w, random(*naive.y.shape, dtype=dtype), naive, pads


@pytest.mark.parametrize(
    ("last", "platform"), [(True, "cpu"), (False, "cpu"), (True, "gpu")], ids=str
)
@pytest.mark.parametrize("case", CONV_CASES, ids=lambda c: "-".join(map(str, c)).replace(" ", ""))
def test_convolution_and_its_gradients(case: tuple, last: bool, platform: str) -> None:
    kernel, strides, dilations, padding, _, dtype = case
    rank = len(kernel)
    x, w, dy, naive, pads = conv_case(*case)
    data_format = FORMATS[rank][0 if last else 1]
    attrs = {
        "strides": layout(strides, data_format),
        "dilations": layout(dilations, data_format),
        "padding": padding,
        "data_format": data_format,
        "platform": platform,
    }
    if rank == 2:
        attrs["explicit_paddings"] = explicit(pads, data_format) if padding == "EXPLICIT" else []
    x, dy_placed = place(x, data_format), place(dy, data_format)
    ops = [
        getattr(conv_kernels, f"convolution{end}")
        for end in ("", "_backprop_input", "_backprop_filter")
    ]

    @jax.jit
    def run(x, w, dy):
        return (
            ops[0](x, w, **attrs),
            ops[1](x.shape, w, dy, **attrs),
            ops[2](x, w.shape, dy, **attrs),
        )

    y, dx, dw = run(x, w, dy_placed)
    expected_dx, expected_dw = naive.gradients(dy)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-10}
    np.testing.assert_allclose(y, place(naive.y, data_format), **tolerance)
    np.testing.assert_allclose(dx, place(expected_dx, data_format), **tolerance)
    np.testing.assert_allclose(dw, expected_dw, **tolerance)
    assert {y.dtype, dx.dtype, dw.dtype} == {np.dtype(dtype)}


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "multiplier"),
    [(1, 1, "SAME", 2), (2, 1, "EXPLICIT", 1), (1, 2, "VALID", 1), (2, 1, "SAME", 3)],
)
def test_depthwise_convolution_and_its_gradients(
    stride: int, dilation: int, padding: str, multiplier: int, data_format: str, platform: str
) -> None:
    channels = (3, 3 * multiplier, 3)
    case = ((3, 2), (stride,) * 2, (dilation,) * 2, padding, channels, "float32")
    x, w, dy, naive, pads = conv_case(*case)
    attrs = {
        "strides": layout(case[1], data_format),
        "dilations": layout(case[2], data_format),
        "padding": padding,
        "explicit_paddings": explicit(pads, data_format) if padding == "EXPLICIT" else [],
        "data_format": data_format,
        "platform": platform,
    }
    x, filter = place(x, data_format), w.reshape(3, 2, 3, multiplier)
    name = "depthwise_conv2d_native"
    dy_placed = place(dy, data_format)

    @jax.jit
    def run(x, filter, dy):
        return (
            getattr(conv_kernels, name)(x, filter, **attrs),
            getattr(conv_kernels, f"{name}_backprop_input")(x.shape, filter, dy, **attrs),
            getattr(conv_kernels, f"{name}_backprop_filter")(x, filter.shape, dy, **attrs),
        )

    y, dx, dw = run(x, filter, dy_placed)
    expected_dx, expected_dw = naive.gradients(dy)
    np.testing.assert_allclose(y, place(naive.y, data_format), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dx, place(expected_dx, data_format), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dw, expected_dw.reshape(filter.shape), rtol=1e-4, atol=1e-4)


def test_integer_convolution_is_exact() -> None:
    x, w = np.full((1, 4, 4, 3), 2**15, np.int32), np.full((2, 2, 3, 2), 3, np.int32)
    y = conv_kernels.convolution(x, w, strides=[1, 1, 1, 1], padding="VALID")
    np.testing.assert_array_equal(y, np.full((1, 3, 3, 2), 12 * 3 * 2**15))


def test_input_gradient_takes_spatial_sizes_alone() -> None:
    w, dy = random(3, 3, 2, 4), random(1, 5, 6, 4)
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    whole = conv_kernels.convolution_backprop_input((1, 5, 6, 2), w, dy, **attrs)
    np.testing.assert_array_equal(
        conv_kernels.convolution_backprop_input((5, 6), w, dy, **attrs), whole
    )


def test_convolution_refuses_operands_that_do_not_fit() -> None:
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with pytest.raises(ValueError, match="5 input channels and 4 output channels do not divide"):
        conv_kernels.convolution(random(1, 4, 4, 5), random(3, 3, 2, 4), **attrs)
    with pytest.raises(ValueError, match=r"must have shape \(1, 4, 4, 4\), got \(1, 3, 4, 4\)"):
        conv_kernels.convolution_backprop_filter(
            random(1, 4, 4, 2), (3, 3, 2, 4), random(1, 3, 4, 4), **attrs
        )
    with pytest.raises(ValueError, match="padding must be SAME, VALID or EXPLICIT, got 'FULL'"):
        conv_kernels.convolution(
            random(1, 4, 4, 2), random(3, 3, 2, 4), strides=[1] * 4, padding="FULL"
        )
    with pytest.raises(TypeError, match="floating-point type, got int32"):
        conv_kernels.convolution_backprop_input(
            (1, 4, 4, 2), np.ones((3, 3, 2, 4), np.int32), np.ones((1, 4, 4, 4), np.int32), **attrs
        )


# --- pooling ---------------------------------------------------------------------------------


class NaivePool:
    """Windows over all dimensions; maxima by the first-strictly-greater rule."""

    def __init__(self, x: np.ndarray, ksize, strides, pads) -> None:
        ones = (1,) * x.ndim
        self.x = x
        self.windows = [
            (o, [at for _, at in inside])
            for o, inside in window_index(x.shape, ksize, strides, ones, pads)
        ]
        self.out = tuple(np.add(self.windows[-1][0], 1))
        self.winner = {o: self.first_maximum(inside) for o, inside in self.windows}

    def first_maximum(self, inside: list[tuple[int, ...]]) -> tuple[int, ...]:
        best = inside[0]
        for at in inside[1:]:
            if self.x[at] > self.x[best]:
                best = at
        return best

    def collect(self, value) -> np.ndarray:
        y = np.zeros(self.out)
        for o, inside in self.windows:
            y[o] = value(o, inside)
        return y

    def spread(self, dy: np.ndarray, receivers) -> np.ndarray:
        """dy of each window added to the `receivers`, a list of (input position, weight)."""
        dx = np.zeros(self.x.shape)
        for o, inside in self.windows:
            for at, weight in receivers(o, inside):
                dx[at] += dy[o] * weight
        return dx


POOL_CASES = [
    # input, ksize, strides, padding
    ((2, 7, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    ((2, 7, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "VALID"),
    ((2, 8, 8, 2), (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
    ((2, 8, 7, 2), (1, 2, 2, 1), (1, 3, 3, 1), "VALID"),
    ((1, 6, 5, 2), (1, 3, 2, 1), (1, 1, 1, 1), "SAME"),
    ((1, 9, 7, 2), (1, 3, 3, 1), (1, 2, 2, 1), "EXPLICIT"),
    ((2, 5, 5, 3), (1, 5, 5, 1), (1, 1, 1, 1), "VALID"),
    ((1, 7, 7, 2), (1, 3, 3, 1), (1, 3, 3, 1), "SAME"),
    ((2, 3, 7, 8), (1, 1, 3, 2), (1, 1, 2, 2), "SAME"),
    ((1, 13, 12, 1), (1, 9, 8, 1), (1, 2, 2, 1), "SAME"),
    ((2, 3, 3, 6), (1, 1, 1, 3), (1, 1, 1, 3), "VALID"),
    ((1, 5, 6, 7, 2), (1, 3, 2, 2, 1), (1, 2, 1, 2, 1), "SAME"),
    ((1, 5, 6, 7, 2), (1, 3, 2, 2, 1), (1, 2, 1, 2, 1), "VALID"),
]
POOLS = pytest.mark.parametrize("case", POOL_CASES, ids=lambda c: "-".join(map(str, c)))
PLATFORMS = pytest.mark.parametrize("platform", ["cpu", "gpu"])


def pool_case(shape, ksize, strides, padding):
    x = halves(*shape)
    if padding == "SAME":
        pads = [same_pads(n, k, s, 1) for n, k, s in zip(shape, ksize, strides, strict=True)]
    else:
        pads = [(0, 0)] * len(shape)
        if padding == "EXPLICIT":
            pads[1:3] = [(1, 2), (0, 1)]
    attrs = {"ksize": ksize, "strides": strides, "padding": padding}
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [n for pad in pads for n in pad]
    return x, NaivePool(x, ksize, strides, pads), attrs


@PLATFORMS
@POOLS
def test_max_pool_and_its_gradients(case: tuple, platform: str) -> None:
    x, naive, attrs = pool_case(*case)
    attrs["platform"] = platform
    dy, ddx = random(*naive.out), random(*x.shape)

    @jax.jit
    def run(x, dy, ddx):
        y = pool_kernels.max_pool(x, **attrs)
        grad = pool_kernels.max_pool_grad(x, y, dy, **attrs)
        return y, grad, pool_kernels.max_pool_grad_grad(x, y, ddx, **attrs)

    y, dx, ddy = run(x, dy, ddx)
    np.testing.assert_array_equal(y, naive.collect(lambda o, _: x[naive.winner[o]]))
    np.testing.assert_allclose(
        dx, naive.spread(dy, lambda o, _: [(naive.winner[o], 1)]), atol=1e-12
    )
    np.testing.assert_array_equal(ddy, naive.collect(lambda o, _: ddx[naive.winner[o]]))


@pytest.mark.parametrize("case", POOL_CASES[-2:], ids=lambda c: c[-1])
def test_every_maximum_of_a_3d_window_gets_the_gradient(case: tuple) -> None:
    x, naive, attrs = pool_case(*case)
    dy = random(*naive.out)
    y = pool_kernels.max_pool(x, **attrs)

    def equal(o, inside):
        return [(at, 1) for at in inside if x[at] == x[naive.winner[o]]]

    expected = naive.spread(dy, equal)
    assert np.count_nonzero(expected) > len(naive.windows) // 2
    np.testing.assert_allclose(
        jitted(pool_kernels.max_pool3d_grad, **attrs)(x, y, dy), expected, atol=1e-12
    )


@pytest.mark.parametrize("include_batch", [False, True])
@pytest.mark.parametrize("case", [POOL_CASES[i] for i in (0, 3, 4)], ids=lambda c: c[-1])
def test_max_pool_with_argmax(case: tuple, include_batch: bool) -> None:
    x, naive, attrs = pool_case(*case)

    def flat(o, _):
        index = np.ravel_multi_index(naive.winner[o], x.shape)
        return index if include_batch else index % math.prod(x.shape[1:])

    kernel = jitted(
        pool_kernels.max_pool_with_argmax, include_batch_in_index=include_batch, **attrs
    )
    y, argmax = kernel(x)
    np.testing.assert_array_equal(y, naive.collect(lambda o, _: x[naive.winner[o]]))
    np.testing.assert_array_equal(argmax, naive.collect(flat))
    assert argmax.dtype == np.int64
    dy = random(*naive.out)
    dx = pool_kernels.max_pool_grad_with_argmax(x, dy, argmax, include_batch_in_index=include_batch)
    np.testing.assert_allclose(
        dx, naive.spread(dy, lambda o, _: [(naive.winner[o], 1)]), atol=1e-12
    )


@PLATFORMS
@pytest.mark.parametrize(
    "case", [c for c in POOL_CASES if c[-1] != "EXPLICIT"], ids=lambda c: "-".join(map(str, c))
)
def test_average_pool_and_its_gradient(case: tuple, platform: str) -> None:
    x, naive, attrs = pool_case(*case)
    attrs["platform"] = platform
    dy = random(*naive.out)
    run = jax.jit(
        lambda x, dy: (
            pool_kernels.avg_pool(x, **attrs),
            pool_kernels.avg_pool_grad(x.shape, dy, **attrs),
        )
    )
    y, dx = run(x, dy)
    mean = naive.collect(lambda _, inside: np.mean([x[at] for at in inside]))
    share = naive.spread(dy, lambda _, inside: [(at, 1 / len(inside)) for at in inside])
    np.testing.assert_allclose(y, mean, atol=1e-12)
    np.testing.assert_allclose(dx, share, atol=1e-12)


@pytest.mark.parametrize(
    ("row", "maximum", "place"),
    [
        ([np.nan, 1, 2], 2, 0),  # a leading NaN keeps the place, though not the value
        ([1, np.nan, 2], 2, 2),
        ([1, 2, np.nan], 2, 1),
        ([np.nan, np.nan, np.nan], np.finfo(np.float32).min, 0),
        ([-np.inf, -np.inf, -np.inf], np.finfo(np.float32).min, 0),
        ([2, 2, 1], 2, 0),
    ],
)
def test_nan_and_infinity_in_a_window(row: list[float], maximum: float, place: int) -> None:
    x = np.array(row, np.float32).reshape(1, 1, 3, 1)
    attrs = {"ksize": (1, 1, 3, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
    for platform in ("cpu", "gpu"):
        y = jitted(pool_kernels.max_pool, platform=platform, **attrs)(x)
        assert y.ravel()[0] == np.float32(maximum)
    dx = jitted(pool_kernels.max_pool_grad, **attrs)(x, y, np.ones((1, 1, 1, 1), np.float32))
    np.testing.assert_array_equal(np.flatnonzero(dx), [place])
    value, argmax = jitted(pool_kernels.max_pool_with_argmax, **attrs)(x)
    assert argmax.ravel()[0] == place
    np.testing.assert_array_equal(value.ravel()[0], np.float32(row[place]))


def test_padding_never_wins() -> None:
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}
    lowest = np.full((1, 2, 2, 1), np.iinfo(np.int32).min, np.int32)
    for x in (lowest, np.full((1, 2, 2, 1), -np.inf, np.float32)):
        y = jitted(pool_kernels.max_pool, **attrs)(x)
        dx = jitted(pool_kernels.max_pool_grad, **attrs)(x, y, np.ones_like(x))
        np.testing.assert_array_equal(np.ravel(dx), [1, 1, 1, 1])


def test_pools_refuse_what_does_not_fit() -> None:
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    x = random(1, 4, 4, 1)
    with pytest.raises(ValueError, match=r"must have shape \(1, 2, 2, 1\), got \(1, 3, 2, 1\)"):
        pool_kernels.avg_pool_grad(x.shape, random(1, 3, 2, 1), **attrs)
    with pytest.raises(ValueError, match="must have an entry for each dimension"):
        pool_kernels.max_pool(x, ksize=(2, 2), strides=(2, 2), padding="VALID")
    explicit_attrs = {**attrs, "padding": "EXPLICIT"}
    with pytest.raises(ValueError, match="must be smaller than the window size 2"):
        pool_kernels.max_pool(x, explicit_paddings=[0, 0, 2, 0, 0, 0, 0, 0], **explicit_attrs)


@pytest.mark.parametrize(
    ("stride", "rate", "padding"),
    [(1, 1, "SAME"), (2, 1, "VALID"), (1, 2, "SAME"), (1, 2, "VALID")],
)
def test_dilation_and_its_gradients(stride: int, rate: int, padding: str) -> None:
    x, w = halves(2, 6, 7, 2), halves(3, 2, 2)
    sizes, kernel, strides, rates = x.shape[1:3], w.shape[:2], (stride,) * 2, (rate,) * 2
    pads = [(0, 0)] * 2
    if padding == "SAME":
        pads = [same_pads(*row) for row in zip(sizes, kernel, strides, rates, strict=True)]
    index = list(window_index(sizes, kernel, strides, rates, pads))
    y = np.zeros((2, *np.add(index[-1][0], 1), 2))
    dy, dx, dw = random(*y.shape), np.zeros(x.shape), np.zeros(w.shape)
    for (o, inside), n, c in itertools.product(index, range(2), range(2)):
        values = [x[n, *at, c] + w[*q, c] for q, at in inside]
        q, at = inside[int(np.argmax(values))]
        y[n, *o, c] = max(values)
        dx[n, *at, c] += dy[n, *o, c]
        dw[*q, c] += dy[n, *o, c]
    attrs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
    back_input = jitted(dilation.dilation2d_backprop_input, **attrs)
    back_filter = jitted(dilation.dilation2d_backprop_filter, **attrs)
    np.testing.assert_array_equal(jitted(dilation.dilation2d, **attrs)(x, w), y)
    np.testing.assert_allclose(back_input(x, w, dy), dx, atol=1e-12)
    np.testing.assert_allclose(back_filter(x, w, dy), dw, atol=1e-12)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_filter_gradients_of_depthwise_convolutions_add_up_small_types_without_loss(multiplier):
    ones = jnp.ones((2, 40, 40, 3), jnp.bfloat16)
    dy = jnp.ones((2, 40, 40, 3 * multiplier), jnp.bfloat16)
    found = conv_kernels.depthwise_conv2d_native_backprop_filter(
        ones, (3, 3, 3, multiplier), dy, strides=[1, 1, 1, 1], padding="SAME"
    )
    assert found.dtype == jnp.bfloat16
    counts = np.outer([39, 40, 39], [39, 40, 39]) * 2.0  # bfloat16 alone ends at 256
    np.testing.assert_allclose(
        np.asarray(found, np.float32),
        np.broadcast_to(counts[:, :, None, None], found.shape),
        rtol=2**-8,
    )
