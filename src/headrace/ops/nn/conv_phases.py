"""Input gradients of strided convolutions as dense convolutions, phase by phase.

The gradient for input element i sums `w[k] * dy[o]` over all taps k and outputs o with
`i + pad = k * dilation + o * stride`. Elements whose indices leave the same remainder when divided
by the stride, a *phase*, meet the same taps, and among these alone the sum is a convolution without
stride. So a two-dimensional gradient is stride x stride dense convolutions with parts of the
filter, whose results are interleaved; nothing is multiplied with the zeros that the textbook form
puts between the elements of `dy` (Shi et al., "Is the deconvolution layer the same as a
convolutional layer?", 2016).

Phases of one dimension can also share one convolution, as further output channels. Parts of the
filter that are shorter than the longest are then filled up with zeros; in return there is one large
product in place of several small ones. `_split_or_merge` weighs the two for each dimension.

A convolution to few channels is slow, in phases or without strides, since a product with few
columns is. `by_products` makes one product of `dy` with all taps, whose columns are taps times
channels, and adds up what belongs to each element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from headrace.ops.nn import conv_products

#: More convolutions than this in one gradient cost more to compile than they win.
_MAX_CONVOLUTIONS = 16
#: By rank: a product with n columns takes as long as one of n + this many at full speed.
_COLUMN_OVERHEAD = {2: 24, 3: 64}
#: To make an element of a product, write it and add it up takes as long as so many multiplications,
_SUM_OVERHEAD = 137
#: and this times as long where strides part what is added up. Shorter sums count as of this length.
_STRIDED_OVERHEAD, _SHORTEST = 1.75, 16
#: Bytes of such products that are made at a time, and that one image may need.
_PRODUCT_BYTES, _MOST_PRODUCT_BYTES = 32 << 20, 256 << 20

#: A dense convolution: (dy, filter [..., dy's channels, outputs], pads, dilations) to its result,
#: channels last.
Dense = Callable[
    [jax.Array, jax.Array, tuple[tuple[int, int], ...], tuple[int, ...]],
    jax.Array,
]


@dataclass(frozen=True)
class _Phase:
    """Which taps one phase of one dimension meets, and where.

    Element m of the phase is the sum over j < count of
    `w[first + j * step] * dy[m + offset - j * dilation]`.
    """

    first: int
    step: int
    count: int
    offset: int
    dilation: int

    @property
    def lead(self) -> int:
        """How far the last tap looks back."""
        return (self.count - 1) * self.dilation - self.offset


@dataclass(frozen=True)
class _Group:
    """Neighbouring phases, `start` and those after it, of one convolution."""

    start: int
    phases: tuple[_Phase, ...]

    @property
    def lead(self) -> int:
        return max(phase.lead for phase in self.phases if phase.count)

    @property
    def extent(self) -> int:
        """Taps of the common filter."""
        if len(self.phases) == 1:
            return self.phases[0].count
        return self.lead + max(phase.offset for phase in self.phases if phase.count) + 1


@dataclass(frozen=True)
class _Dimension:
    """All phases of one dimension: element i is number (i + crop) // stride of its phase."""

    size: int
    crop: int
    length: int
    phases: tuple[_Phase, ...]

    def groups(self, merged: bool) -> tuple[_Group, ...]:
        live = [i for i, phase in enumerate(self.phases) if phase.count]
        if merged:
            return (_Group(live[0], self.phases[live[0] : live[-1] + 1]),)
        return tuple(_Group(i, (self.phases[i],)) for i in live)


def _dimension(size: int, taps: int, stride: int, dilation: int, pad: int) -> _Dimension:
    # With fewer taps than phases those that meet one become neighbours.
    crop = pad % stride if taps < stride else 0
    shared = math.gcd(stride, dilation)
    step = stride // shared
    phases = []
    for phase in range(stride):
        at = phase - crop + pad
        first = next((k for k in range(min(step, taps)) if (at - k * dilation) % stride == 0), None)
        if first is None:
            phases.append(_Phase(0, step, 0, 0, 1))
            continue
        count = -(-(taps - first) // step)
        offset = (at - first * dilation) // stride
        phases.append(_Phase(first, step, count, offset, dilation // shared))
    return _Dimension(size, crop, -(-(size + crop) // stride), tuple(phases))


def _dimensions(
    sizes: Sequence[int],
    w: jax.Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> list[_Dimension]:
    return [
        _dimension(n, taps, stride, dilation, lo)
        for n, taps, stride, dilation, (lo, _) in zip(
            sizes, w.shape[: len(sizes)], strides, dilations, pads, strict=True
        )
    ]


def input_gradient(
    sizes: Sequence[int],
    w: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dense: Dense,
    merges: bool = True,
) -> jax.Array | None:
    """The gradient of a convolution for its input, channels last and without groups.

    Args:
        sizes: the spatial sizes of the input.
        w: the filter, spatial dimensions first, then input and output channels.
        dy: [batch, ...output sizes..., output channels].
        pads: what the convolution put before and after each dimension.
        dense: computes a convolution without strides.
        merges: whether `dense` takes several phases as further outputs.

    Returns:
        [batch, ...sizes..., input channels]; None if it takes too many convolutions.
    """
    rank = len(sizes)
    dims = _dimensions(sizes, w, strides, dilations, pads)
    groups, _ = _split_or_merge(dims, w.shape[rank], merges)
    if groups is None:
        return None
    whole = _interleaved(dims, groups, (), w, dy, dense)
    start = [dim.crop for dim in dims]
    stop = [dim.crop + dim.size for dim in dims]
    return lax.slice(whole, (0, *start, 0), (whole.shape[0], *stop, whole.shape[-1]))


def by_products(
    sizes: Sequence[int],
    w: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> jax.Array | None:
    """`input_gradient`, with or without strides; None unless this is estimated to be faster."""
    rank = len(sizes)
    dims = _dimensions(sizes, w, strides, dilations, pads)
    few = _is_small(w.shape, dy.shape)
    if (
        not few
        and _cost_of_products(w.shape, strides) > _split_or_merge(dims, w.shape[rank], True)[1]
    ):
        return None
    # Zeros around dy, so that all elements meet all taps of their phase; around few products
    # afterwards, as most of what is multiplied would be zeros.
    margins = [_margins(dim, outputs) for dim, outputs in zip(dims, dy.shape[1:-1], strict=True)]
    around = [(0, 0, 0), *((lo, hi, 0) for lo, hi in margins), (0, 0, 0)]
    if not few:
        dy = lax.pad(dy, jnp.zeros((), dy.dtype), around)
    image = math.prod(dy.shape[1:-1]) * math.prod(w.shape[:-1]) * dy.dtype.itemsize
    if image > _MOST_PRODUCT_BYTES:
        return None

    def of(images: jax.Array) -> jax.Array:
        # The filter as it lies in memory: laying it out anew may take longer than the product.
        rows, columns = images.reshape(-1, w.shape[-1]), w.reshape(-1, w.shape[-1])
        products = lax.dot_general(
            rows, columns, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        sums = products.reshape(*images.shape[:-1], *w.shape[:-1])
        if few:
            sums = lax.pad(
                sums, jnp.zeros((), sums.dtype), [*around[:-1], *[(0, 0, 0)] * (rank + 1)]
            )
        for d, (dim, (lo, _)) in enumerate(zip(dims, margins, strict=True)):
            sums = _summed(sums, 1 + d, 1 + rank, dim, lo)
        return sums.astype(dy.dtype)

    batch = dy.shape[0]
    most = max(_PRODUCT_BYTES // image, 1)
    together = next(n for n in range(min(most, batch), 0, -1) if batch % n == 0)
    if together == batch:
        return of(dy)
    parts = lax.map(of, dy.reshape(-1, together, *dy.shape[1:]))
    return jnp.reshape(parts, (batch, *parts.shape[2:]))


def _is_small(w_shape: Sequence[int], dy_shape: Sequence[int]) -> bool:
    """Whether a dense convolution takes longer to lay out its filter, last tap first, than adding
    up few products does, or has plain loops only: its filter is larger than `dy`."""
    if not all(isinstance(n, int) for n in dy_shape):
        return False  # programs that are exported
    rows = math.prod(dy_shape[:-1])
    return rows <= dy_shape[-1] or conv_products.exceeds(
        w_shape[: len(dy_shape) - 2], dy_shape[1:-1]
    )


def _cost_of_products(w_shape: Sequence[int], strides: Sequence[int]) -> float:
    """In the unit of `_split_or_merge`."""
    overhead = _SUM_OVERHEAD / max(w_shape[-1], _SHORTEST)
    cost = math.prod(w_shape[:-1]) * (1 + overhead)
    return cost * _STRIDED_OVERHEAD if max(strides) > 1 else cost


def _margins(dim: _Dimension, outputs: int) -> tuple[int, int]:
    """How many elements beside those of `dy` the phases of a dimension look at, on either side."""
    live = [phase for phase in dim.phases if phase.count]
    before = max(phase.lead for phase in live)
    after = max(phase.offset for phase in live) + dim.length - outputs
    return max(before, 0), max(after, 0)


def _summed(
    products: jax.Array, axis: int, taps_axis: int, dim: _Dimension, before: int
) -> jax.Array:
    """Adds up the products that belong to each element of one dimension.

    Args:
        axis: of the elements of `dy`, with `before` of the margin first; afterwards of the input.
        taps_axis: of the taps; afterwards there is none.
    """
    phases = []
    for phase in dim.phases:
        total = None
        for j in range(phase.count):
            tap = lax.index_in_dim(products, phase.first + j * phase.step, taps_axis, False)
            start = before + phase.offset - j * phase.dilation
            term = lax.slice_in_dim(tap, start, start + dim.length, axis=axis)
            total = term if total is None else total + term
        phases.append(total)
    like = next(total for total in phases if total is not None)
    filled = [jnp.zeros_like(like) if total is None else total for total in phases]
    whole = filled[0] if len(filled) == 1 else jnp.stack(filled, axis + 1)
    shape = (*like.shape[:axis], dim.length * len(filled), *like.shape[axis + 1 :])
    return lax.slice_in_dim(whole.reshape(shape), dim.crop, dim.crop + dim.size, axis=axis)


def _split_or_merge(
    dims: Sequence[_Dimension], channels: int, merges: bool
) -> tuple[list[tuple[_Group, ...]] | None, float]:
    """The groups of each dimension that are estimated to take the least time, and that time: 1 for
    each column of the product that one tap makes."""
    best, least = None, math.inf
    overhead = _COLUMN_OVERHEAD[len(dims)]
    choices = [
        (dim.groups(False),)
        if not merges or any(phase.dilation > 1 for phase in dim.phases)
        else (dim.groups(False), dim.groups(True))
        for dim in dims
    ]
    for groups in itertools.product(*choices):
        if math.prod(map(len, groups)) > _MAX_CONVOLUTIONS:
            continue
        cost = sum(
            math.prod(group.extent for group in part)
            * (math.prod(len(group.phases) for group in part) * channels + overhead)
            for part in itertools.product(*groups)
        )
        if cost < least:
            best, least = list(groups), cost
    return best, least


def _interleaved(
    dims: Sequence[_Dimension],
    groups: Sequence[tuple[_Group, ...]],
    chosen: tuple[_Group, ...],
    w: jax.Array,
    dy: jax.Array,
    dense: Dense,
) -> jax.Array:
    """The results for all groups of the dimensions that are not yet `chosen`.

    Dimension d of those chosen is two axes, 2 d + 1 (elements) and 2 d + 2 (phases of the group).
    """
    d = len(chosen)
    if d == len(dims):
        return _convolved(dims, chosen, w, dy, dense)
    dim, axis, parts, done = dims[d], 2 * d + 2, [], 0
    for group in groups[d]:
        part = _interleaved(dims, groups, (*chosen, group), w, dy, dense)
        parts.extend(_zeros(part, axis, group.start - done))
        parts.append(part)
        done = group.start + len(group.phases)
    parts.extend(_zeros(parts[-1], axis, len(dim.phases) - done))
    whole = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis)
    shape = (*whole.shape[: axis - 1], dim.length * len(dim.phases), *whole.shape[axis + 1 :])
    return whole.reshape(shape)


def _zeros(like: jax.Array, axis: int, count: int) -> list[jax.Array]:
    """What `count` phases without taps contribute."""
    if count == 0:
        return []
    return [jnp.zeros((*like.shape[:axis], count, *like.shape[axis + 1 :]), like.dtype)]


def _convolved(
    dims: Sequence[_Dimension],
    chosen: Sequence[_Group],
    w: jax.Array,
    dy: jax.Array,
    dense: Dense,
) -> jax.Array:
    """One dense convolution: [batch, elements, phases, elements, phases, ..., input channels]."""
    rank = len(dims)
    pads, starts, stops = [], [], []
    for dim, group, outputs in zip(dims, chosen, dy.shape[1:-1], strict=True):
        # The elements of dy that are looked at, and how many of them are not there.
        begin = -group.lead
        end = begin + dim.length + (group.extent - 1) * group.phases[0].dilation
        starts.append(min(max(begin, 0), outputs))
        stops.append(max(min(end, outputs), starts[-1]))
        pads.append((starts[-1] - begin, end - stops[-1]))
    seen = lax.slice(dy, (0, *starts, 0), (dy.shape[0], *stops, dy.shape[-1]))
    part = _filter_part(w, chosen)
    y = dense(seen, part, tuple(pads), tuple(group.phases[0].dilation for group in chosen))
    counts = [len(group.phases) for group in chosen]
    y = y.reshape(*y.shape[:-1], *counts, w.shape[rank])
    order = [0, *itertools.chain(*((1 + d, 1 + rank + d) for d in range(rank))), 1 + 2 * rank]
    return y.transpose(order)


def _filter_part(w: jax.Array, chosen: Sequence[_Group]) -> jax.Array:
    """The common filter of some groups: [..., dy's channels, phases * inputs], last tap first."""
    rank = len(chosen)
    part = jnp.moveaxis(w, -1, 0)  # [outputs, taps..., inputs]
    for d, group in enumerate(chosen):
        axis = 1 + d
        filled = []
        for phase in group.phases:
            taps = lax.rev(_every(part, axis, phase), (axis,))
            before = group.lead - phase.lead if phase.count else 0
            missing = group.extent - phase.count
            widths = [(0, 0, 0)] * part.ndim
            widths[axis] = (before, missing - before, 0)
            filled.append(lax.pad(taps, jnp.zeros((), w.dtype), widths))
        # The phases gather, in order, before the inputs.
        part = jnp.stack(filled, part.ndim - 1)
    part = jnp.moveaxis(part, 0, rank)
    return part.reshape(*part.shape[: rank + 1], -1)


def _every(x: jax.Array, axis: int, phase: _Phase) -> jax.Array:
    stop = phase.first + (phase.count - 1) * phase.step + 1 if phase.count else phase.first
    return lax.slice_in_dim(x, phase.first, stop, phase.step, axis)
