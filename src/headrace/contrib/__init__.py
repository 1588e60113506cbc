"""``tf.contrib``: what stood beside TensorFlow's core and programs use."""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.namespaces.missing import attribute_error as _attribute_error

#: Parts that are imported when first asked for.
_MODULES = (
    "boosted_trees",
    "crf",
    "cudnn_rnn",
    "cluster_resolver",
    "compiler",
    "deprecated",
    "distributions",
    "eager",
    "factorization",
    "framework",
    "gan",
    "image",
    "layers",
    "learn",
    "legacy_seq2seq",
    "lookup",
    "losses",
    "metrics",
    "nn",
    "predictor",
    "rnn",
    "seq2seq",
    "slim",
    "staging",
    "summary",
    "tensor_forest",
    "tensorboard",
    "testing",
    "tfprof",
    "tpu",
    "training",
    "util",
)


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"headrace.contrib.{name}")
    raise _attribute_error(__name__, name, _MODULES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
