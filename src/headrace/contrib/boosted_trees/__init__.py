"""``tf.contrib.boosted_trees``: the ops with which gradient boosted decision trees are trained.

A model is a resource (``model_ops.tree_ensemble_variable``) that holds a
DecisionTreeEnsembleConfig (``proto.tree_config_pb2``); ``prediction_ops`` use it. Resources live in
the process that runs their ops. The Estimators of ``estimator_batch`` are still to come.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.missing import attribute_error as _attribute_error

_MODULES = (
    "base_split_handler",
    "batch_ops_utils",
    "categorical_split_handler",
    "losses",
    "model_ops",
    "ordinal_split_handler",
    "prediction_ops",
    "proto",
    "quantile_ops",
    "split_handler_ops",
    "stats_accumulator_ops",
    "training_ops",
)

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
lib = _Folder(__name__, "lib")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
