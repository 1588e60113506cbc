"""``tf.debugging``: checks while the graph is built and while it runs."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
