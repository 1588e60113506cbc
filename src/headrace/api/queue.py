"""Queues: the names of ``tf.queue``."""

from headrace.ops.every import fill as _fill

__all__ = _fill(__name__)
