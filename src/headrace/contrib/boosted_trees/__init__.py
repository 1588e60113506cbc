"""``tf.contrib.boosted_trees``: the ops with which gradient boosted decision trees are trained.

A model is a resource (``model_ops.tree_ensemble_variable``) that holds a
DecisionTreeEnsembleConfig (``proto.tree_config_pb2``); ``prediction_ops`` use it. Resources live in
the process that runs their ops. Estimators are `tf.estimator.BoostedTreesClassifier` and its kin.
"""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

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


__getattr__, __dir__ = _lazy(__name__, modules=_MODULES)
