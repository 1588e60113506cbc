"""Counting values: histograms and confusion matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, requirements
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast
from headrace.ops.math.elementwise_util import INTEGER
from headrace.ops.math.reduction_api import reduce_max


def _histogram_shape(op: Operation) -> list[Dims]:
    value = static_value(op.inputs[2])
    return [(None if value is None else int(value),)]


def _bins(xp: Any, values: Any, value_range: Any, count: int) -> Any:
    """The bin of each value; what is outside the range goes to the ends."""
    checks.require(
        value_range[0] < value_range[1],
        "value_range should satisfy value_range[0] < value_range[1]",
    )
    wide = values.astype(np.float64)
    low, high = value_range.astype(np.float64)[0], value_range.astype(np.float64)[1]
    scaled = xp.floor((wide - low) / ((high - low) / count))
    return xp.where(scaled > 0, xp.minimum(scaled, count - 1), 0).astype(np.int32)  # NaN: the first


def _histogram(values: Any, value_range: Any, nbins: Any, *, dtype: Any) -> Any:
    count = _check_bins(nbins)
    bins = _bins(jnp, values.reshape(-1), value_range, count)
    ones = lax.full_like(bins, 1, dtype.np_dtype)
    return jnp.zeros(count, dtype.np_dtype).at[bins].add(ones)


def _histogram_np(values: Any, value_range: Any, nbins: Any, *, dtype: Any) -> Any:
    count = _check_bins(nbins)
    bins = _bins(np, np.ravel(values), value_range, count)
    return np.bincount(bins, minlength=count).astype(dtype.np_dtype)


def _check_bins(nbins: Any) -> int:
    if nbins <= 0:
        raise ValueError(f"nbins should be a positive number, but got '{int(nbins)}'")
    return int(nbins)


define_op(
    "HistogramFixedWidth(values: T, value_range: T, nbins: int32) -> out: dtype",
    attrs="T: {int32, int64, float32, float64}, dtype: index = int32",
    shape=_histogram_shape,
    requires=[requirements.shape((2,), 1), requirements.scalar(2)],
    kernel=_histogram,
    interpret=_histogram_np,
    static=(2,),
    effects=CHECKS,
    gradient=INTEGER,
)


def _counts_shape(op: Operation) -> list[Dims]:
    dims, size = op.inputs[0].dims, static_value(op.inputs[1])
    if dims is None:
        return [None]
    if len(dims) not in (1, 2):
        raise ValueError(f"Shape must be at most rank 2 but is rank {len(dims)}")
    return [(*dims[:-1], None if size is None else int(size))]


def _dense_counts(
    xp: Any, values: Any, size: Any, weights: Any, *, binary_output: bool, T: Any
) -> Any:
    count = int(size)
    if count < 0:
        raise ValueError(f"size ({count}) must be non-negative")
    checks.require(xp.all(values >= 0), "Input arr must be non-negative!")
    table = values if values.ndim == 2 else values[None]
    rows = np.broadcast_to(np.arange(table.shape[0])[:, None], table.shape)
    inside = table < count
    if binary_output or weights.size == 0:
        added = inside.astype(T.np_dtype)
    else:
        added = xp.where(inside, xp.reshape(weights, table.shape), T.np_dtype.type(0))
    places = xp.where(inside & (table >= 0), table, 0) if count else table * 0
    if not count:
        result = xp.zeros((table.shape[0], 0), T.np_dtype)
    elif xp is np:
        result = np.zeros((table.shape[0], count), T.np_dtype)
        np.add.at(result, (rows, places), added)
    else:
        result = jnp.zeros((table.shape[0], count), T.np_dtype).at[rows, places].add(added)
    if binary_output:
        result = (result > 0).astype(T.np_dtype)
    return result if values.ndim == 2 else result[0]


def _weights_of_values(op: Operation) -> None:
    """There is a weight for each value, or none at all."""
    weights = op.inputs[2].dims
    if weights is not None and None not in weights and 0 not in weights:
        requirements.same_shape(0, 2)(op)


# Ragged tensors of TensorFlow 2 count the values of their rows with it.
define_op(
    "DenseBincount(input: Tidx, size: Tidx, weights: T) -> output: T",
    attrs="Tidx: index, T: {int32, int64, float32, float64}, binary_output: bool = False",
    shape=_counts_shape,
    kernel=partial(_dense_counts, jnp),
    requires=[_weights_of_values],
    interpret=partial(_dense_counts, np),
    static=(1,),
    effects=CHECKS,
    gradient=INTEGER,
)


@public("histogram_fixed_width")
def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How many values fall into each of ``nbins`` bins of equal width over ``value_range``.

    Values outside the range count in the first and last bin.

    Args:
        values: float32, float64, int32 or int64 of any shape.
        value_range: ``[least, greatest]`` of the type of ``values``.
        nbins: a positive scalar.

    Returns:
        ``[nbins]`` of ``dtype``, tf.int32 or tf.int64.

    Raises:
        TypeError: for other types.
        ValueError: if ``value_range`` has another shape, or ``nbins`` is no scalar.
        InvalidArgumentError: when run, if the range is empty or ``nbins`` not positive.

    >>> with tf.Session() as session:
    ...     session.run(histogram_fixed_width([-1.0, 0.5, 1.5, 9.0], [0.0, 4.0], nbins=4)).tolist()
    [2, 1, 0, 1]
    """
    with default_graph_stack.current().name_scope(name or "histogram_fixed_width") as scope:
        values = convert_to_tensor(values, name="values")
        limits = convert_to_tensor(value_range, values.dtype, "value_range")
        return raw.HistogramFixedWidth(values, limits, nbins, dtype=dtype, name=scope)


@public("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The bin of each value (see histogram_fixed_width), in the shape of ``values``.

    Args:
        values: floats of any shape.
        value_range: ``[least, greatest]`` of the type of ``values``.
        nbins: a positive integer scalar.

    Returns:
        Numbers from 0 to ``nbins - 1`` of ``dtype``, in the shape of ``values``.

    Raises:
        TypeError: if ``values`` are no floats.
        ValueError: if ``value_range`` is not ``[2]`` or known to be empty, or ``nbins`` is known
            not to be positive.
        InvalidArgumentError: when run, if either turns out so.
    """
    with default_graph_stack.current().name_scope(name or "histogram_bins"):
        values = convert_to_tensor(values, name="values")
        limits = convert_to_tensor(value_range, values.dtype, "value_range")
        bins = convert_to_tensor(nbins, dtypes.int32)
        bins, limits = _checked_bins(bins, limits)
        low, high = raw.Unpack(limits, num=2)
        nbins = cast(bins, values.dtype)
        scaled = raw.RealDiv(raw.Sub(values, low), raw.Sub(high, low))
        indices = raw.Floor(raw.Mul(nbins, scaled))
        clipped = raw.Minimum(raw.Maximum(indices, 0), raw.Sub(nbins, 1))
        result: Tensor = cast(clipped, dtype)
        return result


def _checked_bins(nbins: Tensor, limits: Tensor) -> tuple[Tensor, Tensor]:
    """Both, provided that there are bins and that the range is not empty."""
    wrong_bins = "nbins must be a positive scalar"
    wrong_range = "value_range must be [least, greatest] with least < greatest"
    count, ends = static_value(nbins), static_value(limits)
    if count is not None and not (count.ndim == 0 and count > 0):
        raise ValueError(f"{wrong_bins}, got {count.tolist()}")
    if ends is not None and not (ends.shape == (2,) and ends[0] < ends[1]):
        raise ValueError(f"{wrong_range}, got {ends.tolist()}")
    conditions = []
    if count is None:
        conditions.append(raw.Assert(raw.Greater(nbins, 0), [wrong_bins, nbins]))
    if ends is None:
        low, high = raw.Unpack(limits, num=2)
        conditions.append(raw.Assert(raw.Less(low, high), [wrong_range, limits]))
    if not conditions:
        return nbins, limits
    with default_graph_stack.current().control_dependencies(conditions):
        return raw.Identity(nbins), raw.Identity(limits)


@public("confusion_matrix", "math.confusion_matrix")
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """Counts (or sums of ``weights``) of each pair: rows are labels, columns predictions.

    Args:
        labels, predictions: ``[n]`` integers; a last dimension of size 1 too much in one of them is
            removed.
        num_classes: rows and columns; by default the greatest class + 1.
        weights: ``[n]`` numbers.

    Returns:
        ``[num_classes, num_classes]`` of ``dtype``.

    Raises:
        ValueError: if the lengths differ, or labels are no numbers.
        InvalidArgumentError: when run, if a class is negative or not below ``num_classes``.

    >>> with tf.Session() as session:
    ...     session.run(confusion_matrix([0, 1, 1], [0, 1, 0])).tolist()
    [[1, 0], [1, 1]]
    """
    with default_graph_stack.current().name_scope(name or "confusion_matrix"):
        labels, predictions = _squeezed(convert_to_tensor(labels), convert_to_tensor(predictions))
        labels, predictions = cast(labels, dtypes.int64), cast(predictions, dtypes.int64)
        if num_classes is None:
            greatest = raw.Maximum(reduce_max(predictions), reduce_max(labels))
            num_classes = raw.AddV2(greatest, 1)
        count = cast(convert_to_tensor(num_classes), dtypes.int64)
        pairs = raw.Pack([labels, predictions], axis=1)
        if weights is None:
            values = raw.OnesLike(cast(predictions, dtype))
        else:
            values = cast(convert_to_tensor(weights), dtype)
        return raw.ScatterNd(pairs, values, raw.Pack([count, count]))


def _squeezed(labels: Tensor, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Both of one rank where one has a last dimension of size 1 too much."""
    if labels.dims is not None and predictions.dims is not None:
        difference = len(predictions.dims) - len(labels.dims)
        if difference == 1:
            predictions = raw.Squeeze(predictions, squeeze_dims=[-1])
        elif difference == -1:
            labels = raw.Squeeze(labels, squeeze_dims=[-1])
    return labels, predictions
