"""``tf.version``: the TensorFlow whose interface Headrace has."""

from headrace.graph.versions import *  # noqa: F403
from headrace.graph.versions import __all__ as __all__
