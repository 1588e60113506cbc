"""``tf.logging``: Python's logging, under the logger ``tensorflow``.

Programs and the tools around them look for lines such as ``INFO:tensorflow:step 10``, so the
logger keeps that name. What concerns Headrace's engine and clusters goes to the logger
``headrace``; both have the same level and write to the same place. Nothing is set up where the
program has configured the root logger itself; with ``HEADRACE_LOG_FORMAT=json`` both loggers write
JSON in any case, from the level INFO on.
"""

from __future__ import annotations

import logging as _logging
import sys as _sys
import threading as _threading
from logging import DEBUG, ERROR, FATAL, INFO, WARN
from typing import Any

from headrace.settings import flags as _flags
from headrace.structured_logs import JsonFormatter as _JsonFormatter

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "TaskLevelStatusMessage",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_logger",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

_LOGGERS = ("tensorflow", "headrace")
#: Programs reach for it under this name.
_logger = _logging.getLogger(_LOGGERS[0])
#: The format that handlers were made for; "" before that.
_ready = ""
_handler: _logging.Handler | None = None
_lock = _threading.Lock()
#: How often each line of the program has asked to log (`log_first_n`, `log_every_n`).
_counts: dict[tuple[str, int], int] = {}


def get_logger() -> _logging.Logger:
    """The logger ``tensorflow``; the first call gives it a handler, unless the root has one."""
    global _ready
    if _ready == _flags.log_format:
        return _logger
    with _lock:
        if _ready != _flags.log_format:
            _make_handlers(_flags.log_format == "json")
        _ready = _flags.log_format
    return _logger


def _make_handlers(is_json: bool) -> None:
    global _handler
    if not is_json and _logging.getLogger().handlers:
        return
    interactive = hasattr(_sys, "ps1") or bool(_sys.flags.interactive)
    before = _handler
    _handler = _logging.StreamHandler(_sys.stdout if interactive else _sys.stderr)
    plain = _logging.Formatter(_logging.BASIC_FORMAT)
    _handler.setFormatter(_JsonFormatter() if is_json else plain)
    for name in _LOGGERS:
        logger = _logging.getLogger(name)
        if before is not None:
            logger.removeHandler(before)
        logger.addHandler(_handler)
        # The root's handlers would say it again, in their way.
        logger.propagate = not is_json
        if interactive or (is_json and logger.level == _logging.NOTSET):
            logger.setLevel(INFO)


def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at ``level``, one of Python's logging levels.

    Raises:
        TypeError: if ``level`` is no integer.
    """
    get_logger().log(level, msg, *args, **_from_caller(kwargs))


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` for debugging."""
    get_logger().debug(msg, *args, **_from_caller(kwargs))


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` as information."""
    get_logger().info(msg, *args, **_from_caller(kwargs))


def warn(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` as a warning."""
    get_logger().warning(msg, *args, **_from_caller(kwargs))


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` as a warning."""
    get_logger().warning(msg, *args, **_from_caller(kwargs))


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` as an error."""
    get_logger().error(msg, *args, **_from_caller(kwargs))


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` as a fatal error; the program goes on."""
    get_logger().critical(msg, *args, **_from_caller(kwargs))


def TaskLevelStatusMessage(msg: Any) -> None:
    """Log ``msg`` as an error."""
    get_logger().error(msg, stacklevel=2)


def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Log ``msg % args`` at ``level``, which is one of Python's logging levels.

    Raises:
        TypeError: if ``level`` is no integer.
    """
    get_logger().log(level, msg, *args, **_from_caller(kwargs))


def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Log ``msg % args`` at ``level`` if ``condition`` holds.

    Raises:
        TypeError: if ``level`` is no integer.
    """
    if condition:
        get_logger().log(level, msg, *args, stacklevel=2)


def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log the first of every ``n`` calls from the same line.

    Raises:
        TypeError: if ``level`` is no integer.
        ZeroDivisionError: if ``n`` is 0.
    """
    if _count() % n == 0:
        get_logger().log(level, msg, *args, stacklevel=2)


def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Log the first ``n`` calls from the same line.

    Raises:
        TypeError: if ``level`` is no integer.
    """
    if _count() < n:
        get_logger().log(level, msg, *args, stacklevel=2)


def flush() -> None:
    """Flush what the loggers write to."""
    for name in _LOGGERS:
        for handler in _logging.getLogger(name).handlers:
            handler.flush()


def get_verbosity() -> int:
    """The level from which on messages are logged."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: Any) -> None:
    """Log messages from level ``v`` on: `DEBUG`, `INFO`, `WARN`, `ERROR`, `FATAL`, or its name.

    Raises:
        ValueError: if ``v`` is a string that names no level.
        TypeError: if ``v`` is neither an integer nor a string.
    """
    get_logger()
    for name in _LOGGERS:
        _logging.getLogger(name).setLevel(v)


def _from_caller(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The record's line is that of our caller, not of this module."""
    kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
    return kwargs


def _count() -> int:
    frame = _sys._getframe(2)
    line = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        count = _counts.get(line, 0)
        _counts[line] = count + 1
    return count
