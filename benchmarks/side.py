"""One side of the benchmark in a process of its own: times what it is asked to, over its pipes.

Started by `run.py` as `python side.py headrace|tensorflow|jax|torch|numpy [cores]`; it is pinned to
so many cores. Each line in is a request `{"workload": name, "iterations": n}` and each line out its
answer `{"seconds": per step}` or `{"error": text}`; the first line out tells the import time and
the version. With `"values": path` the step runs once, and what it made goes to that file. A
workload is built and warmed up when it is first asked for, and dropped when another is.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import TextIO

MODULES = {
    "headrace": "headrace",
    "tensorflow": "tensorflow.compat.v1",
    "jax": "jax",
    "torch": "torch",
    "numpy": "numpy",
}
#: What libraries take the number of their threads from.
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
#: How the names of single operations and convolutions begin.
SWEPT = ("operation ", "convolution ")
WARM_UP_STEPS = 8
WARM_UP_SECONDS = 2.0


def environment_of(tree: Path | None) -> dict[str, str]:
    """The environment of a process that is timed: no compiled programs on disk, few messages.

    Args:
        tree: the checkout whose Headrace it runs; None for other sides.
    """
    return os.environ | {
        "HEADRACE_COMPILATION_CACHE": "",
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
        "PYTHONPATH": "" if tree is None else str(tree / "src"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def pin(cores: int) -> None:
    """Have this process, and threads of libraries that are not loaded yet, run on so many cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    os.environ.update(dict.fromkeys(THREADS, str(cores)))


def take_stdout() -> int:
    """Keep the pipe for answers only: whatever libraries print goes to standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; for processes in which Headrace is not imported."""
    import socket  # a part of what libraries import, whose time is measured

    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def load(side: str) -> ModuleType:
    """Import what a side runs; TensorFlow's graph sessions as in 1.x."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # TensorFlow's recurrent cells
    module = importlib.import_module(MODULES.get(side, side))
    if side == "tensorflow":
        module.disable_v2_behavior()
        module.logging.set_verbosity(module.logging.FATAL)
    return module


def arguments_of_side() -> tuple[ModuleType, list[str], TextIO]:
    """In a process for one measurement (`alone.py`): the module of its side, further arguments, and
    where the answer goes."""
    answers = os.fdopen(take_stdout(), "w")
    side, *rest = sys.argv[1:]
    return load(side), rest, answers


def _build(side: str, module: object, name: str):
    if side == "jax":
        from jax_workloads import WORKLOADS as own

        return own[name]()
    if name.startswith(SWEPT) and side in ("torch", "numpy"):
        from counterparts import build

        return build(side, module, name)
    if side == "torch":
        from torch_workloads import WORKLOADS as own

        return own[name]()
    from workloads import named

    module.reset_default_graph()
    return named(name).build(module)


def _warm_up(step) -> None:
    """Steps until all is compiled: Headrace interprets up to five."""
    end = time.perf_counter() + WARM_UP_SECONDS
    for done in range(1, WARM_UP_STEPS + 1):
        step.run()
        if done >= 7 and time.perf_counter() > end:
            break
    step.sync()


def _time(step, iterations: int) -> float:
    """Mean seconds of a step. Steps that time themselves are believed."""
    own = 0.0
    timed_itself = False
    start = time.perf_counter()
    for _ in range(iterations):
        seconds = step.run()
        if type(seconds) is float:
            own, timed_itself = own + seconds, True
    step.sync()
    return (own if timed_itself else time.perf_counter() - start) / iterations


def _keep(step, path: str) -> None:
    import numpy as np
    from counterparts import arrays

    np.savez(path, *arrays(step.values()))


def main() -> None:
    side, *cores = sys.argv[1:]
    if cores:
        pin(int(cores[0]))
    answers = os.fdopen(take_stdout(), "w", buffering=1)
    start = time.perf_counter()
    module = load(side)
    imported = time.perf_counter() - start
    print(json.dumps({"import": imported, "version": module.__version__}), file=answers)
    name, step = None, None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["workload"] != name:
                step = None
                step = _build(side, module, request["workload"])
                name = request["workload"]
                if not request.get("cold"):
                    _warm_up(step)
            if "values" in request:
                _keep(step, request["values"])
                print(json.dumps({}), file=answers)
                continue
            answer = {"seconds": _time(step, request["iterations"])}
        except Exception as error:
            traceback.print_exc()
            name, answer = None, {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
