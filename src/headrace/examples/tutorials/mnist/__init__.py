"""Handwritten digits: `from headrace.examples.tutorials.mnist import input_data`."""

from typing import Any

from headrace.examples.tutorials.mnist import input_data

__all__ = ["input_data"]


def __getattr__(name: str) -> Any:
    if name == "mnist":
        # A model, so it brings the whole interface.
        from importlib import import_module

        return import_module("headrace.examples.tutorials.mnist.mnist")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
