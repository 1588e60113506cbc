"""Parts of `tf.contrib` that distributed programs use: so far `tf.contrib.training`."""

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.errors import suggest as _suggest

_MODULES = (
    "rnn",
    "training",
)


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"headrace.contrib.{name}")
    message = f"module 'headrace.contrib' has no attribute {name!r}; it has {', '.join(_MODULES)}."
    raise AttributeError(message + _suggest(name, _MODULES))
