"""Public functions on padding, blocks of space, diagonals, one-hot encodings and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import as_tensor, int_const, static_ints
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value


@public("pad")
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """``tensor`` with ``paddings[d] = (before, after)`` added around each dimension d.

    Args:
        tensor: of any type and rank.
        paddings: ``[rank, 2]`` of int32 or int64, none negative.
        mode: "CONSTANT" (with ``constant_values``), "REFLECT" (without the edge) or "SYMMETRIC".

    Raises:
        TypeError: if ``paddings`` are no integers, or ``constant_values`` of another type.
        ValueError: for another mode, or paddings that do not fit the static shape.
        InvalidArgumentError: when run, if there is not so much to reflect, or paddings do not fit a
            shape known only then.

    >>> with tf.Session() as session:
    ...     session.run(pad([[1, 2]], [[1, 0], [0, 1]])).tolist()
    [[0, 0, 0], [1, 2, 0]]
    """
    kind = mode.upper() if isinstance(mode, str) else mode
    pairs = convert_to_tensor(paddings, preferred_dtype=dtypes.int32)
    if kind == "CONSTANT":
        if not isinstance(constant_values, Tensor) and not np.any(constant_values):
            return raw.Pad(tensor, pairs, name=name)
        return raw.PadV2(tensor, pairs, constant_values, name=name)
    if kind in ("REFLECT", "SYMMETRIC"):
        return raw.MirrorPad(tensor, pairs, mode=kind, name=name)
    raise ValueError(f"Unknown padding mode: {mode}; use CONSTANT, REFLECT or SYMMETRIC.")


@public("required_space_to_batch_paddings")
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Paddings that make ``block_shape`` divide ``input_shape``, and crops that undo the extra.

    Args:
        input_shape, block_shape: 1-D integers of one length n.
        base_paddings: ``[n, 2]``: the least padding.

    Returns:
        (paddings, crops), both ``[n, 2]`` int32.

    Raises:
        TypeError: if the sizes are no integers.
        ValueError: if the lengths differ.
        InvalidArgumentError: when run, if a block is 0.
    """
    with get_default_graph().name_scope(name or "required_space_to_batch_paddings"):
        shape = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
        block = convert_to_tensor(block_shape, dtypes.int32, "block_shape")
        if base_paddings is None:
            base = raw.ZerosLike(raw.Pack([shape, shape], axis=1))
        else:
            base = convert_to_tensor(base_paddings, dtypes.int32, "base_paddings")
        first, last = raw.Unpack(base, num=2, axis=1)
        full = raw.AddV2(raw.AddV2(shape, first), last)
        extra = raw.FloorMod(raw.Sub(block, raw.FloorMod(full, block)), block)
        pads = raw.Pack([first, raw.AddV2(last, extra)], axis=1, name="paddings")
        crops = raw.Pack([raw.ZerosLike(extra), extra], axis=1, name="crops")
        known = [static_value(t) for t in (pads, crops)]
        return tuple(  # type: ignore[return-value]
            t if v is None else int_const(v) for t, v in zip((pads, crops), known, strict=True)
        )


@public("space_to_batch")
def space_to_batch(
    input: Any,
    paddings: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Blocks of space moved into the batch: ``[b, h, w, c]`` -> ``[b s s, h / s, w / s, c]``.

    Args:
        paddings: ``[2, 2]`` integers: zeros before and after, in height and width.
        block_size: s, 2 or more. ``block_shape`` is its newer name: ``[n]`` for n dimensions.

    Raises:
        TypeError: if no block is given.
        ValueError: if the block does not divide the padded height and width.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    if block_shape is not None or block_size == 1:  # the old op has no blocks of one
        block = _block(block_size, block_shape)
        return space_to_batch_nd(input, block, paddings, name)
    return raw.SpaceToBatch(input, paddings, block_size=block_size, name=name)


@public("batch_to_space")
def batch_to_space(
    input: Any, crops: Any, block_size: Any = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """The inverse of ``space_to_batch``, cropped by ``crops``.

    Args:
        input: ``[b * s * s, h, w, c]`` for a block size s.
        crops: ``[2, 2]`` integers: what to cut before and after, in height and width.
        block_size: s, 2 or more. ``block_shape`` is its newer name: ``[n]`` for n dimensions.

    Returns:
        ``[b, h * s - crops, w * s - crops, c]``.

    Raises:
        TypeError: if no block is given.
        ValueError: if the block does not divide the batch, or the crops leave nothing.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    if block_shape is not None or block_size == 1:
        return batch_to_space_nd(input, _block(block_size, block_shape), crops, name)
    return raw.BatchToSpace(input, crops, block_size=block_size, name=name)


def _block(block_size: Any, block_shape: Any) -> Any:
    if block_size is not None and block_shape is not None:
        raise ValueError("Cannot specify both 'block_shape' and 'block_size'")
    if block_shape is None:
        block_shape = block_size
    if isinstance(block_shape, int):
        return [block_shape, block_shape]
    return block_shape


@public("space_to_batch_nd", "manip.space_to_batch_nd")
def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Blocks of the dimensions after the first moved into the batch, after zero padding.

    Args:
        input: ``[b, d1, ..., dn, ...]``.
        block_shape: ``[n]`` integers of 1 or more.
        paddings: ``[n, 2]`` integers: zeros before and after in each dimension.

    Returns:
        ``[b * prod(block_shape), padded d1 / block_shape[0], ..., ...]``.

    Raises:
        ValueError: if a block does not divide its padded dimension, a padding is negative, or the
            lengths differ.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    return raw.SpaceToBatchND(input, block_shape, paddings, name=name)


@public("batch_to_space_nd", "manip.batch_to_space_nd")
def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of ``space_to_batch_nd``, cropped by ``crops``.

    Args:
        input: ``[b * prod(block_shape), d1, ..., dn, ...]``.
        block_shape: ``[n]`` integers.
        crops: ``[n, 2]`` integers: what to cut before and after in each dimension.

    Raises:
        ValueError: if the block does not divide the batch, the crops leave nothing, or the
            lengths differ.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    return raw.BatchToSpaceND(input, block_shape, crops, name=name)


@public("space_to_depth")
def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Blocks of space moved into channels: ``[b, h, w, c]`` -> ``[b, h / s, w / s, c * s * s]``.

    Args:
        block_size: s, 2 or more.
        data_format: "NHWC", "NCHW" or "NCHW_VECT_C".

    Raises:
        ValueError: if the rank is not 4, the block does not divide height and width, or the
            format is unknown.
        InvalidArgumentError: when run, for sizes known only then.

    >>> space_to_depth(tf.zeros([1, 4, 6, 3]), 2).shape.as_list()
    [1, 2, 3, 12]
    """
    return raw.SpaceToDepth(input, block_size=block_size, data_format=data_format, name=name)


@public("depth_to_space")
def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """The inverse of ``space_to_depth``: ``[b, h, w, c]`` -> ``[b, h * s, w * s, c / (s * s)]``.

    Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network" (2016), section 2.2.

    Args:
        block_size: s, 2 or more.
        data_format: "NHWC", "NCHW" or "NCHW_VECT_C".

    Raises:
        ValueError: if the rank is not 4, ``s * s`` does not divide the channels, or the format is
            unknown.
        InvalidArgumentError: when run, for sizes known only then.
    """
    return raw.DepthToSpace(input, block_size=block_size, data_format=data_format, name=name)


# -- diagonals ----------------------------------------------------------------------------------


def _is_default(value: Any, default: int) -> bool:
    return not isinstance(value, Tensor) and bool(np.all(np.equal(value, default)))


@public("matrix_diag", "linalg.diag")
def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
) -> Tensor:
    """Matrices with given diagonals, and ``padding_value`` around them.

    Args:
        diagonal: ``[..., n]``, or ``[..., diagonals, n]`` of several diagonals, the uppermost
            first.
        k: which diagonal (0: the main one, above 0: above it), or the lowest and the highest.
        num_rows, num_cols: of the matrices; -1: as few as will do, of square ones if both are.
        align: at which end shorter diagonals have their elements: of those above, and below.

    Raises:
        InvalidArgumentError: when run, if there are no such matrices.
    """
    plain = zip((k, num_rows, num_cols, padding_value), (0, -1, -1, 0), strict=True)
    if all(_is_default(value, default) for value, default in plain):
        return raw.MatrixDiag(diagonal, name=name)
    diagonal = convert_to_tensor(diagonal, name="diagonal")
    padding = convert_to_tensor(padding_value, diagonal.dtype, name="padding_value")
    return _aligned("MatrixDiag", align, (diagonal, k, num_rows, num_cols, padding), name)


@public("matrix_diag_part", "linalg.diag_part")
def matrix_diag_part(
    input: Any,
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
) -> Tensor:
    """Diagonals of matrices ``[..., m, n]``: ``[..., length]``, or ``[..., diagonals, length]``.

    Arguments: see ``matrix_diag``; shorter diagonals are padded with ``padding_value``.

    Raises:
        ValueError: if the rank is less than 2.
        InvalidArgumentError: when run, if there is no such diagonal.

    >>> with tf.Session() as session:
    ...     session.run(matrix_diag_part([[1, 2, 3], [4, 5, 6]])).tolist()
    [1, 5]
    """
    if _is_default(k, 0):
        return raw.MatrixDiagPart(input, name=name)
    input = convert_to_tensor(input, name="input")
    padding = convert_to_tensor(padding_value, input.dtype, name="padding_value")
    return _aligned("MatrixDiagPart", align, (input, k, padding), name)


@public("matrix_set_diag", "linalg.set_diag")
def matrix_set_diag(
    input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "LEFT_LEFT"
) -> Tensor:
    """Matrices ``[..., m, n]`` with diagonals replaced. Arguments: see ``matrix_diag``.

    Raises:
        ValueError: if the rank is less than 2, or the main diagonal is known to have another shape.
        InvalidArgumentError: when run, if ``diagonal`` does not have their shape.

    >>> with tf.Session() as session:
    ...     session.run(matrix_set_diag([[1, 2], [3, 4]], [7, 8])).tolist()
    [[7, 2], [3, 8]]
    """
    if _is_default(k, 0):
        return raw.MatrixSetDiag(input, diagonal, name=name)
    return _aligned("MatrixSetDiag", align, (input, diagonal, k), name)


def _aligned(kind: str, align: str, inputs: tuple[Any, ...], name: str) -> Tensor:
    if align == "LEFT_LEFT":  # all that releases 1.x have
        result: Tensor = getattr(raw, f"{kind}V2")(*inputs, name=name)
        return result
    result = getattr(raw, f"{kind}V3")(*inputs, align=align, name=name)
    return result


@public("matrix_band_part", "linalg.band_part")
def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices ``[..., m, n]`` with zeros outside a band around the diagonal.

    Args:
        num_lower, num_upper: integer scalars: how many diagonals to keep below and above the main
            one; a negative number keeps all.

    Raises:
        ValueError: if the rank is less than 2.
        TypeError: if the numbers are no integers.
        InvalidArgumentError: when run, if a number exceeds the rows or columns.

    >>> with tf.Session() as session:
    ...     session.run(matrix_band_part(tf.ones([2, 3]), -1, 0)).tolist()  # lower triangle
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    lower, upper = (
        convert_to_tensor(n, preferred_dtype=dtypes.int64) for n in (num_lower, num_upper)
    )
    return raw.MatrixBandPart(input, lower, upper, name=name)


@public("diag", "linalg.tensor_diag")
def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """``diagonal``, of shape ``s``, on the diagonal of zeros of shape ``s + s``.

    Raises:
        TypeError: if ``diagonal`` is not numeric.

    >>> with tf.Session() as session:
    ...     session.run(diag([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    return raw.Diag(diagonal, name=name)


@public("diag_part", "linalg.tensor_diag_part")
def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal, of shape ``s``, of a tensor of shape ``s + s``.

    Raises:
        ValueError: if the halves of the static shape differ.
        InvalidArgumentError: when run, if those of a shape known only then do.
    """
    return raw.DiagPart(input, name=name)


# -- one-hot and masks --------------------------------------------------------------------------


@public("one_hot")
@composite_function
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """``on_value`` at each index and ``off_value`` elsewhere along a new dimension of ``depth``.

    Indices outside ``[0, depth)`` give ``off_value`` everywhere. The type is ``dtype``, or that
    of the values, or float32.

    Args:
        indices: integers of any shape.
        depth: a scalar, the size of the new dimension.
        axis: where that stands; -1: last.

    Raises:
        TypeError: if ``dtype`` contradicts the types of the values, or indices are no integers.
        ValueError: if ``depth`` is negative, or ``axis`` out of range.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     session.run(one_hot([0, 2], depth=3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    with get_default_graph().name_scope(name or "one_hot") as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        kinds = {
            what: convert_to_tensor(v, preferred_dtype=wanted).dtype
            for what, v in (("on_value", on_value), ("off_value", off_value))
            if v is not None
        }
        for what, kind in kinds.items():
            if wanted is not None and kind is not wanted:
                raise TypeError(
                    f"dtype {kind.name} of {what} does not match dtype parameter {wanted.name}"
                )
        if len(set(kinds.values())) > 1:
            raise TypeError(
                f"dtype {kinds['on_value'].name} of on_value does not match dtype "
                f"{kinds['off_value'].name} of off_value"
            )
        wanted = wanted or next(iter(kinds.values()), dtypes.float32)
        on = convert_to_tensor(1 if on_value is None else on_value, wanted, "on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, wanted, "off_value")
        count = convert_to_tensor(depth, dtypes.int32, "depth")
        return raw.OneHot(
            convert_to_tensor(indices),
            count,
            on,
            off,
            axis=-1 if axis is None else axis,
            name=scope,
        )


@public("sequence_mask")
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None
) -> Tensor:
    """True in the first ``lengths[...]`` places of a new last dimension of ``maxlen``.

    Args:
        lengths: numbers of any shape.
        maxlen: scalar; by default the greatest length.
        dtype: of the result, whose shape is ``lengths.shape + [maxlen]``.

    Raises:
        ValueError: if ``maxlen`` is no scalar.
        TypeError: if the lengths are no numbers.

    >>> with tf.Session() as session:
    ...     session.run(sequence_mask([1, 3], dtype=tf.int32)).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    with get_default_graph().name_scope(name or "SequenceMask"):
        rows = convert_to_tensor(lengths)
        if maxlen is None:
            known = static_ints(rows)
            if known is not None:
                longest: Tensor = int_const(max(0, *known, 0), rows.dtype)
            else:
                flat = raw.Reshape(rows, int_const([-1]))
                longest = raw.Maximum(0, raw.Max(flat, int_const([0])))
        else:
            longest = (
                as_tensor(maxlen)
                if isinstance(maxlen, Tensor)
                else convert_to_tensor(maxlen, rows.dtype)
            )
            if longest.dtype is not rows.dtype:
                longest = raw.Cast(longest, DstT=rows.dtype)
        if longest.dims not in (None, ()):
            raise ValueError(f"maxlen must be scalar for sequence_mask, got shape {longest.shape}.")
        one = int_const(1, rows.dtype)
        places = raw.Range(int_const(0, rows.dtype), longest, one)
        mask: Tensor = raw.Less(places, raw.ExpandDims(rows, -1))
        wanted = dtypes.as_dtype(dtype)
        return mask if wanted is dtypes.bool else raw.Cast(mask, DstT=wanted)
