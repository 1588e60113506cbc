"""Where commands show what clusters and users name."""

from __future__ import annotations

from rich.console import Console

__all__ = ["plain_console"]


def plain_console(width: int | None = None) -> Console:
    """A console that shows text as it is: ``[fe80::1]:2222`` is no markup, ``a:x:b`` no picture.

    Args:
        width: in columns; by default that of the terminal.

    >>> plain_console(40).render_str("[fe80::1]:2222").plain
    '[fe80::1]:2222'
    """
    return Console(width=width, markup=False, emoji=False)
