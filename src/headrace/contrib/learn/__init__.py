"""``tf.contrib.learn``: texts as numbers, small data sets, and the names of modes.

Estimators are still to come.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.missing import attribute_error as _attribute_error

_MODULES = ("base", "datasets", "preprocessing")


class ModeKeys:
    """What a model is used for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
