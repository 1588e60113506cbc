"""Embeddings, dropout, and whether targets are among the best predictions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.array_util import shape_argument, shape_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.math.clip import clip_by_norm
from headrace.ops.nn.windows import checked_rank
from headrace.ops.random.api import random_uniform
from headrace.ops.state.partitioned import PartitionedVariable

# -- the best predictions -----------------------------------------------------------------------


def _in_top_k_shape(op: Operation) -> list[Dims]:
    predictions = checked_rank(op.inputs[0].dims, 2, "predictions")
    targets = checked_rank(op.inputs[1].dims, 1, "targets")
    if len(op.inputs) == 3:
        checked_rank(op.inputs[2].dims, 0, "k")
    return [merge_static(predictions[:1], targets)]


def _in_top_k(xp: Any, predictions: Any, targets: Any, k: Any) -> Any:
    """Fewer than ``k`` predictions are greater than the target's.

    Where the target is no class, or a prediction of the row is not finite, the answer is no.
    """
    if predictions.shape[0] != targets.shape[0]:
        raise ValueError(
            f"First dimension of predictions {predictions.shape[0]} must match length of targets "
            f"{targets.shape[0]}"
        )
    hot = targets[:, None] == xp.arange(predictions.shape[1], dtype=targets.dtype)
    own = xp.sum(xp.where(hot, predictions, predictions.dtype.type(0)), axis=1, keepdims=True)
    greater = xp.sum(predictions > own, axis=1, dtype=targets.dtype)
    sayable = xp.any(hot, axis=1) & xp.all(xp.isfinite(predictions), axis=1)
    return sayable & (greater < k)


#: So many classes are looked at first. Most rows have ``k`` greater ones among them.
_FIRST_CLASSES = 64


def _in_top_k_np(predictions: Any, targets: Any, k: Any) -> Any:
    """The same class by class: no row is read further than to its ``k``-th greater prediction."""
    count, classes = predictions.shape
    if classes <= _FIRST_CLASSES or targets.shape != (count,):
        return _in_top_k(np, predictions, targets, k)
    result = np.zeros(count, np.bool_)
    rows = np.flatnonzero((targets >= 0) & (targets < classes))
    own = predictions[rows, targets[rows]][:, None]
    greater = np.zeros(len(rows), np.int64)
    begin, end = 0, _FIRST_CLASSES
    while begin < classes and rows.size:
        part = predictions[rows, begin:end] if begin or rows.size < count else predictions[:, :end]
        greater += np.count_nonzero(part > own, axis=1)
        open_ = np.flatnonzero((greater < k) & np.isfinite(part).all(axis=1))
        rows, own, greater = rows[open_], own[open_], greater[open_]
        begin, end = end, 4 * end
    result[rows] = True
    return result


def _in_top_k_numpy_wins(predictions: Any, targets: Any, *k: Any) -> bool:
    return bool(predictions.shape[1] >= _FIRST_CLASSES * 4)


def _in_top_k_attr(function: Any, predictions: Any, targets: Any, *, k: int) -> Any:
    return function(predictions, targets, k)


_NO_GRADIENT = NotDifferentiable("the result is boolean")

define_op(
    "InTopK(predictions: float32, targets: T) -> precision: bool",
    attrs="k: int, T: index = int32",
    shape=_in_top_k_shape,
    kernel=partial(_in_top_k_attr, partial(_in_top_k, jnp)),
    interpret=partial(_in_top_k_attr, _in_top_k_np),
    traits=Traits(numpy_wins=_in_top_k_numpy_wins),
    gradient=_NO_GRADIENT,
)
define_op(
    "InTopKV2(predictions: float32, targets: T, k: T) -> precision: bool",
    attrs="T: index = int32",
    shape=_in_top_k_shape,
    kernel=partial(_in_top_k, jnp),
    interpret=_in_top_k_np,
    traits=Traits(numpy_wins=_in_top_k_numpy_wins),
    gradient=_NO_GRADIENT,
)


@public("math.in_top_k", "nn.in_top_k")
def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the ``k`` best predictions of its row; ties count as among.

    Args:
        predictions: float32 ``[n, classes]``.
        targets: int32 or int64 ``[n]``, class numbers.

    Returns:
        ``[n]`` of bool; False where a prediction is not finite or the target is no class.

    Raises:
        TypeError: if ``predictions`` are not float32.
        ValueError: if the shapes do not fit.

    >>> with tf.Session() as session:
    ...     session.run(in_top_k([[0.1, 0.9], [0.8, 0.2]], [1, 1], k=1)).tolist()
    [True, False]
    """
    with get_default_graph().name_scope(name or "in_top_k"):
        return raw.InTopKV2(predictions, targets, k)


# -- embeddings ---------------------------------------------------------------------------------


@public("nn.embedding_lookup")
@composite_function
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows ``ids`` of the table ``params``.

    Args:
        params: a tensor or variable ``[rows, ...]``, or the parts of one: a list or a partitioned
            variable. The gradient of a variable then consists of the rows alone.
        ids: int32 or int64 of any shape.
        partition_strategy: which part has row ``i``: "mod" puts it into part ``i % parts``, "div"
            into consecutive runs of rows (the first parts have one more).
        max_norm: rows of a greater L2 norm are scaled down to it.

    Returns:
        A tensor of shape ``ids.shape + params.shape[1:]``.

    Raises:
        TypeError: if ``ids`` are no integers.
        ValueError: if there are no parts, or for another strategy.
        InvalidArgumentError: when the graph runs, if an id is not a row.

    >>> table = tf.constant([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> with tf.Session() as session:
    ...     session.run(embedding_lookup(table, [2, 0])).tolist()
    [[4.0, 5.0], [0.0, 1.0]]
    """
    parts = table_parts(params)
    with get_default_graph().name_scope(name or "embedding_lookup") as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            rows = _clipped(table_rows(parts[0], ids, scope), ids, max_norm)
            return raw.Identity(rows)
        return _clipped(_from_parts(parts, ids, partition_strategy), ids, max_norm)


def rows_travel(parts: list[Any]) -> bool:
    """Whether rows of a table are on other tasks, or may be: it has parts."""
    return len(parts) > 1 or "/job:" in (getattr(parts[0], "device", "") or "")


def table_parts(params: Any) -> list[Any]:
    """The parts of a table, one or more."""
    if isinstance(params, PartitionedVariable):
        return list(params)
    parts = list(params) if isinstance(params, (list, tuple)) else [params]
    if not parts or any(p is None for p in parts):
        raise ValueError("Need at least one param")
    return parts


def table_rows(part: Any, ids: Any, name: str | None = None) -> Tensor:
    """Rows of a variable, without reading the whole, or of a tensor."""
    read = getattr(part, "sparse_read", None)
    if read is not None:
        result: Tensor = read(ids, name=name)
        return result
    return raw.GatherV2(part, ids, 0, name=name)


def _clipped(rows: Tensor, ids: Tensor, max_norm: float | None) -> Tensor:
    if max_norm is None:
        return rows
    if ids.dims is None or rows.dims is None:
        raise ValueError("max_norm needs ids and params of known rank: use set_shape.")
    axes = list(range(len(ids.dims), len(rows.dims)))
    result: Tensor = clip_by_norm(rows, max_norm, axes=axes)
    return result


def _from_parts(params: list[Any], ids: Tensor, strategy: str) -> Tensor:
    parts = [p if hasattr(p, "sparse_read") else convert_to_tensor(p) for p in params]
    of_part, places = partitioned_ids(parts, raw.Reshape(ids, [-1]), strategy)
    rows = [table_rows(p, i) for p, i in zip(parts, of_part, strict=True)]
    joined = raw.DynamicStitch(places, rows)
    shapes = [p.shape.as_tuple for p in parts]
    row = _merged([s[1:] if s else None for s in shapes])
    if row is not None and None not in row:
        inner: Any = np.array(row, np.int32)
    else:
        inner = raw.StridedSlice(raw.Shape(joined), [1], [0], [1], end_mask=1)
    result = raw.Reshape(joined, raw.ConcatV2([shape_tensor(ids), inner], 0))
    if ids.dims is not None and row is not None:
        result.set_shape((*ids.dims, *row))
    return result


def partitioned_ids(
    parts: list[Any], ids: Tensor, strategy: str
) -> tuple[list[Tensor], list[Tensor]]:
    """For each part of a table the rows of it that ``ids`` ``[n]`` name, and their places there."""
    count = len(parts)
    if count == 1:
        return [ids], [raw.Range(0, raw.Size(ids), 1)]
    part, within = _address(parts, ids, strategy)
    part = part if part.dtype is dtypes.int32 else raw.Cast(part, DstT=dtypes.int32)
    positions = raw.Range(0, raw.Size(ids), 1)
    of_part = raw.DynamicPartition(within, part, num_partitions=count)
    places = raw.DynamicPartition(positions, part, num_partitions=count)
    return list(of_part), list(places)


def _merged(shapes: Sequence[Dims]) -> Dims:
    """What is known from any of the shapes.

    Raises:
        ValueError: if they do not fit together.
    """
    found: Dims = None
    for shape in shapes:
        found = merge_static(found, shape)
    return found


def _address(parts: list[Any], ids: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """The part of each id, and its row there."""
    count = len(parts)
    if strategy == "mod":
        return raw.FloorMod(ids, count), raw.FloorDiv(ids, count)
    if strategy != "div":
        raise ValueError(f"Unrecognized partition strategy: {strategy!r} is not 'mod' or 'div'")
    total = _total_rows(parts, ids.dtype)
    each, extras = raw.FloorDiv(total, count), raw.FloorMod(total, count)
    longer, after = raw.AddV2(each, 1), raw.Sub(ids, extras)
    part = raw.Maximum(raw.FloorDiv(ids, longer), raw.FloorDiv(after, each))
    within = raw.SelectV2(
        raw.Less(part, extras), raw.FloorMod(ids, longer), raw.FloorMod(after, each)
    )
    return part, within


def _total_rows(parts: list[Any], dtype: Any) -> Tensor:
    shapes = [p.shape.as_tuple for p in parts]
    sizes = [s[0] if s else None for s in shapes]
    if None not in sizes:
        return convert_to_tensor(sum(sizes), dtype)
    rows = [
        raw.StridedSlice(raw.Shape(convert_to_tensor(p)), [0], [1], [1], shrink_axis_mask=1)
        for p in parts
    ]
    return raw.Cast(raw.AddN(rows), DstT=dtype)


# -- dropout ------------------------------------------------------------------------------------


@public("nn.dropout")
@composite_function
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Elements of ``x`` set to zero at random, and the others scaled up to keep the sum.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014),
    section 4.

    Args:
        x: floating-point tensor of any shape, which the result has.
        keep_prob: the probability that an element stays, in (0, 1]: a number or scalar tensor.
        noise_shape: shape of the random choices, which broadcast to ``x``; None entries stand
            for the size of ``x``.
        rate: ``1 - keep_prob``, instead of that. From a tensor that only the step knows, a rate of
            1 or more drops every element and is not refused.

    Raises:
        ValueError: if ``x`` is not floating, the probability is given twice or not at all, is
            known not to be in its range or no scalar, or ``noise_shape`` does not broadcast.

    >>> with tf.Session() as session:
    ...     kept = session.run(dropout(tf.ones([1000]), keep_prob=0.5))
    >>> sorted(set(kept.tolist()))
    [0.0, 2.0]
    """
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Only one of rate and keep_prob may be given.")
        rate = raw.Sub(1.0, keep_prob) if isinstance(keep_prob, Tensor) else 1.0 - keep_prob
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with get_default_graph().name_scope(name or "dropout") as scope:
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                "x has to be a floating point tensor since it's going to be scaled. Got a "
                f"{x.dtype.name} tensor instead."
            )
        if isinstance(rate, (int, float, np.floating)):
            if not 0 <= rate < 1:
                raise ValueError(
                    f"keep_prob must be a number in (0, 1] (rate in [0, 1)), got rate {rate}"
                )
            if rate == 0:
                found: Tensor = x
                return found
            scaled = raw.Mul(x, 1.0 / (1.0 - float(rate)))
        else:
            rate = convert_to_tensor(rate, x.dtype, name="rate")
            checked_rank(rate.dims, 0, "rate")
            known = static_value(rate)
            if known is not None and not 0 <= known <= 1:
                raise ValueError(f"rate must lie in [0, 1], got {rate.name} = {known}")
            scaled = raw.RealDiv(x, raw.Sub(1.0, rate))
        drawn = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
        # >= so that exactly what is drawn below ``rate`` is dropped: nothing if that is 0
        kept = raw.GreaterEqual(drawn, rate)
        result: Tensor = raw.SelectV2(kept, scaled, raw.ZerosLike(x), name=scope)
        # Programs feed the probability through placeholders without a shape.
        result.set_shape(x.shape)
        return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape_tensor(x)
    sizes = getattr(noise_shape, "as_list", lambda: noise_shape)()
    if isinstance(sizes, (list, tuple)) and None in sizes and x.dims is not None:
        dims = [x.dims[i] if n is None else n for i, n in enumerate(sizes)]
        if None in dims:
            whole = raw.Shape(x)
            dims = [
                raw.StridedSlice(whole, [i], [i + 1], [1], shrink_axis_mask=1) if n is None else n
                for i, n in enumerate(dims)
            ]
        sizes = dims
    return shape_argument(sizes)
