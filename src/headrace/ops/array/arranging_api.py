"""Public functions that repeat, reverse and broadcast: tile, roll, broadcast_to, meshgrid ..."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape, broadcast_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import (
    as_tensor,
    int_const,
    shape_argument,
    shape_value,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.old_arguments import renamed, reverse_axes


@composite_function
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """``input`` repeated ``multiples[i]`` times along each dimension i."""
    return raw.Tile(input, shape_value(multiples), name=name)


@composite_function
def reverse(tensor: Any, axis: Any = None, name: str | None = None, dims: Any = None) -> Tensor:
    """``tensor`` with the order along the dimensions in ``axis`` reversed."""
    axes = convert_to_tensor(
        reverse_axes(axis if dims is None else dims), preferred_dtype=dtypes.int32
    )
    if axes.dims == ():
        axes = raw.Reshape(axes, int_const([1]))
    return raw.ReverseV2(tensor, axes, name=name or "ReverseV2")


reverse_v2 = reverse


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverse the first ``seq_lengths[i]`` steps of each batch entry i; later ones stay."""
    seq = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    if seq is None:
        raise ValueError("tf.reverse_sequence needs seq_axis.")
    return raw.ReverseSequence(
        input, seq_lengths, seq_dim=seq, batch_dim=0 if batch is None else batch, name=name
    )


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """``input`` with elements moved by ``shift`` along ``axis``; what falls off comes back."""
    return raw.Roll(input, shift, axis, name=name)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """``input`` broadcast to ``shape`` by NumPy's rules."""
    return raw.BroadcastTo(input, shape_value(shape), name=name)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The static shape of an elementwise op on tensors of these shapes.

    Raises:
        ValueError: if they cannot be broadcast.
    """
    return TensorShape.of(
        broadcast_static(TensorShape(shape_x).as_tuple, TensorShape(shape_y).as_tuple)
    )


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The broadcast shape of two shapes given as 1-D tensors."""
    return raw.BroadcastArgs(shape_argument(shape_x), shape_argument(shape_y))


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse ``y`` of a permutation: ``y[x[i]] = i``."""
    return raw.InvertPermutation(x, name=name)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bytes of ``input`` read as another type; sizes that differ change the last dimension."""
    return raw.Bitcast(input, type=type, name=name)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate grids of 1-D tensors; ``indexing`` is "xy" (as in NumPy) or "ij".

    Raises:
        ValueError: for another ``indexing``; TypeError: for unknown keywords.
    """
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with get_default_graph().name_scope(name):
        count = len(args)
        order = list(range(count))
        if indexing == "xy" and count > 1:
            order[:2] = [1, 0]
        flat = [raw.Reshape(as_tensor(a), int_const([-1])) for a in args]
        sizes = [raw.Size(flat[i]) for i in order]
        if not sizes:
            return []
        full = raw.Pack(sizes)
        grids = []
        for i, tensor in enumerate(flat):
            ones_around = [1] * count
            ones_around[order.index(i)] = -1
            grids.append(raw.BroadcastTo(raw.Reshape(tensor, int_const(ones_around)), full))
        return grids


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Flat ``indices`` as coordinates in an array of shape ``dims``, one row per dimension."""
    return raw.UnravelIndex(indices, dims, name=name)


__all__ = [
    "bitcast",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "invert_permutation",
    "meshgrid",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "roll",
    "tile",
    "unravel_index",
]
