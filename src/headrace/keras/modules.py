"""The namespaces below `tf.keras`: modules of Keras, with what 1.x had besides.

They are in `sys.modules` from the start, so that ``from headrace.keras.layers import Dense`` finds
them; each asks Keras for a name when the program does.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from headrace.keras.calls import on_either
from headrace.keras.hooks import install
from headrace.keras.loading import keras_part
from headrace.keras.local_data import from_local_file
from headrace.keras.names import MOVED, OLD_NAMES
from headrace.namespaces.missing import attribute_error

#: What there is below `tf.keras`. Keras has all but `backend`, `estimator` and `experimental`.
_NAMES = """
activations applications applications.densenet applications.imagenet_utils
applications.inception_resnet_v2 applications.inception_v3 applications.mobilenet
applications.mobilenet_v2 applications.nasnet applications.resnet applications.resnet50
applications.resnet_v2 applications.vgg16 applications.vgg19 applications.xception backend callbacks
config constraints datasets datasets.boston_housing datasets.cifar10 datasets.cifar100
datasets.fashion_mnist datasets.imdb datasets.mnist datasets.reuters estimator experimental
initializers layers losses metrics mixed_precision models ops optimizers optimizers.schedules
preprocessing preprocessing.image preprocessing.sequence preprocessing.text random regularizers
saving utils wrappers wrappers.scikit_learn
"""
NAMES = tuple(_NAMES.split())

#: Modules of which every function is taken on tensors, too.
_ON_TENSORS = ("activations", "losses", "metrics", "ops")
#: Modules of ours.
_OURS = {"backend": "headrace.keras.backend"}


#: What stands above this package, by its place in headrace: asked through the door.
_ABOVE = {
    "estimator.model_to_estimator": ".estimator.keras_model:model_to_estimator",
    "experimental.SequenceFeatures": ".feature_column:SequenceFeatures",
    "layers.DenseFeatures": ".feature_column:DenseFeatures",
}


class KerasModule(ModuleType):
    """A namespace of `tf.keras`."""

    def __getattr__(self, name: str) -> Any:
        return member(self.__name__.partition(".keras.")[2], name)

    def __dir__(self) -> list[str]:
        return names_of(self.__name__.partition(".keras.")[2])


def make_modules() -> None:
    """Put the namespaces where `import` finds them."""
    for path in NAMES:
        if path in _OURS:
            continue
        name = f"headrace.keras.{path}"
        module = KerasModule(name, f"`tf.keras.{path}`: what Keras has under this name.")
        module.__path__ = []
        sys.modules[name] = module


def member(path: str, name: str) -> Any:
    """``tf.keras.<path>.<name>``.

    Raises:
        AttributeError: if there is none; with the nearest name.
        ImportError: if Keras is not there.
    """
    full = f"{path}.{name}" if path else name
    if name.startswith("__"):
        raise AttributeError(f"tf.keras.{full}")
    if full in _OURS:
        return import_module(_OURS[full])
    if full in NAMES:
        return sys.modules[f"headrace.keras.{full}"]
    if full in _ABOVE:
        module, _, attribute = _ABOVE[full].partition(":")
        door = import_module("headrace")
        return getattr(import_module(module, door.__name__), attribute)
    home = MOVED.get(full)
    if home is not None:
        module, _, attribute = home.partition(":")
        return getattr(import_module(module), attribute)
    source = _source(path)
    value = getattr(source, OLD_NAMES.get(path, {}).get(name, name), None)
    if value is None or name.startswith("_"):
        raise attribute_error(f"headrace.keras.{path}".rstrip("."), name, names_of(path))
    if inspect.isfunction(value) and path in _ON_TENSORS:
        return on_either(value)
    if path.startswith("datasets.") and name == "load_data":
        return from_local_file(path.partition(".")[2], value)
    return value


def _source(path: str) -> Any:
    """The module of Keras behind a namespace; an empty one where Keras has none."""
    install()
    try:
        return keras_part(path)
    except ModuleNotFoundError:
        return ModuleType(path)


def names_of(path: str) -> list[str]:
    """The names of a namespace."""
    below = [n[len(path) + 1 :] if path else n for n in NAMES if n.startswith(path and f"{path}.")]
    elsewhere = (*MOVED, *_ABOVE)
    moved = [n.rpartition(".")[2] for n in elsewhere if n.rpartition(".")[0] == path]
    found = {n for n in dir(_source(path)) if not n.startswith("_")}
    return sorted({*found, *moved, *OLD_NAMES.get(path, ()), *(n for n in below if "." not in n)})
