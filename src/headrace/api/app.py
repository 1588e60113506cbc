"""``tf.app``: start the program's ``main`` with its flags parsed."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from headrace import flags
from headrace.logging import get_logger

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """Parse the flags, call ``main(argv)`` and exit with what it returns.

    Flags that the program does not define stay in ``main``'s ``argv``. A wrong value of a flag
    is printed, with exit status 1; ``--help`` shows the program's flags.

    Args:
        main: the function to call; by default ``main`` of the program.
        argv: the command line, with the program's name first; by default ``sys.argv``.

    Raises:
        SystemExit: always: with what ``main`` returns, with status 1 for a wrong flag, or with the
            code of an ``app.UsageError`` that ``main`` raises.
        AttributeError: if no ``main`` is given and the program defines none.
    """
    from absl import app

    entry = main or sys.modules["__main__"].main
    app.define_help_flags()
    try:
        args = flags.FLAGS(sys.argv if argv is None else argv, known_only=True)
    except flags.Error as error:
        print(f"FATAL Flags parsing error: {error}", file=sys.stderr)
        print("Pass --helpshort or --helpfull to see help on flags.", file=sys.stderr)
        sys.exit(1)
    _keep_absl_apart()
    try:
        sys.exit(entry(args))
    except app.UsageError as error:
        app.usage(shorthelp=True, detailed_error=error, exitcode=error.exitcode)


def _keep_absl_apart() -> None:
    """Set up absl's logging for programs that use it; `tf.logging` writes what is its own."""
    from absl import logging as absl_logging

    get_logger()
    if flags.defined_by_absl("verbosity"):
        absl_logging.use_absl_handler()
    ours = [name for name in ("tensorflow", "headrace") if logging.getLogger(name).handlers]

    def is_not_ours(record: logging.LogRecord) -> bool:
        return record.name.partition(".")[0] not in ours

    for handler in logging.getLogger().handlers:
        if isinstance(handler, absl_logging.ABSLHandler) and not handler.filters:
            handler.addFilter(is_not_ours)
