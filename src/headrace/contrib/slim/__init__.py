"""``tf.contrib.slim``: models in few lines: argument scopes, layers, losses, training."""

from headrace.contrib import layers as _layers
from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.framework import *  # noqa: F403
from headrace.contrib.framework import variables as variables
from headrace.contrib.framework.arg_scope import arg_scope_func_key as arg_scope_func_key
from headrace.contrib.framework.deprecation import *  # noqa: F403
from headrace.contrib.framework.variables import *  # noqa: F403
from headrace.contrib.layers import *  # noqa: F403
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import utils as utils
from headrace.namespaces.lazy import lazy as _lazy

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.layers": [n for n in dir(_layers) if not n.startswith("_")],
        "headrace.train.global_step": (
            "create_global_step",
            "get_global_step",
            "get_or_create_global_step",
        ),
    },
    modules={
        "evaluation": "headrace.contrib.slim.evaluation",
        "learning": "headrace.contrib.slim.learning",
        "losses": "headrace.contrib.losses",
        "metrics": "headrace.contrib.metrics",
        "model_analyzer": "headrace.contrib.slim.model_analyzer",
        "nets": "headrace.contrib.slim.nets",
        "prefetch_queue": "headrace.contrib.slim.prefetch_queue",
        "queues": "headrace.contrib.slim.queues",
        "summaries": "headrace.contrib.layers.summaries",
    },
)
