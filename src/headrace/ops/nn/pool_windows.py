"""Windows over arrays: how many there are, and the elements that stand in them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.core.barrier import barrier
from headrace.ops.nn.conv_geometry import counts_of_windows, spatial_pads


@dataclass(frozen=True)
class Windows:
    """Windows over every dimension of an array of shape `sizes`.

    Attributes:
        ksize: elements of a window.
        pads: elements of padding before and after.
    """

    sizes: tuple[int, ...]
    ksize: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]

    @property
    def out(self) -> tuple[int, ...]:
        """How many windows there are along each dimension: the shape of a pool."""
        return counts_of_windows(self.sizes, self.ksize, self.strides, self.dilations, self.pads)

    @property
    def padded(self) -> bool:
        """Whether anything is put around the array, or cut off."""
        return any(lo or hi for lo, hi in self.pads)

    @property
    def positions(self) -> list[tuple[int, ...]]:
        """The places in a window, in row-major order."""
        return list(itertools.product(*map(range, self.ksize)))

    def slices(self, x: jax.Array, fill: np.ndarray) -> list[jax.Array]:
        """For each window position, the element of every window that stands there."""
        if 0 in self.out:
            return [jnp.zeros(self.out, x.dtype)] * len(self.positions)
        padded = padded_once(x, fill, self.pads)
        taken = []
        for position in self.positions:
            start = [p * d for p, d in zip(position, self.dilations, strict=True)]
            rows = zip(start, self.out, self.strides, strict=True)
            taken.append(
                lax.slice(padded, start, [a + (o - 1) * s + 1 for a, o, s in rows], self.strides)
            )
        return taken

    def inside(self, position: tuple[int, ...]) -> np.ndarray | None:
        """Where the window element at `position` is no padding, broadcastable to `out`.

        None when it is never padding.
        """
        mask: np.ndarray = np.ones((1,) * len(self.sizes), bool)
        for axis, (n, o, s, (lo, _), d, p) in enumerate(
            zip(
                self.sizes, self.out, self.strides, self.pads, self.dilations, position, strict=True
            )
        ):
            index = np.arange(o) * s + p * d - lo
            valid = (index >= 0) & (index < n)
            if not valid.all():
                shape = [1] * len(self.sizes)
                shape[axis] = o
                mask = mask & valid.reshape(shape)
        return None if mask.all() else mask


def windows_of(
    sizes: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    dilations: Sequence[int] | None = None,
) -> Windows:
    """The windows of a pool over an array; attributes are those of the graph.

    Raises:
        ValueError: if they do not fit the array, or a padding is not known.
    """
    if not len(sizes) == len(ksize) == len(strides):
        raise ValueError(
            f"ksize {tuple(ksize)} and strides {tuple(strides)} must have an entry for each "
            f"dimension of the input {tuple(sizes)}"
        )
    ones = (1,) * len(sizes)
    flat = [int(p) for p in explicit_paddings]
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    pads = spatial_pads(sizes, ksize, strides, dilations or ones, padding, pairs)
    for k, pad in zip(ksize, pads, strict=True):
        if padding == "EXPLICIT" and max(pad) >= k > 0 and max(pad) > 0:
            raise ValueError(f"padding {pad} must be smaller than the window size {k}")
    return Windows(
        tuple(int(n) for n in sizes),
        tuple(int(k) for k in ksize),
        tuple(int(s) for s in strides),
        pads,
        tuple(int(d) for d in dilations or ones),
    )


def padded_once(x: jax.Array, fill: np.ndarray, pads: Sequence[tuple[int, int]]) -> jax.Array:
    """`x` with edges around (a negative one cuts off), of which many slices are to be taken.

    Behind a barrier: XLA would pad anew, element by element, for each slice.
    """
    if not any(lo or hi for lo, hi in pads):
        return x
    padded = lax.pad(x, fill, [(lo, hi, 0) for lo, hi in pads])
    return barrier(padded)
