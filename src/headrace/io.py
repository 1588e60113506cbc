"""Files: the functions of ``tf.io``."""

from headrace.graph_util import write_graph

__all__ = ["write_graph"]
