"""``tf.layers``: layers that make their variables in variable scopes."""

from headrace.layers.base import InputSpec, Layer

__all__ = ["InputSpec", "Layer"]
