"""`tf.keras.datasets` from files on this machine."""

from __future__ import annotations

import functools
import os
import urllib.error
from collections.abc import Callable
from pathlib import Path
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


def from_local_file(name: str, load: Callable[..., Any]) -> Callable[..., Any]:
    """``load_data`` of a data set: its error says where to put the file if there is no network."""

    @functools.wraps(load)
    def load_data(*args: Any, **kwargs: Any) -> Any:
        try:
            return load(*args, **kwargs)
        except Exception as error:
            fetched = isinstance(error, (OSError, urllib.error.URLError))
            if not fetched and "URL fetch failure" not in str(error):
                raise
            raise FileNotFoundError(
                f"tf.keras.datasets.{name} is not on this machine and could not be fetched "
                f"({error}). Put its file there: {folder() / _FILES.get(name, name)}."
            ) from error

    return load_data
