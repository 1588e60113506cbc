"""Tutorials, under the module names that published programs import."""

from headrace.examples.tutorials import mnist

__all__ = ["mnist"]
