"""Values on the command line."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["DAY", "RealRange", "folder_named"]

#: Seconds; nothing that a command waits for takes longer.
DAY = 86_400.0


class RealRange(click.FloatRange):
    """A range of real numbers: without NaN, which compares with no bound.

    >>> RealRange(0.0, 1.0).convert("0.5", None, None)
    0.5
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """See `click.ParamType.convert`.

        Raises:
            click.BadParameter: if the value is no number of the range.
        """
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


def folder_named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that names a folder, here or in a store.

    Raises:
        click.BadParameter: for ``""``, as a variable that is not set gives it.
    """
    if value == "":
        raise click.BadParameter("it names no folder.", ctx, param)
    return value
