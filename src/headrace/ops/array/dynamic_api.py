"""Public functions whose results have data-dependent shapes, and ``tf.where``."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import compatible_static, num_elements_static, shape_text
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import as_tensor, checked_axis, int_const
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


class Unique(NamedTuple):
    """Distinct values in order of first appearance, and the number of each element's value."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """As Unique, with how often each value occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


class ListDiff(NamedTuple):
    """The elements of x that are not in y, and their positions."""

    out: Tensor
    idx: Tensor


@public("where")
@composite_function
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Coordinates ``[n, rank]`` (int64) of true elements, or elements of ``x`` or ``y``.

    With ``x`` and ``y`` (of one shape) the condition has that shape, or is a scalar, or a vector
    that chooses whole rows.

    Raises:
        TypeError: if the condition is not bool, or the types of ``x`` and ``y`` differ.
        ValueError: if only one of ``x`` and ``y`` is given, or shapes do not fit.
        InvalidArgumentError: when run, if shapes known only then do not fit.

    >>> with tf.Session() as session:
    ...     session.run(where([True, False], [1, 2], [3, 4])).tolist()
    ...     session.run(where([False, True, True])).tolist()
    [1, 4]
    [[1], [2]]
    """
    if x is None and y is None:
        with get_default_graph().name_scope(name or "Where") as scope:
            return raw.Where(convert_to_tensor(condition), name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return raw.Select(condition, x, y, name=name)


@public("where_v2")
@composite_function
def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Like ``where``, but the shapes of all three broadcast as in NumPy.

    Raises:
        TypeError: if ``condition`` is not bool, or the dtypes of ``x`` and ``y`` differ.
        ValueError: if only one of ``x`` and ``y`` is given, or shapes do not broadcast.
        InvalidArgumentError: when run, if shapes known only then do not.

    >>> with tf.Session() as session:
    ...     session.run(where_v2([True, False, True], [1, 2, 3], 0)).tolist()
    [1, 0, 3]
    """
    if x is None and y is None:
        coordinates: Tensor = where(condition, name=name)
        return coordinates
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return raw.SelectV2(condition, x, y, name=name)


@public("boolean_mask")
@composite_function
def boolean_mask(
    tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None
) -> Tensor:
    """The elements of ``tensor`` where ``mask`` is true, along the dimensions of the mask.

    Args:
        mask: of known rank k; fits dimensions ``axis`` ... ``axis + k`` of ``tensor``.

    Returns:
        ``tensor.shape[:axis] + [n] + tensor.shape[axis + k:]`` for n true places.

    Raises:
        ValueError: if the mask is a scalar, of unknown rank, or does not fit.

    >>> with tf.Session() as session:
    ...     session.run(boolean_mask([[1, 2], [3, 4], [5, 6]], [True, False, True])).tolist()
    [[1, 2], [5, 6]]
    """
    with get_default_graph().name_scope(name):
        source = convert_to_tensor(tensor, name="tensor")
        flags = convert_to_tensor(mask, name="mask")
        if flags.dims is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  "
                "E.g. shape=[None] is ok, but shape=None is not."
            )
        count = len(flags.dims)
        if count == 0:
            raise ValueError("mask cannot be scalar.")
        at = 0 if axis is None else axis
        dims = source.dims
        if dims is not None:
            at = checked_axis(at, len(dims))
            if not compatible_static(dims[at : at + count], flags.dims):
                raise ValueError(
                    f"Shapes {shape_text(dims[at : at + count])} and {shape_text(flags.dims)} are "
                    "incompatible"
                )
        elif at < 0:
            raise ValueError("boolean_mask with a negative axis needs a tensor of known rank.")
        if count > 1:
            source = _merged(source, at, count)
            flags = raw.Reshape(flags, int_const([-1]))
        chosen = raw.Squeeze(raw.Where(flags), squeeze_dims=[1])
        return raw.GatherV2(source, chosen, int_const(at))


def _merged(tensor: Tensor, axis: int, count: int) -> Tensor:
    """Dimensions ``axis`` ... ``axis + count`` as one."""
    dims = tensor.dims
    if dims is not None:
        middle = num_elements_static(dims[axis : axis + count])
        sizes = [*dims[:axis], -1 if middle is None else middle, *dims[axis + count :]]
        if sizes.count(None) == 0 and 0 not in sizes:
            return raw.Reshape(tensor, int_const(sizes))
    shape = raw.Shape(tensor)
    lead = raw.Slice(shape, [0], [axis])
    size = raw.Prod(raw.Slice(shape, [axis], [count]), [0], keep_dims=True)
    rest = raw.Slice(shape, [axis + count], [-1])
    return raw.Reshape(tensor, raw.ConcatV2([lead, size, rest], 0))


@public("unique")
def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct values of a 1-D tensor in order of first appearance.

    Args:
        x: ``[n]``.
        out_idx: tf.int32 or tf.int64.

    Returns:
        Unique ``(y, idx)``: ``[k]`` values, and ``[n]`` positions: ``x[i] == y[idx[i]]``.

    Raises:
        TypeError: for another ``out_idx``.
        ValueError: if ``x`` is known not to be 1-D.
        InvalidArgumentError: when run, if it is not then.

    >>> with tf.Session() as session:
    ...     [part.tolist() for part in session.run(unique([5, 7, 5]))]
    [[5, 7], [0, 1, 0]]
    """
    return Unique(*raw.Unique(x, out_idx=out_idx, name=name))


@public("unique_with_counts")
def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """Like ``unique``, with how often each value occurs.

    Returns:
        UniqueWithCounts ``(y, idx, count)``: ``[k]``, ``[n]`` and ``[k]``.

    Raises:
        TypeError: if ``out_idx`` is neither tf.int32 nor tf.int64.
        ValueError: if ``x`` is known not to be 1-D.
        InvalidArgumentError: when run, if it is not then.
    """
    return UniqueWithCounts(*raw.UniqueWithCounts(x, out_idx=out_idx, name=name))


@public("setdiff1d")
def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of ``x`` that are not in ``y``, in order, and their positions in ``x``.

    Args:
        x, y: 1-D tensors of one dtype.
        index_dtype: of the positions, tf.int32 or tf.int64.

    Returns:
        ListDiff ``(out, idx)``, both ``[n]``.

    Raises:
        TypeError: if the dtypes differ, or ``index_dtype`` is another.
        ValueError: if ``x`` or ``y`` is known not to be 1-D.
        InvalidArgumentError: when run, if one is not then.
    """
    return ListDiff(*raw.ListDiff(x, y, out_idx=index_dtype, name=name))


@public("dynamic_partition")
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Split ``data`` into lists of rows by the number that ``partitions`` gives each row.

    Args:
        data: ``partitions.shape + [...]``.
        partitions: int32 in [0, num_partitions), of any shape.

    Returns:
        ``num_partitions`` tensors ``[n, ...]`` of the dtype of ``data``; the n add up.

    Raises:
        TypeError: if ``partitions`` is not int32.
        ValueError: if ``num_partitions`` is not positive, or ``data.shape`` does not start with
            ``partitions.shape``.
        InvalidArgumentError: when run, if a number is out of range.

    >>> with tf.Session() as session:
    ...     [p.tolist() for p in session.run(dynamic_partition([1, 2, 3], [0, 1, 0], 2))]
    [[1, 3], [2]]
    """
    return raw.DynamicPartition(data, partitions, num_partitions=num_partitions, name=name)


@public("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Rows of several tensors put at ``indices`` of one; later ones win.

    Args:
        indices: int32 tensors, none negative.
        data: as many tensors of one dtype, each ``indices[i].shape + [...]``.

    Returns:
        ``[greatest index + 1, ...]``, zero where no index points.

    Raises:
        TypeError: if the dtypes differ, or the indices are not int32.
        ValueError: if there are none, not as many of both, or shapes do not fit.
        InvalidArgumentError: when run, if an index is negative.

    >>> with tf.Session() as session:
    ...     session.run(dynamic_stitch([[2, 0], [1]], [[30, 10], [20]])).tolist()
    [10, 20, 30]
    """
    return raw.DynamicStitch(list(indices), list(data), name=name)


@public("parallel_dynamic_stitch")
def parallel_dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Like ``dynamic_stitch``, with its shapes and errors.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as there.
    """
    return raw.ParallelDynamicStitch(list(indices), list(data), name=name)


@public("bincount", "math.bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
) -> Tensor:
    """How often each of 0, 1, 2 ... occurs in ``arr`` (or the sum of its weights).

    Args:
        arr: non-negative int32 of any shape.
        weights: numbers of the shape of ``arr``.
        dtype: of the result without ``weights``.

    Returns:
        ``[size]``: ``max(arr) + 1`` entries, at least ``minlength`` and at most ``maxlength``.

    Raises:
        TypeError: if ``arr`` does not hold integers.
        InvalidArgumentError: when run, if a number is negative, or ``weights`` has another shape.

    >>> with tf.Session() as session:
    ...     session.run(bincount([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    with get_default_graph().name_scope("bincount"):
        array = convert_to_tensor(arr, dtypes.int32)
        flat = raw.Reshape(array, int_const([-1]))
        size = raw.Maximum(raw.AddV2(raw.Max(flat, [0]), 1), 0)
        if minlength is not None:
            size = raw.Maximum(convert_to_tensor(minlength, dtypes.int32), size)
        if maxlength is not None:
            size = raw.Minimum(convert_to_tensor(maxlength, dtypes.int32), size)
        if weights is None:
            none = raw.Fill(int_const([0]), convert_to_tensor(0, dtypes.as_dtype(dtype)))
            return raw.Bincount(array, size, none)
        return raw.Bincount(array, size, as_tensor(weights))
