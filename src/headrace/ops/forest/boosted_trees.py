"""Ops on ensembles of boosted trees: making, saving and using them.

The ensembles are in ``headrace.ops.forest.boosted_ensemble``, the public functions in
``headrace.contrib.boosted_trees``. All of them run on the host.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from headrace.errors import NotFoundError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import Effects, HostResource, NotDifferentiable, define_op
from headrace.ops.core.traits import BOOSTED, Traits
from headrace.ops.forest import boosted_ensemble as kernels
from headrace.ops.forest.boosted_ensemble import Features, TreeEnsemble

_boosted_op = partial(define_op, traits=BOOSTED)

READS = Effects(reads=(0,))
CHANGES = Effects(reads=(0,), writes=(0,))
NO_GRADIENT = NotDifferentiable("trees are no function that has a derivative")
SHARING = "container: string = '', shared_name: string = ''"


# -- resources ----------------------------------------------------------------------------------


def find(context: Any, handle: Any, kind: type[Any]) -> Any:
    """The resource behind a handle.

    Raises:
        NotFoundError: if nothing has made it yet.
        InvalidArgumentError: if another kind of resource has its name.
    """
    if isinstance(handle, np.ndarray):  # a handle that came through other ops
        handle = handle[()]
    found = context.store.get(handle)
    if found is None:
        where = f"{handle.container or 'localhost'}/{handle.name}"
        message = (
            f"Resource {where} does not exist: run its initializer first "
            "(resources.initialize_resources(resources.shared_resources()))."
        )
        raise NotFoundError(None, None, message)
    if not isinstance(found, kind):
        names = [k.__name__.removesuffix("Resource") for k in (type(found), kind)]
        raise invalid(f"'{handle.name}' is a {names[0]}, no {names[1]}.")
    return found


def create(context: Any, handle: Any, made: HostResource) -> None:
    """Put a resource behind a handle, unless one is there."""
    if isinstance(handle, np.ndarray):
        handle = handle[()]
    context.store.object(handle, lambda: made)


def scalar_int(value: Any, name: str) -> int:
    array = np.asarray(value)
    if array.size != 1:
        raise invalid(f"{name} must be a scalar, not of shape {list(array.shape)}.")
    return int(array.reshape(())[()])


def text(value: Any) -> bytes:
    """The bytes of a string scalar."""
    array = np.asarray(value, object)
    if array.size != 1:
        raise invalid(f"A serialized message must be a scalar, not {list(array.shape)}.")
    data = array.reshape(())[()]
    return data.encode() if isinstance(data, str) else bytes(data)


def define_handle(name: str, kind: str, traits: Traits = BOOSTED) -> None:
    define_op(
        f"{name}() -> resource: resource",
        attrs=SHARING,
        makes_handle=kind,
        shape=lambda op: [()],
        gradient=NO_GRADIENT,
        traits=traits,
    )


def define_is_initialized(name: str, argument: str, traits: Traits = BOOSTED) -> None:
    def is_initialized(context: Any, handle: Any) -> Any:
        key = handle[()] if isinstance(handle, np.ndarray) else handle
        return np.array(context.store.get(key) is not None)

    define_op(
        f"{name}({argument}: resource) -> is_initialized: bool",
        shape=lambda op: [()],
        host=is_initialized,
        effects=READS,
        gradient=NO_GRADIENT,
        traits=traits,
    )


# -- ensembles ----------------------------------------------------------------------------------


def _create(context: Any, handle: Any, stamp: Any, config: Any) -> Any:
    create(context, handle, TreeEnsemble(scalar_int(stamp, "stamp_token"), text(config)))
    return ()


def _stamp(context: Any, handle: Any) -> Any:
    return np.int64(find(context, handle, TreeEnsemble).stamp)


def _serialize(context: Any, handle: Any) -> Any:
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        return np.int64(ensemble.stamp), np.array(ensemble.config.SerializeToString(), object)


def _deserialize(context: Any, handle: Any, stamp: Any, config: Any) -> Any:
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        ensemble.load(scalar_int(stamp, "stamp_token"), text(config))
    return ()


def _used_handlers(context: Any, handle: Any, stamp: Any, *, num_all_handlers: int) -> Any:
    ensemble = find(context, handle, TreeEnsemble)
    with ensemble.lock:
        ensemble.check_stamp(scalar_int(stamp, "stamp_token"))
        used = list(ensemble.config.growing_metadata.used_handler_ids)
    mask = np.zeros(num_all_handlers, bool)
    mask[[handler for handler in used if 0 <= handler < num_all_handlers]] = True
    return np.int64(len(used)), mask


define_handle("DecisionTreeEnsembleResourceHandleOp", "tree_ensemble")
define_is_initialized("TreeEnsembleIsInitializedOp", "tree_ensemble_handle")
_boosted_op(
    "CreateTreeEnsembleVariable(tree_ensemble_handle: resource, stamp_token: int64, "
    "tree_ensemble_config: string)",
    shape=lambda op: [],
    host=_create,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "TreeEnsembleStampToken(tree_ensemble_handle: resource) -> stamp_token: int64",
    shape=lambda op: [()],
    host=_stamp,
    effects=READS,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "TreeEnsembleSerialize(tree_ensemble_handle: resource) -> (stamp_token: int64, "
    "tree_ensemble_config: string)",
    shape=lambda op: [(), ()],
    host=_serialize,
    effects=READS,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "TreeEnsembleDeserialize(tree_ensemble_handle: resource, stamp_token: int64, "
    "tree_ensemble_config: string)",
    shape=lambda op: [],
    host=_deserialize,
    effects=CHANGES,
    gradient=NO_GRADIENT,
)
_boosted_op(
    "TreeEnsembleUsedHandlers(tree_ensemble_handle: resource, stamp_token: int64) -> "
    "(num_used_handlers: int64, used_handlers_mask: bool)",
    attrs="num_all_handlers: int >= 0",
    shape=lambda op: [(), (op.attrs["num_all_handlers"],)],
    host=_used_handlers,
    effects=READS,
    gradient=NO_GRADIENT,
)

# -- predictions --------------------------------------------------------------------------------

_FEATURES = (
    "dense_float_features: num_dense_float_features * float32, "
    "sparse_float_feature_indices: num_sparse_float_features * int64, "
    "sparse_float_feature_values: num_sparse_float_features * float32, "
    "sparse_float_feature_shapes: num_sparse_float_features * int64, "
    "sparse_int_feature_indices: num_sparse_int_features * int64, "
    "sparse_int_feature_values: num_sparse_int_features * int64, "
    "sparse_int_feature_shapes: num_sparse_int_features * int64"
)
_COUNTS = (
    "num_dense_float_features: int >= 0, num_sparse_float_features: int >= 0, "
    "num_sparse_int_features: int >= 0, use_locking: bool = False"
)


def _features(columns: tuple[Any, ...]) -> Features:
    dense, *sparse = [[np.asarray(part) for part in parts] for parts in columns]
    return Features(
        dense,
        list(zip(*sparse[:3], strict=True)),
        list(zip(*sparse[3:], strict=True)),
    )


def learner_config(context: Any) -> Any:
    """The LearnerConfig that an op has as an attribute, parsed once.

    Raises:
        InvalidArgumentError: if it is none, or has less than two classes.
    """
    if "learner" not in context.memo:
        from google.protobuf.message import DecodeError

        from headrace.graph.proto.boosted_trees.learner_pb2 import LearnerConfig

        given = context.node.attrs["learner_config"]
        try:
            config = LearnerConfig.FromString(text(given))
        except DecodeError:
            raise invalid("Unable to parse learner config.") from None
        if config.num_classes < 2:
            raise invalid(f"Number of classes must be >=2, but is {config.num_classes}.")
        context.memo["learner"] = config
    return context.memo["learner"]


def _check_averaging(averaging: Any) -> None:
    kind = averaging.WhichOneof("config")
    if kind == "average_last_n_trees" and not averaging.average_last_n_trees > 0:
        raise invalid("Average last n trees must be a positive number")
    if kind == "average_last_percent_trees" and not 0 < averaging.average_last_percent_trees <= 1:
        raise invalid("Average last percent must be in (0,1] interval.")


def _dropped(context: Any, config: Any, learner: Any, seed: Any) -> list[int]:
    if not context.node.attrs["apply_dropout"]:
        return []
    if learner.learning_rate_tuner.WhichOneof("tuner") != "dropout":
        return []
    count = len(config.trees)
    kept = {0} if context.node.attrs["center_bias"] else set()
    if config.HasField("growing_metadata"):
        kept.add(count - 1)  # it is being built
    dropout = learner.learning_rate_tuner.dropout
    return kernels.dropped_trees(scalar_int(seed, "Seed"), dropout, kept, count)


def _predict(context: Any, handle: Any, seed: Any, *columns: Any) -> Any:
    attrs = context.node.attrs
    learner = learner_config(context)
    averages = attrs["apply_averaging"]
    if averages:
        _check_averaging(learner.averaging_config)
    ensemble = find(context, handle, TreeEnsemble)
    features = _features(columns)
    with ensemble.lock:
        config = ensemble.config
        dropped = _dropped(context, config, learner, seed)
        left_out = set(dropped)
        if learner.growing_mode == learner.WHOLE_TREE:
            left_out |= {t for t in range(len(config.trees)) if ensemble.is_growing(t)}
        weights = list(config.tree_weights)
        used = weights
        if averages and learner.averaging_config.WhichOneof("config"):
            used = kernels.averaged_weights(weights, learner.averaging_config)
        trees = [tree for tree in range(len(config.trees)) if tree not in left_out]
        outputs = learner.num_classes - int(attrs["reduce_dim"])
        predictions, leaves = kernels.predict(config, trees, used, features, outputs)
    info = np.array([dropped, [weights[tree] for tree in dropped]], np.float32)
    return predictions, info, leaves


def _predict_only(context: Any, handle: Any, seed: Any, *columns: Any) -> Any:
    return _predict(context, handle, seed, *columns)[:2]


def _partition(context: Any, handle: Any, *columns: Any) -> Any:
    ensemble = find(context, handle, TreeEnsemble)
    features = _features(columns)
    with ensemble.lock:
        return kernels.partition(ensemble, features)


def _batch(op: Operation, first: int) -> int | None:
    if not op.attrs["num_dense_float_features"]:
        return None
    dims = op.inputs[first].dims
    return dims[0] if dims else None


def _prediction_shape(op: Operation) -> list[Dims]:
    # The number of outputs stands in the learner's configuration, which is read at run time.
    batch = _batch(op, 2)
    shapes: list[Dims] = [(batch, None), (2, None), (batch, None)]
    return shapes[: len(op.op_def.outputs)]


for _name, _more, _host in (
    ("GradientTreesPrediction", "", _predict_only),
    ("GradientTreesPredictionVerbose", ", leaf_index: int32", _predict),
):
    _boosted_op(
        f"{_name}(tree_ensemble_handle: resource, seed: int64, {_FEATURES}) -> "
        f"(predictions: float32, drop_out_tree_indices_weights: float32{_more})",
        attrs=f"learner_config: string, {_COUNTS}, apply_dropout: bool, apply_averaging: bool, "
        "center_bias: bool, reduce_dim: bool",
        shape=_prediction_shape,
        host=_host,
        effects=READS,
        gradient=NO_GRADIENT,
    )
_boosted_op(
    f"GradientTreesPartitionExamples(tree_ensemble_handle: resource, {_FEATURES}) -> "
    "partition_ids: int32",
    attrs=_COUNTS,
    shape=lambda op: [(_batch(op, 1),)],
    host=_partition,
    effects=READS,
    gradient=NO_GRADIENT,
)
