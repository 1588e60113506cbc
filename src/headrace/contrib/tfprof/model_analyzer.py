"""Profiles of a model, as `tf.profiler.profile` gives them."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import Graph
from headrace.ops.core.old_arguments import note
from headrace.profiler import ProfileOptionBuilder, Profiler, profile
from headrace.profiler import advise as _advise

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY = ProfileOptionBuilder.time_and_memory() | {"order_by": "name"}


def print_model_analysis(
    graph: Graph | None,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = None,
) -> Any:
    """Deprecated: see `tf.profiler.profile`, whose ``cmd`` and ``options`` the last two are.

    Raises:
        TypeError: if ``graph`` is no graph.
    """
    note("tf.contrib.tfprof.model_analyzer.print_model_analysis", "tf.profiler.profile")
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


def advise(graph: Graph | None, run_meta: Any = None, tfprof_options: Any = None) -> Any:
    """Deprecated: see `tf.profiler.advise`.

    Raises:
        TypeError: if ``graph`` is no graph.
    """
    note("tf.contrib.tfprof.model_analyzer.advise", "tf.profiler.advise")
    return _advise(graph, run_meta, tfprof_options)


__all__ = [
    "FLOAT_OPS_OPTIONS",
    "PRINT_ALL_TIMING_MEMORY",
    "TRAINABLE_VARS_PARAMS_STAT_OPTIONS",
    "Profiler",
    "advise",
    "print_model_analysis",
]
