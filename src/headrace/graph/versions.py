"""The TensorFlow whose interface Headrace has.

The release of Headrace itself is ``headrace.__version__``. Programs compare these strings with
releases of TensorFlow, so `VERSION` is a plain release number of the last 1.x line.
"""

from headrace.graph.graph_def import PRODUCER as _PRODUCER

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]

VERSION = "1.15.0"
GIT_VERSION = f"v{VERSION}-headrace"
COMPILER_VERSION = "XLA"
GRAPH_DEF_VERSION = _PRODUCER
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
