"""``tf.graph_util``: cutting and freezing graphs in GraphDef form."""

from headrace.graph_files.graph_util import *  # noqa: F403
from headrace.graph_files.graph_util import __all__ as __all__
