"""Ops that find the best splits of leaves. All of them run on the host.

How is in ``headrace.ops.forest.boosted_splits_kernels``; the public functions are in
``headrace.contrib.boosted_trees.split_handler_ops``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import BOOSTED
from headrace.ops.forest import boosted_splits_kernels as kernels
from headrace.ops.forest.boosted_splits_kernels import Buckets, Found, Settings, Sums
from headrace.ops.forest.boosted_trees import NO_GRADIENT, scalar_int

_boosted_op = partial(define_op, traits=BOOSTED)

_OBLIVIOUS = 1
_SUMS = "gradients: float32, hessians: float32"
_SETTINGS = (
    "class_id: int32, feature_column_group_id: int32, {bias}l1_regularization: float32, "
    "l2_regularization: float32, tree_complexity_regularization: float32, "
    "min_node_weight: float32, multiclass_strategy: int32"
)
_BIAS = "bias_feature_id: int64, "
_KIND = ", weak_learner_type: int32"
_FOUND = "(output_partition_ids: int32, gains: float32, split_infos: string)"


def _scalar_float(value: Any, name: str) -> np.float32:
    array = np.asarray(value)
    if array.size != 1:
        raise invalid(f"{name} must be a scalar, not of shape {list(array.shape)}.")
    return np.float32(array.reshape(())[()])


def _settings(
    class_id: Any,
    column: Any,
    l1: Any,
    l2: Any,
    complexity: Any,
    least: Any,
    strategy: Any,
    *kind: Any,
) -> Settings:
    return Settings(
        scalar_int(column, "feature_column_group_id"),
        _scalar_float(l1, "l1_regularization"),
        _scalar_float(l2, "l2_regularization"),
        _scalar_float(complexity, "tree_complexity_regularization"),
        _scalar_float(least, "min_node_weight"),
        scalar_int(strategy, "multiclass_strategy"),
        scalar_int(class_id, "class_id"),
    )


def _buckets(leaves: Any, ids: Any, gradients: Any, hessians: Any) -> Buckets:
    sums = Sums(np.asarray(gradients), np.asarray(hessians))
    buckets = Buckets(np.asarray(leaves), np.asarray(ids), sums)
    buckets.check()
    return buckets


def _ratio(num_minibatches: Any) -> np.float32:
    count = scalar_int(num_minibatches, "num_minibatches")
    # Nothing was added yet: there are no sums either.
    return np.float32(1) / np.float32(count) if count else np.float32(0)


def _is_oblivious(kind: Any) -> bool:
    number = scalar_int(kind, "weak_learner_type")
    if number not in (0, _OBLIVIOUS):
        raise invalid(f"weak_learner_type must be 0 (normal) or 1 (oblivious), not {number}.")
    return number == _OBLIVIOUS


def _result(found: Found) -> Any:
    infos = np.empty(len(found.infos), object)
    infos[:] = found.infos
    return np.array(found.leaves, np.int32), np.array(found.gains, np.float32), infos


def _dense(context: Any, count: Any, *given: Any) -> Any:
    boundaries, rest = np.asarray(given[4]).reshape(-1), given[5:]
    buckets = _buckets(*given[:4])
    oblivious = _is_oblivious(rest[7])
    # A feature that is not active has no boundaries.
    if not boundaries.size:
        return _result(kernels.NOTHING)
    best = kernels.oblivious_dense_splits if oblivious else kernels.dense_splits
    return _result(best(_settings(*rest), buckets, _ratio(count), boundaries))


def _sparse(context: Any, count: Any, *given: Any) -> Any:
    boundaries, rest = np.asarray(given[4]).reshape(-1), given[5:]
    bias = scalar_int(rest[2], "bias_feature_id")
    settings = _settings(*rest[:2], *rest[3:])
    buckets = _buckets(*given[:4])
    return _result(kernels.sparse_splits(settings, buckets, _ratio(count), boundaries, bias))


def _categorical(context: Any, count: Any, *given: Any) -> Any:
    rest = given[4:]
    bias = scalar_int(rest[2], "bias_feature_id")
    oblivious = _is_oblivious(rest[8])
    best = kernels.oblivious_categorical_splits if oblivious else kernels.categorical_splits
    settings = _settings(*rest[:2], *rest[3:])
    return _result(best(settings, _buckets(*given[:4]), _ratio(count), bias))


def _unknown_lengths(op: Operation) -> list[Dims]:
    return [(None,)] * 3


for _name, _ids, _edges, _rest, _host in (
    ("BuildDenseInequalitySplits", "bucket_ids", True, _SETTINGS.format(bias="") + _KIND, _dense),
    ("BuildSparseInequalitySplits", "bucket_ids", True, _SETTINGS.format(bias=_BIAS), _sparse),
    (
        "BuildCategoricalEqualitySplits",
        "feature_ids",
        False,
        _SETTINGS.format(bias=_BIAS) + _KIND,
        _categorical,
    ),
):
    _boosted_op(
        f"{_name}(num_minibatches: int64, partition_ids: int32, {_ids}: int64, {_SUMS}, "
        f"{'bucket_boundaries: float32, ' if _edges else ''}{_rest}) -> {_FOUND}",
        shape=_unknown_lengths,
        host=_host,
        gradient=NO_GRADIENT,
    )
