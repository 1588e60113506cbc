"""Convolutions without groups as matrix products, where XLA's CPU library is slower than those.

It takes a filter of one tap two to eight times as long as the product that it is, patches side by
side up to three times, and it does not take a filter that is larger than the input, padding not
counted: plain loops do, a hundred times as long. That is what the last layers of a deep network on
small pictures are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.nn.conv_geometry import Geometry, out_sizes

#: What XLA's library has convolutions of; it makes float32 of the short ones.
LIBRARY_DTYPES = frozenset({"float32", "float16", "bfloat16"})
#: A convolution of operands with channels last.
Form = Callable[[jax.Array, jax.Array, Geometry], jax.Array]

#: The library of XLA takes longer to lay out a filter of at least so many elements for a product of
#: at most so many rows than joining what the filter meets does.
_FEW_ROWS, _LARGE_FILTER = 64, 1 << 19
#: So many taps of filters of one column, and of one row.
_LONGEST_COLUMN, _LONGEST_ROW = 7, 3
#: Above this many filter positions the unrolled forms cost more to compile than they win.
MAX_UNROLLED = 64


def fastest(
    dtype: np.dtype,
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    geo: Geometry,
    *,
    to_filter: bool = False,
) -> Form | None:
    """The form of a convolution on the CPU, or None where XLA's library does better.

    Args:
        x_shape: of the input, in the order of the geometry.
        w_shape: of the filter, spatial dimensions first.
        to_filter: whether it is for the filter's gradient.
    """
    kernel = tuple(w_shape[: geo.rank])
    sizes = geo.spatial(x_shape)
    if (
        geo.groups > 1
        or dtype.name not in LIBRARY_DTYPES
        or not all(isinstance(n, int) for n in x_shape)
    ):
        return None
    if math.prod(kernel) == 1:
        return by_taps
    if not any(map(any, geo.pads)) and max(geo.dilations) == 1:
        if kernel == sizes:
            return whole
        if kernel == geo.strides:
            return by_patches
    if to_filter and _is_short_line(kernel):
        return by_taps
    if math.prod(kernel) > MAX_UNROLLED or 0 in x_shape:
        return None
    if exceeds(kernel, sizes) and not to_filter:  # whose gradient has the output as its filter
        return joined
    rows = x_shape[0] * math.prod(out_sizes(sizes, kernel, geo))
    return joined if rows <= _FEW_ROWS and math.prod(w_shape) >= _LARGE_FILTER else None


def meets_once(form: Callable[..., jax.Array], kernel: Sequence[int]) -> bool:
    """Whether a form meets each element at most once: then its input gradient is one product, and
    there are no zeros of strides to be saved."""
    return form in (whole, by_patches) or (form is by_taps and math.prod(kernel) == 1)


def exceeds(kernel: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a filter has more taps along a dimension than the input has elements."""
    return any(k > n for k, n in zip(kernel, sizes, strict=True))


def _is_short_line(kernel: tuple[int, ...]) -> bool:
    """Whether products with the few places of a filter are quicker than XLA's gradient for it."""
    return len(kernel) == 2 and (
        (kernel[1] == 1 and kernel[0] <= _LONGEST_COLUMN)
        or (kernel[0] == 1 and kernel[1] <= _LONGEST_ROW)
    )


def padded(x: jax.Array, geo: Geometry) -> jax.Array:
    """The input with the zeros that the geometry puts around it; channels are last."""
    around = [(0, 0, 0), *((*pad, 0) for pad in geo.pads), (0, 0, 0)]
    return lax.pad(x, jnp.zeros((), x.dtype), around)


def windows(x: jax.Array, kernel: Sequence[int], geo: Geometry) -> list[jax.Array]:
    """For each filter position, in row-major order, the strided slice of `x` that it meets."""
    x_padded = padded(x, geo)
    out = out_sizes(x.shape[1:-1], kernel, geo)
    slices = []
    for position in itertools.product(*map(range, kernel)):
        start = [p * d for p, d in zip(position, geo.dilations, strict=True)]
        stop = [a + (o - 1) * s + 1 for a, o, s in zip(start, out, geo.strides, strict=True)]
        slices.append(
            lax.slice(
                x_padded, (0, *start, 0), (x.shape[0], *stop, x.shape[-1]), (1, *geo.strides, 1)
            )
        )
    return slices


def by_taps(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """Sum over the filter positions of (window @ filter slice)."""
    taps = w.reshape(-1, *w.shape[-2:])
    met = windows(x, w.shape[: geo.rank], geo)
    products = [one.reshape(-1, one.shape[-1]) @ tap for one, tap in zip(met, taps, strict=True)]
    y: jax.Array = sum(products[1:], products[0])
    return y.reshape(*met[0].shape[:-1], w.shape[-1])


def whole(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """A filter as large as the input, without padding: a dense layer."""
    outputs = w.shape[-1]
    y = x.reshape(x.shape[0], -1) @ w.reshape(-1, outputs)
    return y.reshape(x.shape[0], *[1] * geo.rank, outputs)


def by_patches(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """Strides as long as the filter: each element is met once, and a patch is a row."""
    kernel, outputs = w.shape[: geo.rank], w.shape[-1]
    out = out_sizes(x.shape[1:-1], kernel, geo)
    met = [o * k for o, k in zip(out, kernel, strict=True)]
    x = lax.slice(x, [0] * x.ndim, (x.shape[0], *met, x.shape[-1]))
    pairs = itertools.chain(*zip(out, kernel, strict=True))
    apart = x.reshape(x.shape[0], *pairs, x.shape[-1])
    places = range(1, 2 * geo.rank + 1)
    rows = apart.transpose(0, *places[::2], *places[1::2], 2 * geo.rank + 1)
    y = rows.reshape(-1, math.prod(w.shape[:-1])) @ w.reshape(-1, outputs)
    return y.reshape(x.shape[0], *out, outputs)


def joined(x: jax.Array, w: jax.Array, geo: Geometry) -> jax.Array:
    """One product of the whole filter with what all its positions meet, side by side."""
    met = windows(x, w.shape[: geo.rank], geo)
    rows = jnp.concatenate([one.reshape(-1, one.shape[-1]) for one in met], -1)
    y = rows @ w.reshape(-1, w.shape[-1])
    return y.reshape(*met[0].shape[:-1], w.shape[-1])
