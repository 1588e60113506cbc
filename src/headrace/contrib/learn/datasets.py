"""``tf.contrib.learn.datasets``: data sets by name, from files on this machine."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headrace.contrib.learn import base as base
from headrace.contrib.learn.base import load_boston as load_boston
from headrace.contrib.learn.base import load_iris as load_iris
from headrace.namespaces.lazy import lazy as _lazy

__all__ = ["DATASETS", "base", "load_boston", "load_dataset", "load_iris", "load_mnist"]


def load_mnist(train_dir: str = "MNIST-data") -> Any:
    """The MNIST digits from the IDX files in ``train_dir``; says where to put them if absent.

    Images are ``[examples, 784]``, labels ``[examples]``.

    Raises:
        NotFoundError: if the files are not there.
    """
    return _mnist().read_data_sets(train_dir)


def _mnist() -> Any:
    """The tutorials' reader, which stands above this package."""
    return import_module("headrace.examples.tutorials.mnist.input_data")


#: What `load_dataset` knows, by name.
DATASETS = {"boston": load_boston, "iris": load_iris, "mnist": load_mnist}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set of a name of `DATASETS`.

    Its arrays have one example in each row: shape ``[examples, ...]``.

    Raises:
        ValueError: if there is none of that name.
        FileNotFoundError: if its files are not on this machine.
    """
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}. There are {', '.join(DATASETS)}.")
    return DATASETS[name]()


__getattr__, __dir__ = _lazy(
    __name__, modules={"mnist": "headrace.examples.tutorials.mnist.input_data"}
)
