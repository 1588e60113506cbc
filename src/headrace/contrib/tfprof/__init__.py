"""``tf.contrib.tfprof``: the profiler under its old names; use `tf.profiler`."""

from headrace.contrib.tfprof import model_analyzer, tfprof_logger

__all__ = ["model_analyzer", "tfprof_logger"]
