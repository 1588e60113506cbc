"""Errors as messages: what failed, where, and which op of the client's graph it concerns."""

from __future__ import annotations

from typing import Any

from headrace.distributed.protocol import step_pb2 as pb
from headrace.errors import (
    INTERNAL,
    CancelledError,
    OpError,
    OpSummary,
    UnavailableError,
    exception_type_from_error_code,
)


def to_failure(error: BaseException, task: str) -> pb.Failure:
    """The message of an error that was raised in ``task``."""
    if not isinstance(error, OpError):
        text = f"{type(error).__name__}: {error}"
        return pb.Failure(code=INTERNAL, message=text, task=task)
    failure = pb.Failure(code=error.error_code, message=error.message, task=task)
    failure.derived = getattr(error, "derived", False)
    if error.op is not None:
        summary = OpSummary.of(error.op)
        failure.op_name, failure.op_type = summary.name, summary.type
        failure.device = error.device or summary.device
    return failure


def to_error(failure: pb.Failure, graph: Any = None) -> OpError:
    """The error of a message; its op is that of ``graph`` where the graph has it.

    ``error.task`` is the task where it happened, ``error.device`` the device.
    """
    op: Any = None
    if failure.op_name:
        op = _find(graph, failure.op_name) if graph is not None else None
        if op is None:
            op = OpSummary(failure.op_name, failure.op_type, failure.device, None)
    try:
        error = exception_type_from_error_code(failure.code)(None, op, failure.message)
    except KeyError:
        error = OpError(None, op, failure.message, failure.code)
    error.device = failure.device
    error.task = failure.task  # type: ignore[attr-defined]
    error.derived = failure.derived  # type: ignore[attr-defined]
    return error


def _find(graph: Any, name: str) -> Any:
    """The op of this name in a graph or one of its functions."""
    found = graph._by_name.get(name)
    if found is None:
        for function in graph.outermost._functions.values():
            found = function._by_name.get(name)
            if found is not None:
                break
    return found


def cancelled(reason: str) -> CancelledError:
    """What the parts of a step raise that end because another part has failed."""
    error = CancelledError(None, None, reason)
    error.derived = True  # type: ignore[attr-defined]
    return error


def unavailable(task: str, step: int | None, reason: str) -> UnavailableError:
    """The error of a step that needs a task which is gone."""
    what = "" if step is None else f", which step {step:016x} needs,"
    return UnavailableError(
        None,
        None,
        f"Task {task}{what} cannot be reached: {reason}. Start it again, or run the step again "
        "once it is back.",
    )
