"""Every switch of the library in one place, read from the environment at import."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass
class Flags:
    """Settings for the whole process.

    Attributes:
        interpret: ``auto`` interprets small regions until compiling them pays (see
            executor.policy); ``always`` and ``never`` are for tests.
        interpret_limit: a region that costs more floating point operations is compiled at once.
        verify: check the step graph around every pass.
        dump_passes: print what each pass changed.
        keep_memory: let malloc keep freed memory for the next step (see executor.memory).
        connect_timeout: seconds that a session waits for a task that its step needs.
        data_port: where servers listen for tensors; 0 takes a free port.
        shared_memory: whether tasks on one host exchange tensors through shared memory.
        trace_ops: steps with FULL_TRACE are interpreted op by op, to give each op a time (see
            docs/profiling.md); otherwise compiled regions are timed as they run.
        checksums: whether tensors that travel without TLS have a CRC32C each: "1", "0", or "auto",
            which is between hosts.
        graph_seeds: what tells apart random ops where only the graph has a seed: ``counted``
            numbers them, as TensorFlow 2.x does; ``operations`` takes the number of operations made
            before, as 1.x did, which gives old programs their old numbers.
    """

    interpret: str = "auto"
    interpret_limit: float = 2e7
    verify: bool = False
    dump_passes: bool = False
    keep_memory: bool = True
    connect_timeout: float = 60.0
    data_port: int = 0
    shared_memory: bool = True
    trace_ops: bool = False
    graph_seeds: str = "counted"
    checksums: str = "auto"


def _from_environment() -> Flags:
    env = os.environ
    return Flags(
        interpret=env.get("HEADRACE_INTERPRET", "auto"),
        interpret_limit=float(env.get("HEADRACE_INTERPRET_LIMIT", "2e7")),
        verify=env.get("HEADRACE_VERIFY", "0") == "1",
        dump_passes=env.get("HEADRACE_DUMP_PASSES", "0") == "1",
        keep_memory=env.get("HEADRACE_KEEP_MEMORY", "1") == "1",
        connect_timeout=float(env.get("HEADRACE_CONNECT_TIMEOUT", "60")),
        data_port=int(env.get("HEADRACE_DATA_PORT", "0")),
        shared_memory=env.get("HEADRACE_SHARED_MEMORY", "1") == "1",
        trace_ops=env.get("HEADRACE_TRACE_OPS", "0") == "1",
        graph_seeds=env.get("HEADRACE_GRAPH_SEEDS", "counted"),
        checksums=env.get("HEADRACE_CHECKSUMS", "auto"),
    )


flags = _from_environment()


def __getattr__(name: str) -> Any:
    """The functions of ``tf.config``, which ask sessions for their devices."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("headrace.local_devices"), name)
