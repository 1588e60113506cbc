"""Convolutions with TensorFlow's semantics, as pure functions that JAX can trace.

Filters are laid out spatial dimensions first (HWIO, DHWIO); `strides`, `dilations` and
`explicit_paddings` follow the dimension order of `data_format`, as in the graph attributes.

Each pass is made by the native library first, where that is there and faster (`conv_native`). All
else is for XLA alone:

On the CPU, XLA hands flat float32 convolutions without groups to a fast library and all else to
plain loops that are ten to a hundred times slower. So for `platform="cpu"` the other cases are
written here as shifted multiply-adds (one channel per group), one convolution per group, matrix
products (float64, integers, and what `conv_products` lists) or flat ones (three dimensions). Others
get the one lax convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.core.barrier import barrier
from headrace.ops.nn import (
    conv_covered,
    conv_depth,
    conv_native,
    conv_phases,
    conv_products,
    conv_strips,
)
from headrace.ops.nn.conv_geometry import (
    FORMATS,
    SPATIAL_LETTERS,
    Geometry,
    from_channels_last,
    geometry_of,
    out_shape,
    to_channels_last,
)
from headrace.ops.nn.conv_products import LIBRARY_DTYPES, MAX_UNROLLED, by_taps, padded, windows

# Above this many groups one convolution per group costs more to compile than it wins.
_MAX_SPLIT_GROUPS = 64

# The gradient of a filter of single channels sums so many rows of the output at once, at most and
# at least; where their number has no such divisor, pictures are cut into strips that have.
_MOST_SUMMED_ROWS, _LEAST_SUMMED_ROWS = 16, 4

# --- forms of the forward convolution -------------------------------------------------------


def _lax_conv(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    filter_spec = SPATIAL_LETTERS[geo.rank] + "IO"
    return lax.conv_general_dilated(
        x,
        w,
        geo.strides,
        geo.pads,
        rhs_dilation=geo.dilations,
        dimension_numbers=(geo.data_format, filter_spec, geo.data_format),
        feature_group_count=geo.groups,
    )


def _shift_conv(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """One input channel per group: a multiply-add per filter position, fused into one loop."""
    kernel, channels, outputs = w.shape[: geo.rank], x.shape[-1], w.shape[-1]
    multiplier = outputs // channels
    taps = w.reshape(-1, channels, multiplier)
    terms = []
    for i, window in enumerate(_whole_windows(x, kernel, geo)):
        terms.append(window * taps[i, :, 0] if multiplier == 1 else window[..., None] * taps[i])
    total = _sum(terms)
    return total.reshape(*total.shape[: geo.rank + 1], outputs)


def _whole_windows(x: jax.Array, kernel: Sequence[int], geo: Geometry) -> list[jax.Array]:
    """The `windows` of an input whose padding is made before them: else XLA asks for each element
    of each whether it is one of the zeros."""
    if not any(map(any, geo.pads)):
        return windows(x, kernel, geo)
    unpadded = replace(geo, pads=((0, 0),) * geo.rank)
    return windows(barrier(padded(x, geo)), kernel, unpadded)


def _split_conv(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """One convolution per group."""
    single = replace(geo, groups=1)
    parts = zip(jnp.split(x, geo.groups, -1), jnp.split(w, geo.groups, -1), strict=True)
    return jnp.concatenate([_by_form(a, b, single) for a, b in parts], -1)


def _depth_conv(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """Three dimensions without groups: one convolution in two (see `conv_depth`)."""
    out = out_shape(x.shape, w.shape, geo)
    steps = zip(geo.pads, geo.strides, geo.dilations, strict=True)
    flat = conv_depth.layers(x, w.shape[0], out[1], *next(steps))
    pads, strides, dilations = zip(*steps, strict=True)
    plain = replace(geo, strides=strides, dilations=dilations, pads=pads)
    return _by_form(flat, conv_depth.flat_filter(w), plain).reshape(out)


def _form(
    dtype: np.dtype,
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    geo: Geometry,
    to_filter: bool = False,
) -> conv_products.Form:
    """The fastest form of the convolution, or of its gradient `to_filter`; all but `_lax_conv` want
    channels last."""
    if not geo.cpu:
        return _lax_conv
    product = conv_products.fastest(dtype, x_shape, w_shape, geo, to_filter=to_filter)
    if product is not None:
        return product
    positions = math.prod(w_shape[: geo.rank])
    if geo.groups > 1 and w_shape[-2] == 1 and positions <= MAX_UNROLLED:
        return _shift_conv
    if 1 < geo.groups <= _MAX_SPLIT_GROUPS:
        return _split_conv
    if geo.groups == 1 and dtype.name not in LIBRARY_DTYPES and positions <= MAX_UNROLLED:
        return by_taps
    if geo.rank == 3 and geo.groups == 1 and dtype.name in LIBRARY_DTYPES:
        return _depth_conv
    return _lax_conv


def _sum(terms: Sequence[jax.Array]) -> jax.Array:
    return sum(terms[1:], terms[0])


# --- the three passes ------------------------------------------------------------------------


def _forward(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """The convolution of `x` (any data format) with `w`; linear in each operand."""
    if 0 not in x.shape and 0 not in out_shape(x.shape, w.shape, geo):
        y = conv_native.forward(x, w, geo)
        if y is not None:
            return y
    return _by_form(x, w, geo)


def _by_form(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """The same by XLA alone, which JAX can transpose."""
    shape = out_shape(x.shape, w.shape, geo)
    if 0 in x.shape or 0 in shape:
        return jnp.zeros(shape, x.dtype)
    return _apply_form(_form(x.dtype, x.shape, w.shape, geo), x, w, geo)


def _apply_form(form: conv_products.Form, x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    if form is _lax_conv:
        return _lax_conv(x, w, geo)
    last = replace(geo, channels_last=True)
    return from_channels_last(form(to_channels_last(x, geo), w, last), geo)


def _input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: Geometry
) -> jax.Array:
    _check_gradient(dy, x_shape, w.shape, geo)
    if 0 in x_shape or 0 in dy.shape:
        return jnp.zeros(x_shape, dy.dtype)
    if geo.cpu:
        dx = conv_native.input_gradient(x_shape, w, dy, geo)
        if dx is not None:
            return dx
        dx = _phase_input_gradient(x_shape, w, dy, geo)
        if dx is not None:
            return dx
    x_like = jax.ShapeDtypeStruct(x_shape, dy.dtype)  # type: ignore[no-untyped-call]
    (dx,) = jax.linear_transpose(lambda x: _by_form(x, w, geo), x_like)(dy)
    return jnp.asarray(dx)


def _phase_input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: Geometry
) -> jax.Array | None:
    """The input gradient without the zeros that strides put between the elements of `dy`; None
    where that is not faster."""
    form = _form(dy.dtype, x_shape, w.shape, geo)
    if conv_products.meets_once(form, w.shape[: geo.rank]):
        return None
    sizes = geo.spatial(x_shape)
    steps: dict[str, Any] = {"strides": geo.strides, "dilations": geo.dilations, "pads": geo.pads}
    if geo.groups == 1 and dy.dtype.name in LIBRARY_DTYPES:
        covered = conv_covered.dimensions(sizes, w.shape[: geo.rank], geo)
        if covered:
            return _covered_input_gradient(x_shape, w, dy, geo, covered)
        dx = conv_phases.by_products(sizes, w, to_channels_last(dy, geo), **steps)
        if dx is not None:
            return from_channels_last(dx, geo)
    if max(geo.strides) == 1 and form is not _shift_conv:
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
        plain = Geometry(True, (1,) * geo.rank, dilations, pads, 1, cpu=True)
        return (_shift_product if form is _shift_conv else _forward)(x, w, plain)

    dx = conv_phases.input_gradient(
        sizes,
        w,
        to_channels_last(dy, geo),
        **steps,
        dense=dense,
        merges=form is not _shift_conv,
    )
    return None if dx is None else from_channels_last(dx, geo)


def _covered_input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: Geometry, covered: tuple[int, ...]
) -> jax.Array:
    """The input gradient where a filter covers dimensions: these are channels meanwhile."""
    last = (x_shape[0], *geo.spatial(x_shape), w.shape[-2])
    dx = _input_gradient(
        conv_covered.shape_as_channels(last, covered),
        conv_covered.filter_as_channels(w, covered),
        to_channels_last(dy, geo),
        conv_covered.geometry_as_channels(geo, covered),
    )
    return from_channels_last(conv_covered.channels_as_dimensions(dx, last, covered), geo)


def _split_input_gradient(
    x_shape: tuple[int, ...], w: jax.Array, dy: jax.Array, geo: Geometry
) -> jax.Array:
    axis = -1 if geo.channels_last else 1
    single = replace(geo, groups=1)
    shape = list(x_shape)
    shape[axis] //= geo.groups
    parts = zip(jnp.split(w, geo.groups, -1), jnp.split(dy, geo.groups, axis), strict=True)
    return jnp.concatenate([_input_gradient(tuple(shape), a, b, single) for a, b in parts], axis)


def _shift_product(dy: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """Sums `dy` [..., c * m] over its m, with weights `w` [...taps, m, c], position by position."""
    multiplier, channels = w.shape[-2:]
    taps = w.reshape(-1, multiplier, channels)
    terms = []
    for i, window in enumerate(_whole_windows(dy, w.shape[: geo.rank], geo)):
        if multiplier == 1:
            terms.append(window * taps[i, 0])
        else:
            by_channel = window.reshape(*window.shape[:-1], channels, multiplier)
            terms.append((by_channel * taps[i].T).sum(-1))
    return _sum(terms)


def _filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: Geometry
) -> jax.Array:
    _check_gradient(dy, x.shape, w_shape, geo)
    if 0 in x.shape or 0 in dy.shape:
        return jnp.zeros(w_shape, dy.dtype)
    dw = conv_native.filter_gradient(x, w_shape, dy, geo)
    if dw is not None:
        return dw
    form = _form(x.dtype, x.shape, w_shape, geo, to_filter=True)
    if form in (_shift_conv, _split_conv):
        last = replace(geo, channels_last=True)
        by_form = _shift_filter_gradient if form is _shift_conv else _split_filter_gradient
        return by_form(to_channels_last(x, geo), w_shape, to_channels_last(dy, geo), last)
    if form is _lax_conv:
        strips, axis = conv_strips.count(x.shape, w_shape, geo)
        if strips > 1:
            x, dy, geo = conv_strips.cut(x, w_shape, dy, geo, strips, axis)
    w_like = jax.ShapeDtypeStruct(w_shape, dy.dtype)  # type: ignore[no-untyped-call]
    (dw,) = jax.linear_transpose(lambda w: _apply_form(form, x, w, geo), w_like)(dy)
    return jnp.asarray(dw)


def _shift_filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: Geometry
) -> jax.Array:
    """A sum of products for each filter position, in one loop for all of them. (Side by side nine
    of them take two thirds of the time alone, but a tenth more than the loop in a network.)

    Rows come first: XLA adds up a few rows of elements that lie side by side in vectors, many in a
    slow loop. The sum over the last dimension comes afterwards.
    """
    axis = geo.rank - 2
    rows = dy.shape[axis + 1]
    strip = max(n for n in range(1, _MOST_SUMMED_ROWS + 1) if rows % n == 0)
    if strip < min(rows, _LEAST_SUMMED_ROWS):
        x, dy, geo = conv_strips.cut(x, w_shape, dy, geo, -(-rows // _MOST_SUMMED_ROWS), axis)
        strip = dy.shape[axis + 1]
    kernel, channels, outputs, columns = w_shape[: geo.rank], x.shape[-1], w_shape[-1], dy.shape[-2]
    wide = jnp.promote_types(dy.dtype, jnp.float32)
    dy = dy.astype(wide)
    if outputs > channels:
        dy = dy.reshape(*dy.shape[:-1], channels, outputs // channels)
    met = [(n - 1) * s + 1 for n, s in zip(dy.shape[1 : geo.rank + 1], geo.strides, strict=True)]
    # Zeros that are made in the loop over positions would be made for each.
    around = barrier(padded(x.astype(wide), geo))

    def of_position(start: jax.Array) -> jax.Array:
        starts = (np.int32(0), *start, np.int32(0))
        window = lax.dynamic_slice(around, starts, (around.shape[0], *met, channels))
        window = lax.slice(window, [0] * window.ndim, window.shape, (1, *geo.strides, 1))
        window = window.reshape(*window.shape, *[1] * (dy.ndim - window.ndim))
        products = (window * dy).reshape(-1, strip, columns * outputs)
        sums = barrier(lax.reduce_sum(products, (1,)))
        return lax.reduce_sum(sums.reshape(-1, outputs), (0,))

    positions = np.array(list(np.ndindex(*kernel)), np.int32)
    dw = lax.map(of_position, positions * np.array(geo.dilations, np.int32))
    return jnp.asarray(dw.reshape(w_shape), x.dtype)


def _split_filter_gradient(
    x: jax.Array, w_shape: tuple[int, ...], dy: jax.Array, geo: Geometry
) -> jax.Array:
    single = replace(geo, groups=1)
    group_shape = (*w_shape[:-1], w_shape[-1] // geo.groups)
    parts = zip(jnp.split(x, geo.groups, -1), jnp.split(dy, geo.groups, -1), strict=True)
    return jnp.concatenate([_filter_gradient(a, group_shape, b, single) for a, b in parts], -1)


def _check_gradient(
    dy: jax.Array, x_shape: Sequence[int], w_shape: Sequence[int], geo: Geometry
) -> None:
    shape = out_shape(x_shape, w_shape, geo)
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
    geo = geometry_of(
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
    geo = geometry_of(
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
    geo = geometry_of(
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
    rank, channels_last = FORMATS.get(data_format, (0, True))
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
    geo = geometry_of(
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
    geo = geometry_of(
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
    geo = geometry_of(
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
