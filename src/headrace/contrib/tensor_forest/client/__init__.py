"""``tf.contrib.tensor_forest.client``: the estimator, and metrics for it."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, modules=("eval_metrics", "random_forest"))
