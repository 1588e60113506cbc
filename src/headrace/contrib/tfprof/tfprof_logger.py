"""Logs of what ops cost, as `tf.profiler.write_op_log` writes them."""

from headrace.profiler import write_op_log
from headrace.profiler.options import TRAINABLE_VARIABLES

__all__ = ["TRAINABLE_VARIABLES", "write_op_log"]
