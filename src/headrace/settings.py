"""Every switch of the library in one place, read from the environment at import."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any


def _one_of(default: str, *others: str) -> Any:
    """A setting that takes one of some words."""
    return field(default=default, metadata={"choices": (default, *others)})


def _like(pattern: str, words: str) -> Any:
    """A setting that is "" or matches a pattern."""
    return field(default="", metadata={"pattern": pattern, "words": words})


#: Where the commands of Headrace let compiled programs be kept, unless the environment says.
USERS_COMPILATION_CACHE = "~/.cache/headrace/compiled"
#: Where `make native` puts the native library.
USERS_NATIVE_FOLDER = "~/.cache/headrace/native"


@dataclass
class Flags:
    """Settings for the whole process.

    Attributes:
        interpret: ``auto`` interprets small regions until compiling them pays (see
            executor.policy); ``always`` and ``never`` are for tests.
        interpret_limit: a region that costs more floating point operations is compiled at once; one
            that takes more than 0.2 s to compile may cost more, in proportion.
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
        data_parallel: how a program that knows nothing of clusters trains on the one that
            ``TF_CONFIG`` describes: ``async``, ``sync``, ``sync:N`` with N backup workers, or
            ``all-reduce``; "" leaves it alone. `headrace launch` sets it for workers.
        elastic: with how many workers the job of ``data_parallel`` began, if others may join later,
            so that one that is alone shares its variables, too; else 0. `headrace launch
            --elastic` sets it.
        join: ``host:port`` of a task of the running cluster that the `tf.train.Server` of this
            process joins, though it knows that cluster already: the others do not know it yet.
        starts: how often the task of this process was started, this time included. `headrace
            launch` sets it: one that was started again deletes nothing before its first step.
        tf32: whether products and convolutions of float32 on NVIDIA's GPUs may round what they
            multiply to TF32, which keeps 10 of 23 bits and is several times as fast.
        log_format: of the loggers of `tf.logging` and of the engine: ``json`` writes one object a
            line, from the level INFO on (docs/operations.md).
        metrics_port: where servers offer metrics to Prometheus, beside their own address; 0 takes
            a free port, "" offers none. Needs the extra ``metrics``.
        compilation_cache: folder where compiled programs are kept for the next start; "" keeps
            none (see executor.compilation_cache). `headrace run`, `launch` and `demo` set it.
        native: folder of the library that `make native` builds (docs/native.md); "" leaves all
            kernels to XLA.
        first_worker_is_chief: whether Estimators take worker 0 for the chief in a cluster without
            one; in 1.x that was an error.
    """

    interpret: str = _one_of("auto", "always", "never")
    interpret_limit: float = 2e7
    verify: bool = False
    dump_passes: bool = False
    keep_memory: bool = True
    connect_timeout: float = 60.0
    data_port: int = 0
    shared_memory: bool = True
    trace_ops: bool = False
    graph_seeds: str = _one_of("counted", "operations")
    checksums: str = _one_of("auto", "1", "0")
    data_parallel: str = _like(
        "(async|sync(:[0-9]+)?|all-reduce)?", "async, sync, sync:N or all-reduce"
    )
    elastic: int = 0
    join: str = ""
    starts: int = 1
    tf32: bool = False
    log_format: str = _one_of("plain", "json")
    metrics_port: str = _like("[0-9]{0,5}", "a port, or 0 for any that is free")
    compilation_cache: str = ""
    native: str = USERS_NATIVE_FOLDER
    first_worker_is_chief: bool = False


def _from_environment() -> Flags:
    """The settings of ``HEADRACE_`` and their names in capitals; what is not set is as above.

    Raises:
        ValueError: if a value is none that the setting takes.
    """
    given = {}
    for setting in fields(Flags):
        variable = f"HEADRACE_{setting.name.upper()}"
        text = os.environ.get(variable)
        if text is not None:
            given[setting.name] = _parsed(variable, text, type(setting.default), setting.metadata)
    return Flags(**given)


def _parsed(variable: str, text: str, kind: type, metadata: Mapping[str, Any]) -> Any:
    choices = ("1", "0") if kind is bool else metadata.get("choices", ())
    if choices and text not in choices:
        raise ValueError(f"{variable} can be {' or '.join(choices)}, but is {text!r}.")
    if not re.fullmatch(metadata.get("pattern", ".*"), text, re.DOTALL):
        raise ValueError(f"{variable} can be {metadata['words']}, but is {text!r}.")
    try:
        return text == "1" if kind is bool else kind(text)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        raise ValueError(f"{variable} must be {what}, but is {text!r}.") from None


flags = _from_environment()


def reload() -> None:
    """Read the environment again: a process that was forked has another one than its parent."""
    now = _from_environment()
    for setting in fields(Flags):
        setattr(flags, setting.name, getattr(now, setting.name))


@contextlib.contextmanager
def environment_defaults(defaults: Mapping[str, str]) -> Iterator[None]:
    """Variables that a library reads as it is loaded, set within the block where the user has not
    set them; processes that are started later see none of them."""
    missing = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


def keep_compiled() -> None:
    """Keep compiled programs for the next start, here and in processes that this one starts.

    For processes that are Headrace's own: where the environment names a folder, or none by an
    empty `HEADRACE_COMPILATION_CACHE`, that stays.
    """
    os.environ.setdefault("HEADRACE_COMPILATION_CACHE", USERS_COMPILATION_CACHE)
    flags.compilation_cache = os.environ["HEADRACE_COMPILATION_CACHE"]
