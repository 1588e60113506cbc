"""``tf.contrib.slim``: models in few lines: argument scopes, layers, losses, training."""

from importlib import import_module as _import_module
from typing import Any as _Any

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
from headrace.namespaces.missing import attribute_error as _attribute_error

#: Modules that are loaded when first asked for.
_MODULES = {
    "evaluation": "headrace.contrib.slim.evaluation",
    "learning": "headrace.contrib.slim.learning",
    "losses": "headrace.contrib.losses",
    "metrics": "headrace.contrib.metrics",
    "model_analyzer": "headrace.contrib.slim.model_analyzer",
    "nets": "headrace.contrib.slim.nets",
    "prefetch_queue": "headrace.contrib.slim.prefetch_queue",
    "queues": "headrace.contrib.slim.queues",
    "summaries": "headrace.contrib.layers.summaries",
}


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(_MODULES[name])
    if not name.startswith("_") and name in dir(_layers):
        return getattr(_layers, name)
    if name in ("get_or_create_global_step", "create_global_step", "get_global_step"):
        return getattr(_import_module("headrace.train.global_step"), name)
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
