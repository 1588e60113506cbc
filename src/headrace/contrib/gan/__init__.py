"""``tf.contrib.gan``: models in which a generator learns from a discriminator."""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.gan.models import *  # noqa: F403
from headrace.contrib.gan.namedtuples import *  # noqa: F403
from headrace.contrib.gan.objectives import *  # noqa: F403
from headrace.contrib.gan.training import *  # noqa: F403
from headrace.namespaces.missing import attribute_error as _attribute_error

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")

#: Modules that are loaded when first asked for.
_MODULES = {
    "eval": "headrace.contrib.gan.evaluation",
    "features": "headrace.contrib.gan.features",
    "losses": "headrace.contrib.gan.losses",
    "namedtuples": "headrace.contrib.gan.namedtuples",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(_MODULES[name])
    raise _attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
