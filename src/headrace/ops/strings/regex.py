"""Regular expressions of string ops: RE2, as in TensorFlow, in time linear in the text."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import re2

from headrace.errors import InvalidArgumentError

__all__ = ["Rewrite", "as_bytes", "compiled", "full_match", "parsed_rewrite", "replace"]


def as_bytes(item: Any) -> bytes:
    """An element of a string tensor as bytes."""
    return item.encode() if isinstance(item, str) else bytes(item)


def _quiet() -> Any:
    options = re2.Options()
    options.log_errors = False  # they are raised
    return options


_OPTIONS = _quiet()


@lru_cache(maxsize=512)
def compiled(pattern: str | bytes) -> Any:
    """A pattern in RE2's syntax, compiled.

    Raises:
        InvalidArgumentError: if it is none, or needs more than RE2's 8 MiB.
    """
    try:
        return re2.compile(as_bytes(pattern), _OPTIONS)
    except re2.error as error:
        why = error.args[0] if error.args else b""
        text, why = (as_bytes(part).decode("utf-8", "replace") for part in (pattern, why))
        raise InvalidArgumentError(None, None, f"Invalid pattern: {text}, error: {why}") from None


class Rewrite(NamedTuple):
    """What replaces a match: texts and, for integers, groups of the match."""

    parts: tuple[bytes | int, ...]

    def of(self, match: Any) -> bytes:
        return b"".join(
            [(match[part] or b"") if isinstance(part, int) else part for part in self.parts]
        )


@lru_cache(maxsize=512)
def parsed_rewrite(rewrite: str | bytes, groups: int) -> Rewrite:
    r"""A rewrite string: ``\0`` to ``\9`` stand for groups, ``\\`` for a backslash.

    Raises:
        InvalidArgumentError: for another escape, or a group that the pattern lacks.
    """
    text = as_bytes(rewrite)
    parts: list[bytes | int] = []
    for literal, escaped in re.findall(rb"([^\\]+)|\\(.?)", text, re.DOTALL):
        if literal:
            parts.append(literal)
        elif escaped == b"\\":
            parts.append(b"\\")
        elif escaped.isdigit() and int(escaped) <= groups:
            parts.append(int(escaped))
        else:
            shown, what = (t.decode("utf-8", "replace") for t in (text, escaped))
            message = f"Invalid rewrite: {shown}; \\{what} is no group of a pattern with {groups}"
            raise InvalidArgumentError(None, None, message)
    return Rewrite(tuple(parts))


def full_match(pattern: Any, string: bytes | str) -> bool:
    """Whether all of a string matches."""
    return pattern.fullmatch(as_bytes(string)) is not None


def replace(pattern: Any, rewrite: Rewrite, string: bytes | str, everywhere: bool) -> bytes:
    """A string with its first match, or all matches, replaced.

    An empty match right behind another match does not count.
    """
    text = as_bytes(string)
    pieces: list[bytes] = []
    at = 0
    last_end = -1
    for match in islice(pattern.finditer(text), None if everywhere else 1):
        start, end = match.span()
        if start == end and (start == last_end or _inside_character(text, start)):
            continue
        pieces += [text[at:start], rewrite.of(match)]
        at = last_end = end
    return b"".join([*pieces, text[at:]])


def _inside_character(text: bytes, at: int) -> bool:
    """Whether ``at`` lies between the bytes of one UTF-8 character; RE2 knows bytes only."""
    for start in range(max(at - 3, 0), at):
        size = 2 + (text[start] >= 0xE0) + (text[start] >= 0xF0)
        if text[start] >= 0xC0 and start + size > at:
            try:
                return bool(text[start : start + size].decode())
            except UnicodeDecodeError:
                continue
    return False
