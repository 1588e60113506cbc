"""``tf.contrib.tensor_forest``: random forests, as an estimator and as graphs."""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

python = _Folder(__name__, "python")

__getattr__, __dir__ = _lazy(
    __name__,
    {"headrace.contrib.tensor_forest.graphs": ("ForestHParams", "RandomForestGraphs")},
    modules={
        "client": "headrace.contrib.tensor_forest.client",
        "eval_metrics": "headrace.contrib.tensor_forest.client.eval_metrics",
        "random_forest": "headrace.contrib.tensor_forest.client.random_forest",
        "tensor_forest": "headrace.contrib.tensor_forest.graphs",
    },
)
