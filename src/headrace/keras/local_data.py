"""`tf.keras.datasets` from files on this machine."""

from __future__ import annotations

import functools
import os
import urllib.error
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

#: The file of each data set, below the folder of data sets.
_FILES = {
    "boston_housing": "boston_housing.npz",
    "cifar10": "cifar-10-batches-py-target",
    "cifar100": "cifar-100-python-target",
    "fashion_mnist": "fashion-mnist/train-images-idx3-ubyte.gz (and the other three files)",
    "imdb": "imdb.npz",
    "mnist": "mnist.npz",
    "reuters": "reuters.npz",
}


def folder() -> Path:
    """Where Keras looks for data sets: ``$KERAS_HOME/datasets`` or ``~/.keras/datasets``."""
    home = os.environ.get("KERAS_HOME")
    return (Path(home) if home else Path.home() / ".keras") / "datasets"


def from_local_file(name: str, load: FunctionType) -> Callable[..., Any]:
    """``load_data`` of a data set: from a file that is there, whoever has made it.

    Keras would fetch a file whose checksum is not that of its own, and write over it. If there is
    no file and no network, the error says where to put one.
    """

    @functools.wraps(load)
    def load_data(*args: Any, **kwargs: Any) -> Any:
        try:
            return _looking_here_first(load)(*args, **kwargs)
        except Exception as error:
            fetched = isinstance(error, (OSError, urllib.error.URLError))
            if not fetched and "URL fetch failure" not in str(error):
                raise
            raise FileNotFoundError(
                f"tf.keras.datasets.{name} is not on this machine and could not be fetched "
                f"({error}). Put its file there: {folder() / _FILES.get(name, name)}."
            ) from error

    return load_data


def _looking_here_first(load: FunctionType) -> Callable[..., Any]:
    """A function of Keras that looks for files on this machine; Keras's own stays as it is."""
    fetch = load.__globals__["get_file"]

    def get_file(fname: str, *args: Any, cache_subdir: str = "datasets", **kwargs: Any) -> str:
        below = folder().parent / cache_subdir
        if (below / fname).exists():
            return str(below / fname)
        # What Keras 3 has unpacked into a folder of its own, older releases have beside it.
        if fname.endswith("-target") and (below / fname.removesuffix("-target")).exists():
            return str(below)
        return str(fetch(fname, *args, cache_subdir=cache_subdir, **kwargs))

    names = load.__globals__ | {"get_file": get_file}
    return FunctionType(load.__code__, names, load.__name__, load.__defaults__, load.__closure__)
