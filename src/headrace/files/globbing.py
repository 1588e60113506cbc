"""Paths that match a pattern."""

from __future__ import annotations

import functools
import re
from typing import Any

from headrace.errors import OpError, UnimplementedError
from headrace.files.paths import as_path
from headrace.files.system import exists, is_directory, join, list_directory

_MAGIC = re.compile(r"[*?\[\\]")


def glob(patterns: Any) -> list[str]:
    """The paths that match a pattern, or any of a list of patterns, sorted within each.

    ``*`` and ``?`` stand for characters other than ``/``, ``[ab]`` and ``[!ab]`` for one of a set,
    a backslash takes the meaning off the next character. Hidden files match as others do.
    """
    if isinstance(patterns, (list, tuple)):
        return [path for pattern in patterns for path in _matching(as_path(pattern))]
    return _matching(as_path(patterns))


def _matching(pattern: str) -> list[str]:
    if not _MAGIC.search(pattern):
        return [pattern] if pattern and exists(pattern) else []
    scheme, separator, rest = pattern.rpartition("://")
    first, *parts = rest.split("/")
    if separator and not _MAGIC.search(first):
        found = [scheme + separator + first]  # a bucket, which one may not be allowed to look for
    else:
        found = _step([scheme + separator], first)
    for i, part in enumerate(parts):
        if part:
            found = _step([p or "/" for p in found], part, last=i == len(parts) - 1)
    return found


def _step(paths: list[str], part: str, last: bool = True) -> list[str]:
    """The entries named by one component of a pattern in each of some directories."""
    if not _MAGIC.search(part):
        joined = [join(p, part) for p in paths] if part else paths
        return [p for p in joined if not p or exists(p)]
    match = _compiled(part).fullmatch
    found: list[str] = []
    for path in paths:
        try:
            names = list_directory(path or ".")
        except UnimplementedError:
            raise  # no such scheme: that nothing matches would hide it
        except OpError:
            continue  # a file, or a directory that may not be read: nothing matches in it
        found += [join(path, n) for n in names if match(n)]
    return found if last else [p for p in found if is_directory(p)]


@functools.lru_cache(maxsize=256)
def _compiled(part: str) -> re.Pattern[str]:
    """The regular expression of one component of a pattern."""
    text, i = "", 0
    while i < len(part):
        char = part[i]
        i += 1
        if char == "*":
            text += "[^/]*"
        elif char == "?":
            text += "[^/]"
        elif char == "\\" and i < len(part):
            text += re.escape(part[i])
            i += 1
        elif char == "[" and (end := _end_of_set(part, i)) > 0:
            inside = part[i:end].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
            i = end + 1
        else:
            text += re.escape(char)
    try:
        return re.compile(text, re.DOTALL)
    except re.error:  # an empty range such as [z-a]
        return re.compile(r"(?!)")


def _end_of_set(part: str, begin: int) -> int:
    """Where the bracket closes that opened before ``begin``, or -1; a first "]" is a member."""
    negated = part[begin : begin + 1] in ("!", "^")
    return part.find("]", begin + 1 + negated)
