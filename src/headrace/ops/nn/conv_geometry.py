"""What a convolution needs beside its operands: strides, dilations, padding and groups.

`strides`, `dilations` and `explicit_paddings` follow the dimension order of `data_format`, as in
the graph attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

#: How many spatial dimensions there are, and whether channels are last.
FORMATS = {
    "NHWC": (2, True),
    "NCHW": (2, False),
    "NDHWC": (3, True),
    "NCDHW": (3, False),
}
SPATIAL_LETTERS = {2: "HW", 3: "DHW"}


@dataclass(frozen=True)
class Geometry:
    """What a convolution needs beside its operands.

    Attributes:
        channels_last: whether they are, of its input and output.
        strides, dilations: by spatial dimension.
        pads: elements of padding before and after each spatial dimension.
        groups: so many parts of the channels do not meet each other.
        cpu: whether it is for XLA on CPUs.
    """

    channels_last: bool
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int
    cpu: bool

    @property
    def rank(self) -> int:
        return len(self.strides)

    def spatial(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of the spatial dimensions of an input or output."""
        return tuple(shape[1:-1] if self.channels_last else shape[2:])

    @property
    def data_format(self) -> str:
        letters = SPATIAL_LETTERS[self.rank]
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
    rank, channels_last = FORMATS[data_format]
    first = 1 if channels_last else 2
    return tuple(int(v) for v in values[first : first + rank])


def geometry_of(
    x_shape: Sequence[int],
    filter_shape: Sequence[int],
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    dilations: Sequence[int],
    data_format: str,
    platform: str,
) -> Geometry:
    """The geometry of a convolution of such operands; attributes are those of the graph.

    Raises:
        ValueError: if they do not fit together, or a format or a padding is not known.
    """
    if data_format not in FORMATS:
        raise ValueError(f"data_format must be one of {sorted(FORMATS)}, got {data_format!r}")
    rank, channels_last = FORMATS[data_format]
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
    return Geometry(channels_last, stride, dilation, pads, channels // depth, platform == "cpu")


def counts_of_windows(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> tuple[int, ...]:
    """How many windows there are along each dimension; 0 where none fits."""
    rows = zip(sizes, window, strides, dilations, pads, strict=True)
    return tuple(max(0, (n + lo + hi - (k - 1) * d - 1) // s + 1) for n, k, s, d, (lo, hi) in rows)


def out_sizes(sizes: Sequence[int], kernel: Sequence[int], geo: Geometry) -> tuple[int, ...]:
    """The spatial sizes of the convolution of an input of such sizes."""
    return counts_of_windows(sizes, kernel, geo.strides, geo.dilations, geo.pads)


def out_shape(x_shape: Sequence[int], w_shape: Sequence[int], geo: Geometry) -> tuple[int, ...]:
    """The shape of the convolution."""
    out = out_sizes(geo.spatial(x_shape), w_shape[: geo.rank], geo)
    return (x_shape[0], *out, w_shape[-1]) if geo.channels_last else (x_shape[0], w_shape[-1], *out)


def to_channels_last(x: jax.Array, geo: Geometry) -> jax.Array:
    """An input or output of a convolution, its channels moved behind the rest if they are first."""
    return x if geo.channels_last else jnp.moveaxis(x, 1, -1)


def from_channels_last(x: jax.Array, geo: Geometry) -> jax.Array:
    """The same array in the format of the geometry."""
    return x if geo.channels_last else jnp.moveaxis(x, -1, 1)
