"""The group of all commands: how they end by Ctrl-C, and where output cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from typing import Any

import click

__all__ = ["CommandGroup"]

#: What only a write meets: a disk, a quota or a file that is full.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CommandGroup(click.Group):
    """Commands that end with a line, and status 1, where the disk of their output is full.

    A reader that has seen enough (EPIPE) is left to click, which then ends without a word.

    >>> CommandGroup("headrace").name
    'headrace'
    """

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """See `click.Command.make_context`: `--help` and `--version` write in it.

        Raises:
            click.ClickException: if they cannot.
        """
        with _written():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """See `click.Command.invoke`. Ctrl-C has the exit status that shells give it, not 1.

        Raises:
            click.ClickException: if what the command writes cannot be written.
        """
        try:
            with _written():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nAborted!", err=True)
            ctx.exit(128 + signal.SIGINT)


@contextlib.contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        # What Python still holds back would fail again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        place = f" to '{error.filename}'" if error.filename else ""
        raise click.ClickException(f"cannot write{place}: {error.strerror}") from None
