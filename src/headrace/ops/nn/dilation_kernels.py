"""Greyscale dilation with TensorFlow's semantics, on the windows of `pool`."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from headrace.ops.nn.pool_kernels import check_shape, lowest, zero
from headrace.ops.nn.pool_windows import Windows, windows_of


def dilation2d(
    x: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> jax.Array:
    """Maximum over each window of `x` [n, h, w, c] plus `filter` [kh, kw, c]; padding never wins.

    Neighbours in a window are `rates` apart. Raises ValueError when the depths differ.
    """
    windows = _filter_windows(x.shape, filter.shape, strides, rates, padding)
    total = None
    for candidate in _raised(x, filter, windows):
        total = candidate if total is None else jnp.maximum(total, candidate)
    assert total is not None
    return total


def dilation2d_backprop_input(
    x: jax.Array,
    filter: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> jax.Array:
    """Gradient of `dilation2d` for `x`: each `dy` goes to the first maximum of its window."""
    windows = _filter_windows(x.shape, filter.shape, strides, rates, padding)
    check_shape("dy", dy, windows.out)
    if 0 in dy.shape:
        return jnp.zeros(x.shape, dy.dtype)
    winner = _first_raised(x, filter, windows)
    like = jax.ShapeDtypeStruct(x.shape, dy.dtype)  # type: ignore[no-untyped-call]

    def chosen(x: jax.Array) -> list[jax.Array]:
        return windows.slices(x, zero(x))

    parts = [jnp.where(winner == i, dy, zero(dy)) for i in range(len(windows.positions))]
    return jnp.asarray(jax.linear_transpose(chosen, like)(parts)[0])


def dilation2d_backprop_filter(
    x: jax.Array,
    filter: jax.Array,
    dy: jax.Array,
    *,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> jax.Array:
    """Gradient of `dilation2d` for `filter`: the `dy` of the windows that each element won."""
    windows = _filter_windows(x.shape, filter.shape, strides, rates, padding)
    check_shape("dy", dy, windows.out)
    if 0 in dy.shape:
        return jnp.zeros(filter.shape, dy.dtype)
    winner = _first_raised(x, filter, windows)
    parts = [
        jnp.sum(jnp.where(winner == i, dy, zero(dy)), axis=(0, 1, 2))
        for i in range(len(windows.positions))
    ]
    return jnp.stack(parts).reshape(filter.shape)


def _filter_windows(
    x_shape: Sequence[int],
    filter_shape: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
) -> Windows:
    if len(x_shape) != 4 or len(filter_shape) != 3 or x_shape[3] != filter_shape[2]:
        raise ValueError(
            "dilation expects an input [n, h, w, c] and a filter [kh, kw, c], "
            f"got {tuple(x_shape)} and {tuple(filter_shape)}"
        )
    ksize = (1, filter_shape[0], filter_shape[1], 1)
    return windows_of(x_shape, ksize, strides, padding, dilations=rates)


def _raised(x: jax.Array, filter: jax.Array, windows: Windows) -> list[jax.Array]:
    taps = filter.reshape(-1, filter.shape[-1])
    least = lowest(x.dtype)
    raised = [part + taps[i] for i, part in enumerate(windows.slices(x, least))]
    if jnp.issubdtype(x.dtype, jnp.floating):
        return raised
    # Among integers nothing stays lowest when a filter element is added to it.
    masks = [windows.inside(position) for position in windows.positions]
    return [p if m is None else jnp.where(m, p, least) for p, m in zip(raised, masks, strict=True)]


def _first_raised(x: jax.Array, filter: jax.Array, windows: Windows) -> jax.Array:
    best = jnp.full(windows.out, lowest(x.dtype), x.dtype)
    winner = jnp.zeros(windows.out, jnp.int32)
    for number, candidate in enumerate(_raised(x, filter, windows)):
        better = candidate > best
        best = jnp.where(better, candidate, best)
        winner = jnp.where(better, number, winner)
    return winner
