"""Ops on ensembles of trees that grow by layers (`tf.estimator.BoostedTreesClassifier`).

The ensembles are in ``headrace.ops.forest.layered_ensemble``. All ops run on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import PLAIN, Traits
from headrace.ops.forest import layered_ensemble as kernels
from headrace.ops.forest.boosted_trees import (
    CHANGES,
    NO_GRADIENT,
    READS,
    create,
    define_handle,
    define_is_initialized,
    find,
    scalar_int,
    text,
)
from headrace.ops.forest.layered_ensemble import BucketizedFeatures, LayeredEnsemble, Split
from headrace.ops.forest.layered_splits import weights_and_gains

_HANDLE = "tree_ensemble_handle: resource"


def scalar_float(value: Any, name: str) -> np.float32:
    """Raises InvalidArgumentError unless there is one value."""
    array = np.asarray(value, np.float32)
    if array.size != 1:
        raise invalid(f"{name} must be a scalar, not of shape {list(array.shape)}.")
    return np.float32(array.reshape(-1)[0])


# -- resources ----------------------------------------------------------------------------------


def _create(context: Any, handle: Any, stamp: Any, serialized: Any) -> Any:
    made = LayeredEnsemble(scalar_int(stamp, "stamp_token"), text(serialized))
    create(context, handle, made)
    return ()


def _serialize(context: Any, handle: Any) -> Any:
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        return np.int64(ensemble.stamp), np.array(ensemble.config.SerializeToString(), object)


def _deserialize(context: Any, handle: Any, stamp: Any, serialized: Any) -> Any:
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        ensemble.load(scalar_int(stamp, "stamp_token"), text(serialized))
    return ()


def _states(context: Any, handle: Any) -> Any:
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        stamp, *counts, nodes = ensemble.states()
    return np.int64(stamp), *[np.int32(count) for count in counts], np.array(nodes, np.int32)


define_handle("BoostedTreesEnsembleResourceHandleOp", "layered_ensemble", Traits(shared=True))
define_is_initialized("IsBoostedTreesEnsembleInitialized", "tree_ensemble_handle", PLAIN)
define_op(
    f"BoostedTreesCreateEnsemble({_HANDLE}, stamp_token: int64, tree_ensemble_serialized: string)",
    shape=lambda op: [],
    host=_create,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesSerializeEnsemble({_HANDLE}) -> (stamp_token: int64, "
    "tree_ensemble_serialized: string)",
    shape=lambda op: [(), ()],
    host=_serialize,
    effects=READS,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesDeserializeEnsemble({_HANDLE}, stamp_token: int64, "
    "tree_ensemble_serialized: string)",
    shape=lambda op: [],
    host=_deserialize,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesGetEnsembleStates({_HANDLE}) -> (stamp_token: int64, num_trees: int32, "
    "num_finalized_trees: int32, num_attempted_layers: int32, last_layer_nodes_range: int32)",
    shape=lambda op: [(), (), (), (), (2,)],
    host=_states,
    effects=READS,
    gradient=NO_GRADIENT,
)

# -- predictions --------------------------------------------------------------------------------

_FEATURES = "bucketized_features: num_bucketized_features * int32"
_COUNTS = "num_bucketized_features: int >= 1, logits_dimension: int"


def _one_logit(count: int) -> None:
    if count != 1:
        raise invalid(f"logits_dimension is {count}: leaves of these trees have one logit.")


def _predict(context: Any, handle: Any, features: Any, *, logits_dimension: int) -> Any:
    _one_logit(logits_dimension)
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        return kernels.predict(ensemble, BucketizedFeatures(features))


def _predict_onward(
    context: Any, handle: Any, trees: Any, nodes: Any, features: Any, *, logits_dimension: int
) -> Any:
    _one_logit(logits_dimension)
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        cached = np.asarray(trees), np.asarray(nodes)
        return kernels.predict_onward(ensemble, *cached, BucketizedFeatures(features))


def _debug(context: Any, handle: Any, features: Any, *, logits_dimension: int) -> Any:
    _one_logit(logits_dimension)
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        return np.array(kernels.ways(ensemble, BucketizedFeatures(features)), object)


def _batch(op: Operation) -> int | None:
    """The number of examples, which every feature tells."""
    for feature in op.inputs[len(op.inputs) - op.attrs["num_bucketized_features"] :]:
        if feature.dims:
            return feature.dims[0]
    return None


def _logits_shape(op: Operation) -> list[Dims]:
    return [(_batch(op), op.attrs["logits_dimension"])]


define_op(
    f"BoostedTreesPredict({_HANDLE}, {_FEATURES}) -> logits: float32",
    attrs=_COUNTS,
    shape=_logits_shape,
    host=_predict,
    effects=READS,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesTrainingPredict({_HANDLE}, cached_tree_ids: int32, cached_node_ids: int32, "
    f"{_FEATURES}) -> (partial_logits: float32, tree_ids: int32, node_ids: int32)",
    attrs=_COUNTS,
    shape=lambda op: [*_logits_shape(op), (_batch(op),), (_batch(op),)],
    host=_predict_onward,
    effects=READS,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesExampleDebugOutputs({_HANDLE}, {_FEATURES}) -> "
    "examples_debug_outputs_serialized: string",
    attrs=_COUNTS,
    shape=lambda op: [(_batch(op),)],
    host=_debug,
    effects=READS,
    gradient=NO_GRADIENT,
)

# -- growth -------------------------------------------------------------------------------------


def _center(context: Any, handle: Any, gradients: Any, hessians: Any, l1: Any, l2: Any) -> Any:
    sums = scalar_float(gradients, "mean_gradients"), scalar_float(hessians, "mean_hessians")
    regularization = scalar_float(l1, "l1"), scalar_float(l2, "l2")
    logit, _ = weights_and_gains(*sums, *regularization)
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        return np.array(ensemble.center(np.float32(logit)))


def _candidates(feature_ids: Any, lists: Any) -> Iterator[tuple[int, Split]]:
    """The splits that features propose, each with its leaf."""
    if len(feature_ids) != len(lists[0]):
        raise invalid(f"There are {len(feature_ids)} feature_ids for {len(lists[0])} features.")
    for feature, *columns in zip(feature_ids.tolist(), *lists, strict=True):
        nodes, gains, thresholds, left, right = [np.asarray(c).reshape(-1) for c in columns]
        sizes = {len(c) for c in (nodes, gains, thresholds, left, right)}
        if len(sizes) != 1:
            raise invalid(
                f"Feature {feature} has {len(nodes)} node_ids, {len(gains)} gains, "
                f"{len(thresholds)} thresholds, {len(left)} and {len(right)} contributions: one "
                "of each for each candidate."
            )
        for node, threshold, *rest in zip(nodes, thresholds, gains, left, right, strict=True):
            yield int(node), Split(feature, int(threshold), *rest)


def _update(
    context: Any,
    handle: Any,
    feature_ids: Any,
    nodes: Any,
    gains: Any,
    thresholds: Any,
    left: Any,
    right: Any,
    max_depth: Any,
    learning_rate: Any,
    *,
    pruning_mode: int,
) -> Any:
    if pruning_mode not in (kernels.NO_PRUNING, kernels.PRE_PRUNING, kernels.POST_PRUNING):
        raise invalid(f"pruning_mode must be 0, 1 or 2, not {pruning_mode}.")
    features = np.asarray(feature_ids).reshape(-1)
    best = kernels.best_splits(_candidates(features, (nodes, gains, thresholds, left, right)))
    rate, depth = scalar_float(learning_rate, "learning_rate"), scalar_int(max_depth, "max_depth")
    ensemble = find(context, handle, LayeredEnsemble)
    with ensemble.lock:
        ensemble.grow(best, rate, depth, pruning_mode)
    return ()


define_op(
    f"BoostedTreesCenterBias({_HANDLE}, mean_gradients: float32, mean_hessians: float32, "
    "l1: float32, l2: float32) -> continue_centering: bool",
    shape=lambda op: [()],
    host=_center,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
define_op(
    f"BoostedTreesUpdateEnsemble({_HANDLE}, feature_ids: int32, node_ids: num_features * int32, "
    "gains: num_features * float32, thresholds: num_features * int32, "
    "left_node_contribs: num_features * float32, right_node_contribs: num_features * float32, "
    "max_depth: int32, learning_rate: float32)",
    attrs="pruning_mode: int >= 0, num_features: int >= 0",
    shape=lambda op: [],
    host=_update,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
