"""Sums of gradients by node and bucket, and the splits that they tell. All ops run on the host.

Gains and leaves: Chen and Guestrin, "XGBoost" (2016), section 2.2, with an L1 term besides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.forest.boosted_trees import NO_GRADIENT
from headrace.ops.forest.layered_ensemble import TOLERANCE

Array = NDArray[Any]
#: Below this a Hessian is nothing to divide by.
_LEAST_HESSIAN = np.float32(1e-15)


def weights_and_gains(gradients: Any, hessians: Any, l1: np.float32, l2: np.float32) -> Any:
    """The best logits of leaves, and how much less the loss is with them: ``(weights, gains)``.

    They minimise ``(h + l2) w^2 / 2 + g w + l1 |w|``; float32 of the shape of the sums.
    """
    shrunk = np.sign(gradients) * np.maximum(np.abs(gradients) - l1, np.float32(0))
    if not l1 > 0:
        shrunk = gradients
    curvature = hessians + l2
    useful = curvature > _LEAST_HESSIAN
    weights = np.where(useful, -shrunk / np.where(useful, curvature, np.float32(1)), np.float32(0))
    return weights, -shrunk * weights


def _indices(name: str, given: Any, count: int, batch: int) -> Array:
    """Raises InvalidArgumentError unless there are ``batch`` of them, all in [0, count)."""
    found = np.asarray(given).reshape(-1)
    if len(found) != batch:
        raise invalid(f"{name} has {len(found)} elements, but there are {batch} examples.")
    outside = (found < 0) | (found >= count)
    if np.any(outside):
        raise invalid(f"{name} has {found[np.argmax(outside)]}, which is not in [0, {count}).")
    return found.astype(np.int64)


def _sums(
    context: Any,
    nodes: Any,
    gradients: Any,
    hessians: Any,
    features: Any,
    *,
    max_splits: int,
    num_buckets: int,
) -> Any:
    batch = int(np.size(nodes))
    flat = [np.asarray(part, np.float32).reshape(-1) for part in (gradients, hessians)]
    for name, part in zip(("gradients", "hessians"), flat, strict=True):
        if len(part) != batch:
            raise invalid(f"{name} has {len(part)} elements, but there are {batch} node_ids.")
    starts = _indices("node_ids", nodes, max_splits, batch) * num_buckets
    result = np.zeros([len(features), 2, max_splits * num_buckets], np.float32)
    for position, feature in enumerate(features):
        name = f"bucketized_features_list[{position}]"
        places = starts + _indices(name, feature, num_buckets, batch)
        for sums, part in zip(result[position], flat, strict=True):
            np.add.at(sums, places, part)  # one after another, in float32: as TensorFlow adds
    return np.moveaxis(result, 1, 2).reshape(len(features), max_splits, num_buckets, 2)


def _stacked(summaries: Any, max_splits: int) -> Array:
    arrays = [np.asarray(summary) for summary in summaries]
    for position, array in enumerate(arrays):
        good = array.ndim == 3 and array.shape[0] == max_splits and array.shape[2] == 2
        if not good or array.shape != arrays[0].shape:
            raise invalid(
                f"stats_summary_list[{position}] must be of shape [{max_splits}, buckets, 2], and "
                f"all alike; it is of shape {list(array.shape)}."
            )
    if not arrays[0].shape[1]:
        raise invalid("The features have no buckets.")
    return np.stack(arrays)


def best_of_buckets(left: Array, sums: Array, l1: np.float32, l2: np.float32) -> Any:
    """The best split of each node among the buckets of a feature.

    Args:
        left: float32 ``[..., buckets, 2]``, sums of gradients and Hessians up to each bucket.
        sums: the same of all, ``[..., 2]``.

    Returns:
        ``(gain, bucket, left_weight, right_weight)``, each of shape ``[...]``; the gain is that of
        both children.
    """
    weights, gains = weights_and_gains(left[..., 0], left[..., 1], l1, l2)
    right = sums[..., None, :] - left
    other_weights, other_gains = weights_and_gains(right[..., 0], right[..., 1], l1, l2)
    gains = gains + other_gains
    best = np.full(gains.shape[:-1], np.finfo(np.float32).min, np.float32)
    places = np.zeros(gains.shape[:-1], np.int32)
    # Of gains that are equal, as TOLERANCE has it, the first counts: no argmax says that.
    for bucket in range(gains.shape[-1]):
        larger = gains[..., bucket] - best >= TOLERANCE
        best = np.where(larger, gains[..., bucket], best)
        places[larger] = bucket
    chosen = [
        np.take_along_axis(part, places[..., None], -1)[..., 0] for part in (weights, other_weights)
    ]
    unset = best == np.finfo(np.float32).min  # NaNs
    return best, places, *[np.where(unset, np.float32(0), part) for part in chosen]


def _best_gains(
    context: Any,
    node_range: Any,
    summaries: Any,
    l1: Any,
    l2: Any,
    tree_complexity: Any,
    min_node_weight: Any,
    *,
    max_splits: int,
) -> Any:
    given = (l1, l2, tree_complexity, min_node_weight)
    numbers = [np.float32(np.asarray(value).reshape(-1)[0]) for value in given]
    first, last = np.asarray(node_range).reshape(-1).tolist()
    if not 0 <= first <= last <= max_splits:
        raise invalid(f"node_id_range [{first}, {last}) is not within [0, {max_splits}).")
    left = np.cumsum(_stacked(summaries, max_splits)[:, first:last], axis=2, dtype=np.float32)
    sums = left[:, :, -1]
    _, before = weights_and_gains(sums[..., 0], sums[..., 1], *numbers[:2])
    gains, buckets, *weights = best_of_buckets(left, sums, *numbers[:2])
    gains = gains - before - numbers[2]
    enough = ~(sums[..., 1] < numbers[3])
    nodes = np.arange(first, last, dtype=np.int32)
    columns = [np.broadcast_to(nodes, enough.shape), gains, buckets, *weights]
    found: list[list[Array]] = []
    for position, column in enumerate(columns):
        rows = [values[mask] for values, mask in zip(column, enough, strict=True)]
        found.append([row[:, None] for row in rows] if position > 2 else rows)
    return tuple(found)


def _best_gains_shape(op: Operation) -> list[Dims]:
    count = op.attrs["num_features"]
    vectors: list[Dims] = [(None,)] * (3 * count)
    columns: list[Dims] = [(None, 1)] * (2 * count)
    return vectors + columns


define_op(
    "BoostedTreesMakeStatsSummary(node_ids: int32, gradients: float32, hessians: float32, "
    "bucketized_features_list: num_features * int32) -> stats_summary: float32",
    attrs="max_splits: int >= 1, num_buckets: int >= 1, num_features: int >= 1",
    shape=lambda op: [
        (op.attrs["num_features"], op.attrs["max_splits"], op.attrs["num_buckets"], 2)
    ],
    host=_sums,
    gradient=NO_GRADIENT,
)
define_op(
    "BoostedTreesCalculateBestGainsPerFeature(node_id_range: int32, "
    "stats_summary_list: num_features * float32, l1: float32, l2: float32, "
    "tree_complexity: float32, min_node_weight: float32) -> (node_ids_list: num_features * int32, "
    "gains_list: num_features * float32, thresholds_list: num_features * int32, "
    "left_node_contribs_list: num_features * float32, "
    "right_node_contribs_list: num_features * float32)",
    attrs="max_splits: int >= 1, num_features: int >= 1",
    shape=_best_gains_shape,
    host=_best_gains,
    gradient=NO_GRADIENT,
)
