"""``tf.contrib.layers``: layers as functions, with collections, scopes and default arguments."""

from typing import Any as _Any

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import utils as utils
from headrace.contrib.layers.convolution import *  # noqa: F403
from headrace.contrib.layers.core import *  # noqa: F403
from headrace.contrib.layers.embedding import *  # noqa: F403
from headrace.contrib.layers.initializers import *  # noqa: F403
from headrace.contrib.layers.normalization import *  # noqa: F403
from headrace.contrib.layers.regularizers import *  # noqa: F403
from headrace.namespaces.missing import attribute_error as _attribute_error

#: Names that bring `tf.summary` with them.
_LATE = {
    "OPTIMIZER_CLS_NAMES": "optimizers",
    "OPTIMIZER_SUMMARIES": "optimizers",
    "adaptive_clipping_fn": "optimizers",
    "optimize_loss": "optimizers",
    "summarize_activation": "summaries",
    "summarize_activations": "summaries",
    "summarize_biases": "summaries",
    "summarize_collection": "summaries",
    "summarize_tensor": "summaries",
    "summarize_tensors": "summaries",
    "summarize_variables": "summaries",
    "summarize_weights": "summaries",
}


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    if name in ("optimizers", "summaries"):
        return import_module(f"{__name__}.{name}")
    if name == "safe_embedding_lookup_sparse":
        from headrace import nn

        return nn.safe_embedding_lookup_sparse
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATE])
