"""Convolutions with TensorFlow's semantics, as pure functions that JAX can trace.

Filters are laid out spatial dimensions first (HWIO, DHWIO); `strides`, `dilations` and
`explicit_paddings` follow the dimension order of `data_format`, as in the graph attributes.

On the CPU, XLA hands flat float32 convolutions without groups to a fast library and all else to
plain loops that are ten to a hundred times slower. So for `platform="cpu"` the other cases are
written here as shifted multiply-adds (one channel per group), one convolution per group, one matrix
product (float64, integers) or flat ones (three dimensions). Others get the one lax convolution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.core.reducing import sums_by_product
from headrace.ops.nn import conv_depth, conv_phases

# Above this many filter positions the unrolled forms cost more to compile than they win.
_MAX_UNROLLED = 64
# Above this many groups one convolution per group costs more to compile than it wins.
_MAX_SPLIT_GROUPS = 64
_LIBRARY_DTYPES = frozenset({"float32", "float16", "bfloat16"})

_FORMATS = {
    "NHWC": (2, True),
    "NCHW": (2, False),
    "NDHWC": (3, True),
    "NCDHW": (3, False),
}
_SPATIAL_LETTERS = {2: "HW", 3: "DHW"}


@dataclass(frozen=True)
class _Geometry:
    """What a convolution needs beside its operands, per spatial dimension."""

    channels_last: bool
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int
    cpu: bool

    @property
    def rank(self) -> int:
        return len(self.strides)

    @property
    def data_format(self) -> str:
        letters = _SPATIAL_LETTERS[self.rank]
        return f"N{letters}C" if self.channels_last else f"NC{letters}"


def spatial_pads(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit: Sequence[tuple[int, int]] = (),
) -> tuple[tuple[int, int], ...]:
    """Padding (before, after) of each dimension, by TensorFlow's rule.

    SAME makes the output size ceil(size / stride); the odd element of padding goes after.
    Raises ValueError for an unknown `padding`, or EXPLICIT without a pair per dimension.
    """
    if padding == "VALID":
        return ((0, 0),) * len(sizes)
    if padding == "EXPLICIT":
        if len(explicit) != len(sizes):
            raise ValueError(f"expected {len(sizes)} pairs of explicit padding, got {explicit}")
        return tuple((int(lo), int(hi)) for lo, hi in explicit)
    if padding != "SAME":
        raise ValueError(f"padding must be SAME, VALID or EXPLICIT, got {padding!r}")
    pads = []
    for size, win, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        extent = (win - 1) * dilation + 1
        total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        pads.append((total // 2, total - total // 2))
    return tuple(pads)


def _spatial(values: Sequence[int], data_format: str) -> tuple[int, ...]:
    rank, channels_last = _FORMATS[data_format]
    first = 1 if channels_last else 2
    return tuple(int(v) for v in values[first : first + rank])


def _geometry(
    x_shape: Sequence[int],
    filter_shape: Sequence[int],
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    dilations: Sequence[int],
    data_format: str,
    platform: str,
) -> _Geometry:
    if data_format not in _FORMATS:
        raise ValueError(f"data_format must be one of {sorted(_FORMATS)}, got {data_format!r}")
    rank, channels_last = _FORMATS[data_format]
    if len(x_shape) != rank + 2 or len(filter_shape) != rank + 2:
        raise ValueError(
            f"{data_format} convolution expects operands of rank {rank + 2}, "
            f"got input {tuple(x_shape)} and filter {tuple(filter_shape)}"
        )
    channels = x_shape[-1] if channels_last else x_shape[1]
    depth = filter_shape[-2]
    if depth == 0 or channels % depth or filter_shape[-1] % max(channels // depth, 1):
        raise ValueError(
            f"{channels} input channels and {filter_shape[-1]} output channels do not divide "
            f"into groups of filter depth {depth}"
        )
    sizes, stride = _spatial(x_shape, data_format), _spatial(strides, data_format)
    dilation = _spatial(dilations or (1,) * len(x_shape), data_format)
    flat = [int(p) for p in explicit_paddings]
    before, after = _spatial(flat[::2], data_format), _spatial(flat[1::2], data_format)
    pads = spatial_pads(
        sizes,
        filter_shape[:rank],
        stride,
        dilation,
        padding,
        tuple(zip(before, after, strict=True)),
    )
    return _Geometry(channels_last, stride, dilation, pads, channels // depth, platform == "cpu")


# --- forms of the forward convolution -------------------------------------------------------


def _lax_conv(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    filter_spec = _SPATIAL_LETTERS[geo.rank] + "IO"
    return lax.conv_general_dilated(
        x,
        w,
        geo.strides,
        geo.pads,
        rhs_dilation=geo.dilations,
        dimension_numbers=(geo.data_format, filter_spec, geo.data_format),
        feature_group_count=geo.groups,
    )


def _windows(x: jax.Array, kernel: Sequence[int], geo: _Geometry) -> list[jax.Array]:
    """For each filter position, in row-major order, the strided slice of `x` that it meets."""
    padded = lax.pad(
        x, jnp.zeros((), x.dtype), [(0, 0, 0), *((*p, 0) for p in geo.pads), (0, 0, 0)]
    )
    out = _out_sizes(x.shape[1:-1], kernel, geo)
    slices = []
    for position in itertools.product(*map(range, kernel)):
        start = [p * d for p, d in zip(position, geo.dilations, strict=True)]
        stop = [a + (o - 1) * s + 1 for a, o, s in zip(start, out, geo.strides, strict=True)]
        slices.append(
            lax.slice(
                padded, (0, *start, 0), (x.shape[0], *stop, x.shape[-1]), (1, *geo.strides, 1)
            )
        )
    return slices


def _out_sizes(sizes: Sequence[int], kernel: Sequence[int], geo: _Geometry) -> tuple[int, ...]:
    return tuple(
        max(0, (n + lo + hi - (k - 1) * d - 1) // s + 1)  # 0 where no window fits
        for n, (lo, hi), k, d, s in zip(
            sizes, geo.pads, kernel, geo.dilations, geo.strides, strict=True
        )
    )


def _out_shape(x_shape: Sequence[int], w_shape: Sequence[int], geo: _Geometry) -> tuple[int, ...]:
    """The shape of the convolution."""
    sizes = x_shape[1:-1] if geo.channels_last else x_shape[2:]
    out = _out_sizes(sizes, w_shape[: geo.rank], geo)
    return (x_shape[0], *out, w_shape[-1]) if geo.channels_last else (x_shape[0], w_shape[-1], *out)


def _shift_conv(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """One input channel per group: a multiply-add per filter position, fused into one loop."""
    kernel, channels, outputs = w.shape[: geo.rank], x.shape[-1], w.shape[-1]
    multiplier = outputs // channels
    taps = w.reshape(-1, channels, multiplier)
    terms = []
    for i, window in enumerate(_windows(x, kernel, geo)):
        terms.append(window * taps[i, :, 0] if multiplier == 1 else window[..., None] * taps[i])
    total = _sum(terms)
    return total.reshape(*total.shape[: geo.rank + 1], outputs)


def _matmul_conv(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """Sum over the filter positions of (window @ filter slice); no groups."""
    taps = w.reshape(-1, *w.shape[-2:])
    windows = _windows(x, w.shape[: geo.rank], geo)
    return _sum(
        [window.reshape(-1, window.shape[-1]) @ taps[i] for i, window in enumerate(windows)]
    ).reshape(*windows[0].shape[:-1], w.shape[-1])


def _split_conv(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """One convolution per group."""
    single = replace(geo, groups=1)
    parts = zip(jnp.split(x, geo.groups, -1), jnp.split(w, geo.groups, -1), strict=True)
    return jnp.concatenate([_forward(a, b, single) for a, b in parts], -1)


def _depth_conv(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """Three dimensions without groups: one convolution in two (see `conv_depth`)."""
    out = _out_shape(x.shape, w.shape, geo)
    steps = zip(geo.pads, geo.strides, geo.dilations, strict=True)
    flat = conv_depth.layers(x, w.shape[0], out[1], *next(steps))
    pads, strides, dilations = zip(*steps, strict=True)
    plain = replace(geo, strides=strides, dilations=dilations, pads=pads)
    return _forward(flat, conv_depth.flat_filter(w), plain).reshape(out)


_Form = Callable[[jax.Array, jax.Array, _Geometry], jax.Array]


def _form(dtype: np.dtype, w_shape: Sequence[int], geo: _Geometry) -> _Form:
    """The fastest form of the convolution; all but `_lax_conv` want channels last."""
    if not geo.cpu:
        return _lax_conv
    positions = math.prod(w_shape[: geo.rank])
    if geo.groups > 1 and w_shape[-2] == 1 and positions <= _MAX_UNROLLED:
        return _shift_conv
    if 1 < geo.groups <= _MAX_SPLIT_GROUPS:
        return _split_conv
    if geo.groups == 1 and dtype.name not in _LIBRARY_DTYPES and positions <= _MAX_UNROLLED:
        return _matmul_conv
    if geo.rank == 3 and geo.groups == 1 and dtype.name in _LIBRARY_DTYPES:
        return _depth_conv
    return _lax_conv


def _sum(terms: Sequence[jax.Array]) -> jax.Array:
    return sum(terms[1:], terms[0])


def _to_channels_last(x: jax.Array, geo: _Geometry) -> jax.Array:
    return x if geo.channels_last else jnp.moveaxis(x, 1, -1)


def _from_channels_last(x: jax.Array, geo: _Geometry) -> jax.Array:
    return x if geo.channels_last else jnp.moveaxis(x, -1, 1)


# --- the three passes ------------------------------------------------------------------------


def _forward(x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """The convolution of `x` (any data format) with `w`; linear in each operand."""
    shape = _out_shape(x.shape, w.shape, geo)
    if 0 in x.shape or 0 in shape:
        return jnp.zeros(shape, x.dtype)
    return _apply_form(_form(x.dtype, w.shape, geo), x, w, geo)


def _apply_form(form: _Form, x: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    if form is _lax_conv:
        return _lax_conv(x, w, geo)
    last = replace(geo, channels_last=True)
    return _from_channels_last(form(_to_channels_last(x, geo), w, last), geo)


def _input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: _Geometry
) -> jax.Array:
    _check_gradient(dy, x_shape, w.shape, geo)
    if 0 in x_shape or 0 in dy.shape:
        return jnp.zeros(x_shape, dy.dtype)
    if geo.cpu:
        dx = _phase_input_gradient(x_shape, w, dy, geo)
        if dx is not None:
            return dx
    x_like = jax.ShapeDtypeStruct(x_shape, dy.dtype)  # type: ignore[no-untyped-call]
    (dx,) = jax.linear_transpose(lambda x: _forward(x, w, geo), x_like)(dy)
    return jnp.asarray(dx)


def _phase_input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: _Geometry
) -> jax.Array | None:
    """The input gradient without the zeros that strides put between the elements of `dy`; None
    where that is not faster."""
    form = _form(dy.dtype, w.shape, geo)
    sizes = x_shape[1:-1] if geo.channels_last else x_shape[2:]
    steps: dict[str, Any] = {"strides": geo.strides, "dilations": geo.dilations, "pads": geo.pads}
    if geo.groups == 1 and dy.dtype.name == "float32":
        dx = conv_phases.by_products(sizes, w, _to_channels_last(dy, geo), **steps)
        if dx is not None:
            return _from_channels_last(dx, geo)
    if max(geo.strides) == 1:
        return None
    if geo.groups > 1 and form is _lax_conv:
        return None
    if form is _split_conv:
        return _split_input_gradient(x_shape, w, dy, geo)
    channels = x_shape[-1] if geo.channels_last else x_shape[1]
    if form is _shift_conv:
        w = w.reshape(*w.shape[: geo.rank], channels, -1)

    def dense(
        x: jax.Array,
        w: jax.Array,
        pads: tuple[tuple[int, int], ...],
        dilations: tuple[int, ...],
    ) -> jax.Array:
        plain = _Geometry(True, (1,) * geo.rank, dilations, pads, 1, cpu=True)
        return (_shift_product if form is _shift_conv else _forward)(x, w, plain)

    dx = conv_phases.input_gradient(
        sizes,
        w,
        _to_channels_last(dy, geo),
        **steps,
        dense=dense,
        merges=form is not _shift_conv,
    )
    return None if dx is None else _from_channels_last(dx, geo)


def _split_input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: _Geometry
) -> jax.Array:
    axis = -1 if geo.channels_last else 1
    single = replace(geo, groups=1)
    shape = list(x_shape)
    shape[axis] //= geo.groups
    parts = zip(jnp.split(w, geo.groups, -1), jnp.split(dy, geo.groups, axis), strict=True)
    return jnp.concatenate([_input_gradient(tuple(shape), a, b, single) for a, b in parts], axis)


def _shift_product(dy: jax.Array, w: jax.Array, geo: _Geometry) -> jax.Array:
    """Sums `dy` [..., c * m] over its m, with weights `w` [...taps, m, c], position by position."""
    multiplier, channels = w.shape[-2:]
    taps = w.reshape(-1, multiplier, channels)
    terms = []
    for i, window in enumerate(_windows(dy, w.shape[: geo.rank], geo)):
        if multiplier == 1:
            terms.append(window * taps[i, 0])
        else:
            by_channel = window.reshape(*window.shape[:-1], channels, multiplier)
            terms.append((by_channel * taps[i].T).sum(-1))
    return _sum(terms)


def _filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: _Geometry
) -> jax.Array:
    _check_gradient(dy, x.shape, w_shape, geo)
    if 0 in x.shape or 0 in dy.shape:
        return jnp.zeros(w_shape, dy.dtype)
    form = _form(x.dtype, w_shape, geo)
    if form in (_shift_conv, _split_conv):
        last = replace(geo, channels_last=True)
        by_form = _shift_filter_gradient if form is _shift_conv else _split_filter_gradient
        return by_form(_to_channels_last(x, geo), w_shape, _to_channels_last(dy, geo), last)
    w_like = jax.ShapeDtypeStruct(w_shape, dy.dtype)  # type: ignore[no-untyped-call]
    (dw,) = jax.linear_transpose(lambda w: _apply_form(form, x, w, geo), w_like)(dy)
    return jnp.asarray(dw)


def _shift_filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: _Geometry
) -> jax.Array:
    channels, outputs = x.shape[-1], w_shape[-1]
    dy = dy.reshape(*dy.shape[:-1], channels, outputs // channels)
    taps = [
        sums_by_product((window[..., None] * dy).reshape(-1, outputs))
        for window in _windows(x, w_shape[: geo.rank], geo)
    ]
    return jnp.stack(taps).reshape(w_shape)


def _split_filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: _Geometry
) -> jax.Array:
    single = replace(geo, groups=1)
    group_shape = (*w_shape[:-1], w_shape[-1] // geo.groups)
    parts = zip(jnp.split(x, geo.groups, -1), jnp.split(dy, geo.groups, -1), strict=True)
    return jnp.concatenate([_filter_gradient(a, group_shape, b, single) for a, b in parts], -1)


def _check_gradient(
    dy: jax.Array, x_shape: Sequence[int], w_shape: Sequence[int], geo: _Geometry
) -> None:
    shape = _out_shape(x_shape, w_shape, geo)
    if tuple(dy.shape) != shape:
        raise ValueError(
            f"gradient of a convolution of input {tuple(x_shape)} with filter {tuple(w_shape)} "
            f"must have shape {shape}, got {tuple(dy.shape)}"
        )
    if not jnp.issubdtype(dy.dtype, jnp.inexact):
        raise TypeError(f"convolution gradients need a floating-point type, got {dy.dtype}")


# --- the public kernels ----------------------------------------------------------------------


def convolution(
    x: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Convolution of `x` [n, h, w, c] (NHWC) or [n, c, h, w] (NCHW), or with a depth before h,
    with `filter` [kh, kw, c / groups, outputs] (or kd before kh); the result has the format and
    dtype of `x`.

    A filter shallower than the input makes groups. Raises ValueError for operands that do not fit.
    """
    geo = _geometry(
        x.shape,
        filter.shape,
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _forward(x, filter, geo)


def convolution_backprop_input(
    input_sizes: Sequence[int],
    filter: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `convolution` for its input, of shape `input_sizes`.

    Raises ValueError when `dy` has another shape than the convolution of such an input.
    """
    sizes = _full_sizes(input_sizes, filter.shape, dy.shape, data_format)
    geo = _geometry(
        sizes,
        filter.shape,
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _input_gradient(sizes, filter, dy, geo)


def convolution_backprop_filter(
    x: jax.Array,
    filter_sizes: Sequence[int],
    dy: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `convolution` for its filter: the result has the shape `filter_sizes`.

    Raises ValueError when `dy` has another shape than the convolution of such operands.
    """
    shape = tuple(int(n) for n in filter_sizes)
    geo = _geometry(
        x.shape,
        shape,
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _filter_gradient(x, shape, dy, geo)


def _full_sizes(
    sizes: Sequence[int], filter_shape: Sequence[int], dy_shape: Sequence[int], data_format: str
) -> tuple[int, ...]:
    """`sizes` as a whole shape; TensorFlow also takes the spatial dimensions alone."""
    full = tuple(int(n) for n in sizes)
    rank, channels_last = _FORMATS.get(data_format, (0, True))
    if len(full) != rank:
        return full
    batch, channels = dy_shape[0], filter_shape[-2]
    return (batch, *full, channels) if channels_last else (batch, channels, *full)


def depthwise_conv2d_native(
    x: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Depthwise convolution: channel c of `x` meets filter[:, :, c, :] of `filter` [kh, kw, c, m].

    The result has c * m channels, in that order. Raises ValueError for operands that do not fit.
    """
    geo = _geometry(
        x.shape,
        _flat_filter(filter.shape),
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _forward(x, filter.reshape(_flat_filter(filter.shape)), geo)


def depthwise_conv2d_native_backprop_input(
    input_sizes: Sequence[int],
    filter: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `depthwise_conv2d_native` for its input, of shape `input_sizes`."""
    sizes = tuple(int(n) for n in input_sizes)
    geo = _geometry(
        sizes,
        _flat_filter(filter.shape),
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _input_gradient(sizes, filter.reshape(_flat_filter(filter.shape)), dy, geo)


def depthwise_conv2d_native_backprop_filter(
    x: jax.Array,
    filter_sizes: Sequence[int],
    dy: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_format: str = "NHWC",
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `depthwise_conv2d_native` for its filter, of shape `filter_sizes`."""
    shape = tuple(int(n) for n in filter_sizes)
    geo = _geometry(
        x.shape,
        _flat_filter(shape),
        strides=strides,
        padding=padding,
        explicit_paddings=explicit_paddings,
        dilations=dilations,
        data_format=data_format,
        platform=platform,
    )
    return _filter_gradient(x, _flat_filter(shape), dy, geo).reshape(shape)


def _flat_filter(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a depthwise filter as a grouped one: one channel deep, c * m outputs."""
    kh, kw, channels, multiplier = (int(n) for n in shape)
    return (kh, kw, 1, channels * multiplier)
