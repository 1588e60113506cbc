"""How this process becomes one of the workers of a plain script."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import numpy as np

from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.worker import ScriptWorker
from headrace.graph import graph as graphs
from headrace.graph import random_seed
from headrace.ops.state import share
from headrace.session.engines import register_engine
from headrace.settings import flags

__all__ = ["begin", "end"]

#: Between the seeds of two workers: no program has so many operations with seeds in a row.
_APART = 1_000_003


def begin() -> ScriptWorker | None:
    """Take part as ``TF_CONFIG`` and ``HEADRACE_DATA_PARALLEL`` say.

    Returns:
        None for a task that is no worker, such as an evaluator: it runs the script alone.

    Raises:
        ValueError: if these say what cannot be.
    """
    mode = ParallelMode.parse(flags.data_parallel)
    try:
        config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
        cluster, task = config["cluster"], config["task"]
        job, index = task["type"], int(task["index"])
        if not (isinstance(cluster, dict) and isinstance(job, str)):
            raise TypeError("'cluster' must be a JSON object, and 'type' a string")
        if type(task["index"]) not in (int, str):
            raise TypeError(f"'index' must be an integer, not {task['index']!r}")
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"HEADRACE_DATA_PARALLEL={flags.data_parallel} needs TF_CONFIG with a cluster and the "
            f"task of this process, as `headrace launch` sets it ({error!r})."
        ) from None
    if job not in ("chief", "worker"):
        return None
    made = ScriptWorker(mode, cluster, job, index)
    register_engine("share", "headrace.data_parallel.engine:open_engine")
    graphs.prepare_new_graph.append(made.placement.prepare)
    share.outermost_creators.append(made.placement.make_variable)
    random_seed.apart = made.worker * _APART
    # Scripts that shuffle in Python come to the same batches in all workers.
    random.seed(made.seed)
    np.random.seed(made.seed)
    share.set_current(made)
    # Processes that the script starts are no workers.
    os.environ.pop("HEADRACE_DATA_PARALLEL", None)
    return made


def end() -> None:
    """Be alone again: for a program that distributes itself, and for tests."""
    share.set_current(None)
    share.outermost_creators.clear()
    graphs.prepare_new_graph.clear()
    random_seed.apart = 0
    # Each worker draws its own again.
    random.seed()
    np.random.seed()
