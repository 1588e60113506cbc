"""Where in the user's program an operation was made."""

from __future__ import annotations

import linecache
import os
import sys
from typing import NamedTuple

_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

#: Whether a code file belongs to this package: asked for every op, so remembered.
_is_internal: dict[str, bool] = {}


class SourceSite(NamedTuple):
    """A line of a program: ``filename``, ``lineno`` (from 1) and the enclosing ``function``."""

    filename: str
    lineno: int
    function: str

    @property
    def line(self) -> str:
        """The text of the line, empty when the source is not at hand."""
        return linecache.getline(self.filename, self.lineno).strip()


def user_site() -> SourceSite | None:
    """The innermost frame outside this package, or None when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        internal = _is_internal.get(filename)
        if internal is None:
            internal = os.path.abspath(filename).startswith(_PACKAGE_ROOT)
            _is_internal[filename] = internal
        if not internal:
            return SourceSite(filename, frame.f_lineno, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None
