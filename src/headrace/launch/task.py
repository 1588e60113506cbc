"""A process that was forked becomes a task of a cluster."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

import numpy as np

from headrace import logging
from headrace.data_parallel.start import begin
from headrace.launch.processes import die_with_parent
from headrace.launch.program import run_program
from headrace.settings import flags, reload

__all__ = ["become", "serve"]


class _NoInput(io.TextIOWrapper):
    """Standard input of a task: whoever reads it is told that there is none."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise EOFError(
            "A task that `headrace launch` starts has no standard input, which several tasks could "
            "not share: give the program what it needs as arguments, variables of the environment "
            "or files."
        )

    read = readline = readlines = __next__ = _refuse


def become(parent: int, output: int, command: dict[str, Any]) -> NoReturn:
    """Run the program of a task in this process, and end it.

    Args:
        parent: the process that dies with all its tasks.
        output: where standard output and error go.
        command: ``program``, ``arguments``, ``module`` (whether that is what the program names),
            ``environment`` (variables to set), ``folder`` (to run in), ``plain`` (whether the
            program knows nothing of clusters, if somebody has looked); without a program it serves.
    """
    status = 1
    try:
        os.setsid()
        die_with_parent(parent, signal.SIGKILL)
        _restore_signals()
        _connect(output)
        os.environ.update(command["environment"])
        os.chdir(command["folder"])
        reload()
        if flags.log_format == "json":
            logging.get_logger()
        np.random.seed()  # else all tasks would draw the same numbers
        if command["program"] is None:
            serve()
        else:
            if flags.data_parallel:
                begin()  # the import does it in a new process; here it was before the fork
            run_program(
                command["program"], command["arguments"], command["module"], command.get("plain")
            )
        status = 0
    except SystemExit as end:
        status = _status(end.code)
    except BaseException as error:
        _report(error)
    finally:
        _finish(status)


def serve() -> None:
    """Serve as the task that ``TF_CONFIG`` names, until the cluster is shut down.

    Raises:
        InvalidArgumentError: if it names none.
        OpError: if its address cannot be served.
    """
    import jax

    from headrace.distributed.cluster.tf_config import read_tf_config
    from headrace.distributed.services.server import Server

    # Variables of servers are in main memory; the accelerators of the machine are the workers'.
    jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
    config = read_tf_config()
    Server(config.cluster, job_name=config.job, task_index=config.task).join()


def _restore_signals() -> None:
    """Signals do again what they do in a new process."""
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))


def _connect(output: int) -> None:
    """The three streams of the process."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, stream in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, stream)
    os.close(null)
    if output > 2:
        os.close(output)
    sys.stdin = _NoInput(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = sys.__stdout__ = _writer(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2)  # type: ignore[misc]


def _writer(stream: int) -> io.TextIOWrapper:
    """As on a terminal: a line is there once it is printed."""
    return open(
        stream, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """What the command line would show of an error: click's in a line, others with their way."""
    show = getattr(error, "format_message", None)
    if show is not None:
        print(f"Error: {show()}", file=sys.stderr)
    else:
        traceback.print_exception(error)


def _finish(status: int) -> NoReturn:
    """End as an interpreter does, without the frames of the process that has forked this one."""
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(status)
