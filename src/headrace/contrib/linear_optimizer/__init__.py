"""``tf.contrib.linear_optimizer``: linear models by stochastic dual coordinate ascent."""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

python = _Folder(__name__, "python")

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.linear_optimizer.sdca_optimizer": ("SDCAOptimizer",),
        "headrace.estimator.canned.sdca": ("SdcaModel", "SparseFeatureColumn"),
    },
)
