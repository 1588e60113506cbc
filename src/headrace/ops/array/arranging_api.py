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
from headrace.ops.core.public import public


@public("tile", "manip.tile")
@composite_function
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """``input`` repeated ``multiples[i]`` times along each dimension i.

    Args:
        multiples: ``[rank]`` integers of int32 or int64, none negative.

    Returns:
        A tensor whose dimension i is ``input.shape[i] * multiples[i]``.

    Raises:
        ValueError: if ``multiples`` has another length, or a negative entry.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     session.run(tile([[1, 2]], [2, 2])).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return raw.Tile(input, shape_value(multiples), name=name)


@public("reverse", "manip.reverse")
@composite_function
def reverse(tensor: Any, axis: Any = None, name: str | None = None, dims: Any = None) -> Tensor:
    """``tensor``, in its shape, with the order along the dimensions in ``axis`` reversed.

    Args:
        axis: one dimension or several, int32 or int64 (negative: from the end).
        dims: the old name; a list of a truth value for each dimension, too.

    Raises:
        TypeError: if ``axis`` does not hold integers.
        ValueError: if a dimension is out of range or named twice.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     session.run(reverse([[1, 2], [3, 4]], [1])).tolist()
    [[2, 1], [4, 3]]
    """
    axes = convert_to_tensor(
        reverse_axes(axis if dims is None else dims), preferred_dtype=dtypes.int32
    )
    if axes.dims == ():
        axes = raw.Reshape(axes, int_const([1]))
    return raw.ReverseV2(tensor, axes, name=name or "ReverseV2")


reverse_v2 = public("reverse_v2")(reverse)


@public("reverse_sequence")
def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverse the first ``seq_lengths[i]`` steps of each batch entry i; later ones stay.

    Args:
        input: tensor with a dimension ``seq_axis`` of steps and ``batch_axis`` of examples.
        seq_lengths: ``[batch]`` integers from 0 to the number of steps.
        batch_axis: 0 when not given.
        seq_dim, batch_dim: old names of the axes.

    Returns:
        A tensor of the shape and dtype of ``input``.

    Raises:
        TypeError: if the lengths are not int32 or int64.
        ValueError: if the axes are equal, or there is not one length for each example.
        InvalidArgumentError: when run, if a length exceeds the steps.

    >>> with tf.Session() as session:
    ...     session.run(reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1)).tolist()
    [[2, 1, 3], [6, 5, 4]]
    """
    seq = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    if seq is None:
        raise ValueError("tf.reverse_sequence needs seq_axis.")
    return raw.ReverseSequence(
        input, seq_lengths, seq_dim=seq, batch_dim=0 if batch is None else batch, name=name
    )


@public("roll", "manip.roll")
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """``input``, in its shape, moved by ``shift`` along ``axis``; what falls off comes back.

    Args:
        input: tensor of rank 1 or more.
        shift, axis: an integer scalar each, or ``[n]`` each: a shift for each axis.

    Raises:
        InvalidArgumentError: when run, if an axis is out of range or the numbers differ.

    >>> with tf.Session() as session:
    ...     session.run(roll([1, 2, 3, 4], shift=1, axis=0)).tolist()
    [4, 1, 2, 3]
    """
    return raw.Roll(input, shift, axis, name=name)


@public("broadcast_to")
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """``input`` broadcast to ``shape`` (1-D integers) by NumPy's rules.

    Raises:
        ValueError: if the static shapes do not fit.
        InvalidArgumentError: when run, if shapes known only then do not.

    >>> with tf.Session() as session:
    ...     session.run(broadcast_to([[1], [2]], [2, 3])).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    return raw.BroadcastTo(input, shape_value(shape), name=name)


@public("broadcast_static_shape")
def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The static shape of an elementwise op on tensors of these shapes.

    Raises:
        ValueError: if they cannot be broadcast.
    """
    return TensorShape.of(
        broadcast_static(TensorShape(shape_x).as_tuple, TensorShape(shape_y).as_tuple)
    )


@public("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The broadcast shape of two shapes given as 1-D tensors.

    Raises:
        InvalidArgumentError: when run, if they cannot be broadcast.
    """
    return raw.BroadcastArgs(shape_argument(shape_x), shape_argument(shape_y))


@public("invert_permutation")
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse ``y`` of a permutation: ``y[x[i]] = i``.

    Args:
        x: ``[n]`` int32 or int64, each of 0 to n - 1 once.

    Raises:
        TypeError: if ``x`` does not hold integers.
        ValueError: if ``x`` is known not to be 1-D.
        InvalidArgumentError: when run, if it is no permutation.
    """
    return raw.InvertPermutation(x, name=name)


@public("bitcast")
def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bytes of ``input`` read as another type.

    Where the sizes differ the shape does: ``[...]`` becomes ``[..., n]`` for a type n times
    smaller, and ``[..., n]`` becomes ``[...]`` for one n times larger.

    Raises:
        TypeError: if a type is no number (a string ...).
        ValueError: if the last dimension does not fit the larger type.
        InvalidArgumentError: when run, if a dimension known only then does not.

    >>> with tf.Session() as session:
    ...     int(session.run(bitcast(tf.constant(1.0), tf.int32)))
    1065353216
    """
    return raw.Bitcast(input, type=type, name=name)


@public("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate grids of n 1-D tensors: n tensors of rank n.

    Args:
        indexing: "xy" (the first two dimensions exchanged, as in NumPy) or "ij".

    Raises:
        ValueError: for another ``indexing``.
        TypeError: for unknown keywords.

    >>> [t.shape.as_list() for t in meshgrid([1, 2], [3, 4, 5])]
    [[3, 2], [3, 2]]
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


@public("unravel_index")
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Flat ``indices`` as coordinates in an array of shape ``dims``.

    Args:
        indices: scalar or ``[n]``, int32 or int64.
        dims: ``[rank]`` sizes, of the type of the indices.

    Returns:
        ``[rank]`` for a scalar, else ``[rank, n]``: a row for each dimension.

    Raises:
        TypeError: if they are no integers.
        ValueError: if ``indices`` has rank 2 or more, or ``dims`` is not 1-D.
        InvalidArgumentError: when run, if an index lies outside.

    >>> with tf.Session() as session:
    ...     session.run(unravel_index([3, 4], [2, 3])).tolist()
    [[1, 1], [0, 1]]
    """
    return raw.UnravelIndex(indices, dims, name=name)
