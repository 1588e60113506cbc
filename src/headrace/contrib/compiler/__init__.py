"""``tf.contrib.compiler``: every graph is compiled by XLA, so these only keep programs working."""

from headrace.contrib.compiler import jit as jit
from headrace.contrib.compiler import xla as xla

__all__ = ["jit", "xla"]
