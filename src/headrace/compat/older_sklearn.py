"""Arguments and modules of scikit-learn that later releases renamed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["CHANGES", "REPLACED"]


def _take_n_iter(*names: str) -> Callable[[Any], None]:
    """A change of a module: these classes take ``n_iter`` for what is ``max_iter`` now.

    Their signature stays, since scikit-learn reads a class's parameters from it.
    """

    def change(module: Any) -> None:
        for name in names:
            cls = getattr(module, name, None)
            if cls is not None:
                cls.__init__ = _with_n_iter(cls.__init__)

    return change


def _with_n_iter(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if "n_iter" in kwargs:
            kwargs["max_iter"] = kwargs.pop("n_iter")
        init(self, *args, **kwargs)

    return __init__


CHANGES: dict[str, Callable[[Any], None]] = {
    "sklearn.linear_model": _take_n_iter("Perceptron", "SGDClassifier", "SGDRegressor"),
    "sklearn.manifold": _take_n_iter("TSNE"),
}
#: Modules that moved, and where their functions are.
REPLACED = {
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.grid_search": "sklearn.model_selection",
}
