"""Ops on random forests: ours alone, as TensorFlow's came in a library of their own.

The forests are in ``headrace.ops.forest.random_forest_kernels``, the public classes in
``headrace.contrib.tensor_forest``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.forest.random_forest_kernels import Forest, ForestSpec
from headrace.ops.forest.random_forest_state import load_state, state_of
from headrace.ops.io.queues import host_resource
from headrace.ops.state.variable_ops import handle_op

_OURS = Traits(only_here="its trees are ours")
_define = partial(define_op, traits=_OURS)

_READS = Effects(reads=(0,))
_CHANGES = Effects(reads=(0,), writes=(0,))
_NO_GRADIENT = NotDifferentiable("trees are no function that has a derivative")
_NUMBERS = ("num_trees", "max_nodes", "num_outputs", "num_features", "num_splits", "split_after")
_OTHERS = ("bagging", "feature_bagging", "regression", "inclusive", "seed")


def _provide(store: Any, handle: Any, node: Any) -> None:
    spec = ForestSpec(**{name: node.attrs[name] for name in (*_NUMBERS, *_OTHERS)})
    found = store.object(handle, lambda: Forest(spec))
    if not isinstance(found, Forest) or found.spec != spec:
        message = f"'{handle.name}' is shared, but is another forest than {spec}"
        raise InvalidArgumentError(None, node.op, message)


define_op(
    "HeadraceForest() -> forest: resource",
    traits=_OURS.but(shared=True),
    attrs=", ".join(f"{name}: int >= 1" for name in _NUMBERS)
    + ", bagging: float = 1.0, feature_bagging: float = 1.0, regression: bool = False,"
    " inclusive: bool = True, seed: int = 0, container: string = '', shared_name: string = ''",
    makes_handle="forest",
    provide=_provide,
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
)


def _maker_attr(op: Operation, name: str) -> Any:
    maker = handle_op(op.inputs[0])
    return None if maker is None else maker.attrs.get(name)


def _predict_shape(op: Operation) -> list[Dims]:
    data = op.inputs[1].dims
    batch = data[0] if data else None
    dims = (batch, _maker_attr(op, "num_outputs"))
    return [dims, dims]


def _train(context: Any, forest: Any, data: Any, labels: Any, weights: Any) -> Any:
    arrays = (np.asarray(given) for given in (data, labels, weights))
    host_resource(context, forest).train(*arrays)
    return ()


def _predict(context: Any, forest: Any, data: Any) -> Any:
    return host_resource(context, forest).predict(np.asarray(data))


def _state(context: Any, forest: Any, *, stats: bool) -> Any:
    return state_of(host_resource(context, forest), stats)


def _load(context: Any, forest: Any, *state: Any) -> Any:
    load_state(host_resource(context, forest), [np.asarray(each) for each in state])
    return ()


def _status(context: Any, forest: Any) -> Any:
    return host_resource(context, forest).status()


_define(
    "HeadraceForestTrain(forest: resource, data: float32, labels: float32, weights: float32)",
    shape=lambda op: [],
    host=_train,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
)
_define(
    "HeadraceForestPredict(forest: resource, data: float32) -> (mean: float32, variance: float32)",
    shape=_predict_shape,
    host=_predict,
    effects=_READS,
    gradient=_NO_GRADIENT,
)
_define(
    "HeadraceForestStatus(forest: resource) -> (sizes: int32, impurities: float32, usage: int32)",
    shape=lambda op: [
        (_maker_attr(op, "num_trees"),),
        (_maker_attr(op, "num_trees"),),
        (_maker_attr(op, "num_features"),),
    ],
    host=_status,
    effects=_READS,
    gradient=_NO_GRADIENT,
)

# What is saved of a forest (`random_forest_state`).
_STATE = (
    "sizes: int32, features: int32, nodes: int32, thresholds: float32, sums: float64,"
    " counts: int64, tests: int32, values: float32, before: float32, below: float32, random: int64"
)
_define(
    f"HeadraceForestState(forest: resource) -> ({_STATE})",
    attrs="stats: bool = False",
    host=_state,
    effects=_READS,
    gradient=_NO_GRADIENT,
)
_define(
    f"HeadraceForestLoad(forest: resource, {_STATE})",
    shape=lambda op: [],
    host=_load,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
)
