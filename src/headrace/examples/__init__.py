"""Programs and data readers that go with the tutorials."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "tutorials":
        return import_module("headrace.examples.tutorials")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
