"""Lines of logs that programs read: one JSON object each, on request.

What happens to a cluster is told with `tell`: the same call makes a plain line and, where
``HEADRACE_LOG_FORMAT`` is ``json``, an object with the kind of the event and its details. Each
kind stands in `EVENTS`; how often each has happened is counted, for metrics.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

__all__ = [
    "EVENTS",
    "JsonFormatter",
    "counts",
    "json_line",
    "read_json_line",
    "short_task",
    "tell",
    "this_task",
]

#: What happens to a cluster, by the name that it has in logs and metrics.
EVENTS: Final = {
    "server_started": "a server listens",
    "server_stopped": "a server has stopped",
    "task_joined": "a process has become a task of a running cluster",
    "task_leaving": "a task was asked to leave",
    "cluster_changed": "a task knows a newer record of the cluster",
    "peer_lost": "a connection to another task is gone",
    "step_failed": "a step ended with an error",
    "step_given_up": "a step ended by a deadline of its own, or with its session",
    "session_recovered": "a training loop makes its session anew after a task was lost",
    "variables_moved": "variables have moved to another task",
    "copy_complete": "another task keeps a copy of a server's variables",
    "copy_lost": "a server goes on without its copy",
    "copy_serves": "a copy stands for a server that is gone",
    "chief_taken": "a worker has taken over the chief's duties",
    "chief_lost": "a worker has lost the chief's duties",
    "checkpoint_begun": "a checkpoint is being saved",
    "checkpoint_saved": "a checkpoint is complete",
    "checkpoint_restored": "variables were restored from a checkpoint",
}

#: Of each line, in this order; others may follow.
_KEYS = ("time", "level", "logger", "task", "step", "event", "message", "fields")

_counts = dict.fromkeys(EVENTS, 0)
_lock = threading.Lock()
_task = ""


def tell(
    log: logging.Logger,
    event: str,
    text: str,
    *args: Any,
    level: int = logging.INFO,
    task: str = "",
    step: int | None = None,
    fields: Mapping[str, Any] | None = None,
) -> None:
    """Log that something has happened, and count it.

    Args:
        log: the logger; text, args: the plain line.
        event: one of `EVENTS`.
        task: to whom, by its full name; the task of this process if it is not said.
        step: the global step of the training, where that is known.
        fields: what else there is to say: anything that JSON holds; the rest as its text.

    Raises:
        KeyError: if there is no such event.
    """
    with _lock:
        _counts[event] += 1
    extra = {"event": event, "task": task, "step": step, "fields": dict(fields or {})}
    log.log(level, text, *args, extra={"headrace": extra}, stacklevel=2)


def counts() -> dict[str, int]:
    """How often each event has happened in this process."""
    with _lock:
        return dict(_counts)


def this_task(name: str) -> None:
    """Lines that name no task are of this one, by its full name, from now on."""
    global _task
    _task = name


def short_task(name: str) -> str:
    """A task's name as logs and metrics have it.

    >>> short_task("/job:ps/replica:0/task:1")
    'ps/1'
    """
    parts = dict(part.split(":", 1) for part in name.split("/") if ":" in part)
    return f"{parts['job']}/{parts['task']}" if parts.keys() >= {"job", "task"} else name


class JsonFormatter(logging.Formatter):
    """Makes each record one line with a JSON object.

    >>> record = logging.makeLogRecord({"msg": "up", "levelname": "INFO", "created": 0.0})
    >>> JsonFormatter().format(record)[:51]
    '{"time": "1970-01-01T00:00:00.000Z", "level": "INFO'
    """

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = getattr(record, "headrace", {})
        more = {"exception": self.formatException(record.exc_info)} if record.exc_info else {}
        return json_line(
            record.created,
            record.levelname,
            record.name,
            record.getMessage(),
            task=said.get("task") or _task,
            step=said.get("step"),
            event=said.get("event"),
            fields=said.get("fields"),
            **more,
        )


def json_line(
    at: float,
    level: str,
    logger: str,
    message: str,
    task: str = "",
    step: int | None = None,
    event: str | None = None,
    fields: Mapping[str, Any] | None = None,
    **more: Any,
) -> str:
    """A line of a log; ``at`` in seconds since the epoch, ``more`` after all other keys."""
    day = datetime.fromtimestamp(at, UTC)
    line = {
        "time": f"{day:%Y-%m-%dT%H:%M:%S}.{day.microsecond // 1000:03}Z",
        "level": level,
        "logger": logger,
        "task": short_task(task) or None,
        "step": step,
        "event": event,
        "message": message,
        "fields": fields or {},
    }
    return json.dumps(line | more, default=str)


def read_json_line(text: str) -> dict[str, Any] | None:
    """What `json_line` has written, by its keys; None for any other text.

    >>> read_json_line(json_line(0.0, "INFO", "output", "up"))["message"]
    'up'
    >>> read_json_line('{"time": "now"}')
    """
    if not (text.startswith('{"time": ') and text.endswith("}")):
        return None
    try:
        found: dict[str, Any] = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if tuple(found)[: len(_KEYS)] == _KEYS else None


def _refuse(constant: str) -> None:
    """NaN and the infinities, which Python reads, are no JSON.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{constant} is no JSON.")
