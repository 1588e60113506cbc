"""Handwritten digits: `from headrace.examples.tutorials.mnist import input_data`."""

from headrace.examples.tutorials.mnist import input_data
from headrace.namespaces.lazy import lazy

__all__ = ["input_data"]


#: A model, so it brings the whole interface.
__getattr__, __dir__ = lazy(__name__, modules=("mnist",))
