"""Regular expressions in RE2's syntax, as TensorFlow's string ops take them, on Python's engine.

Both engines prefer the leftmost alternative. What RE2 writes differently is translated: flags in
the middle of a pattern, ``$`` (the end of the text only), ``\\z``, ``\\Q...\\E``, POSIX classes.
What RE2 has not (looking around, references back) is an error here too. RE2 takes linear time on
any pattern; Python's engine may take exponential time on patterns such as ``(a+)+$``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from headrace.errors import InvalidArgumentError

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
#: Escapes that mean the same in both (``\s`` is ASCII, as re.ASCII has it).
_SAME = frozenset("dDwWsStnfrva")
_MOST_REPETITIONS = 1000


class _Invalid(Exception):
    """What RE2 does not take."""


class _Group:
    """A group that is open: ``flags`` are those set for the rest of it, as groups of Python's."""

    def __init__(self, lines: bool) -> None:
        self.flags: list[str] = []
        #: Whether ^ and $ match at lines.
        self.lines = lines


class _Translation:
    """A pattern on its way to Python's syntax; ``open`` are the groups around this place."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []
        self.open = [_Group(False)]

    def run(self) -> str:
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                self._escape()
            elif char == "[":
                self._set()
            elif char == "(":
                self._group()
            elif char == ")":
                self._close()
            elif char in "^$":
                self._assertion(r"\Z" if char == "$" and not self.open[-1].lines else char, 1)
            elif char == "|":
                flags = self.open[-1].flags
                self._emit(")" * len(flags) + "|" + "".join(flags), 1)
            elif char in "*+?{":
                self._repetition(char)
            else:
                self._emit("\\}" if char == "}" else char, 1)
        if len(self.open) != 1:
            raise _Invalid("missing ): " + self.pattern)
        return "".join(self.out) + ")" * len(self.open[0].flags)

    def _emit(self, text: str, width: int) -> None:
        self.out.append(text)
        self.at += width

    def _assertion(self, text: str, width: int) -> None:
        """What matches no characters; RE2 lets it be repeated, Python only in a group."""
        is_repeated = self.pattern[self.at + width : self.at + width + 1] in tuple("*+?{")
        self._emit(f"(?:{text})" if is_repeated else text, width)

    def _repetition(self, char: str) -> None:
        """``*``, ``+``, ``?`` and ``{n,m}``; other braces are characters."""
        counts = re.compile(r"\{(\d+)(?:,(\d*))?\}").match(self.pattern, self.at)
        if char == "{" and counts is None:
            self._emit(r"\{", 1)
            return
        text = char if counts is None else counts[0]
        if counts and max(int(n or 0) for n in counts.groups()) > _MOST_REPETITIONS:
            raise _Invalid("invalid repetition size: " + text)
        if self.pattern[self.at + len(text) : self.at + len(text) + 1] == "+":
            raise _Invalid(f"bad repetition operator: {text}+")
        self._emit(text, len(text))

    def _escape(self) -> None:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following == "Q":
            end = self.pattern.find(r"\E", self.at)
            end = len(self.pattern) if end < 0 else end
            self._emit(re.escape(self.pattern[self.at + 2 : end]), end + 2 - self.at)
        elif following in ("z", "A", "b", "B"):
            # Python's own \B does not match in an empty text.
            self._assertion({"z": r"\Z", "B": r"(?!\b)"}.get(following, "\\" + following), 2)
        else:
            self._character_escape()

    def _character_escape(self) -> None:
        rest = self.pattern[self.at : self.at + 12]
        following = rest[1:2]
        hexadecimal = re.match(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))", rest)
        octal = re.match(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", rest)
        if not following:
            raise _Invalid("trailing \\ at end of regexp: \\")
        if hexadecimal:
            code = int(hexadecimal[1] or hexadecimal[2], 16)
            if code > 0x10FFFF:
                raise _Invalid(f"invalid escape sequence: {hexadecimal[0]}")
            self._emit(re.escape(chr(code)), hexadecimal.end())
        elif octal:
            self._emit(re.escape(chr(int(octal[1], 8))), octal.end())
        elif following in "pP":
            raise _Invalid(f"\\{following} classes of Unicode are not supported: {rest}")
        elif following in _SAME:
            self._emit(rest[:2], 2)
        elif following.isascii() and following.isalnum():
            raise _Invalid(f"invalid escape sequence: {rest[:2]}")
        else:
            self._emit(re.escape(following), 2)

    def _set(self) -> None:
        """A set in brackets: POSIX classes are spelt out, all else is escaped."""
        start = self.at
        self._emit("[", 1)
        if self.pattern[self.at : self.at + 1] == "^":
            self._emit("^", 1)
        first = True
        while first or self.pattern[self.at : self.at + 1] != "]":
            first = False
            is_single = self._set_member(start)
            ahead = self.pattern[self.at : self.at + 2]
            if ahead.startswith("-") and ahead != "-]" and is_single:
                self._emit("-", 1)
                if not self._set_member(start):
                    raise _Invalid(
                        "invalid character class range: " + self.pattern[start : self.at]
                    )
        self._emit("]", 1)

    def _set_member(self, start: int) -> bool:
        """One character or class of a set; tells whether it is a character."""
        if self.at >= len(self.pattern):
            raise _Invalid("missing ]: " + self.pattern[start:])
        char = self.pattern[self.at]
        posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.at)
        if posix and (posix[1] or posix[2] not in _POSIX):
            raise _Invalid("invalid character class range: " + posix[0])
        if posix:
            self._emit(_POSIX[posix[2]], len(posix[0]))
            return False
        if char == "\\":
            following = self.pattern[self.at + 1 : self.at + 2]
            self._character_escape()
            return following not in tuple("dDwWsS")
        self._emit(re.escape(char), 1)
        return True

    def _group(self) -> None:
        special = re.compile(r"\(\?(?:P?<(\w+)>|([imsU]*)(-[imsU]+)?([:)]))").match(
            self.pattern, self.at
        )
        lines = self.open[-1].lines
        if special is None:
            if self.pattern[self.at + 1 : self.at + 2] == "?":
                raise _Invalid("invalid perl operator: " + self.pattern[self.at : self.at + 4])
            self.open.append(_Group(lines))
            self._emit("(", 1)
            return
        name, on, off, closing = special.groups()
        if name:
            self.open.append(_Group(lines))
            self._emit(f"(?P<{name}>", special.end() - self.at)
            return
        if "U" in on or "U" in (off or ""):
            raise _Invalid("the flag U is not supported: " + special[0])
        lines = ("m" in on or lines) and "m" not in (off or "")
        text = f"(?{on}{off or ''}:"
        if closing == ":":
            self.open.append(_Group(lines))
        else:  # for the rest of the group
            self.open[-1].flags.append(text)
            self.open[-1].lines = lines
        self._emit(text, special.end() - self.at)

    def _close(self) -> None:
        if len(self.open) == 1:
            raise _Invalid("unexpected ): " + self.pattern)
        self._emit(")" * (len(self.open.pop().flags) + 1), 1)


def to_text(string: bytes | str) -> str:
    """UTF-8 bytes as text; bytes that are no UTF-8 survive the way back."""
    return string if isinstance(string, str) else string.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """The reverse of ``to_text``."""
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=512)
def compiled(pattern: str | bytes) -> re.Pattern[str]:
    """A pattern in RE2's syntax, compiled.

    Raises:
        InvalidArgumentError: if it is none.
    """
    text = to_text(pattern)
    try:
        return re.compile(_Translation(text).run(), re.ASCII)
    except (_Invalid, re.error, OverflowError, RecursionError) as error:
        message = f"Invalid pattern: {text}, error: {error}"
        raise InvalidArgumentError(None, None, message) from None


class Rewrite(NamedTuple):
    """What replaces a match: texts and, for integers, groups of the match."""

    parts: tuple[str | int, ...]

    def of(self, match: re.Match[str]) -> str:
        return "".join(
            [(match[part] or "") if isinstance(part, int) else part for part in self.parts]
        )


@lru_cache(maxsize=512)
def parsed_rewrite(rewrite: str | bytes, groups: int) -> Rewrite:
    r"""A rewrite string: ``\0`` to ``\9`` stand for groups, ``\\`` for a backslash.

    Raises:
        InvalidArgumentError: for another escape, or a group that the pattern lacks.
    """
    text = to_text(rewrite)
    parts: list[str | int] = []
    for literal, escaped in re.findall(r"([^\\]+)|\\(.?)", text, re.DOTALL):
        if literal:
            parts.append(literal)
        elif escaped == "\\":
            parts.append("\\")
        elif escaped.isdecimal() and escaped.isascii() and int(escaped) <= groups:
            parts.append(int(escaped))
        else:
            message = f"Invalid rewrite: {text}; \\{escaped} is no group of a pattern with {groups}"
            raise InvalidArgumentError(None, None, message)
    return Rewrite(tuple(parts))


def full_match(pattern: re.Pattern[str], string: bytes | str) -> bool:
    """Whether all of a string matches."""
    return pattern.fullmatch(to_text(string)) is not None


def replace(
    pattern: re.Pattern[str], rewrite: Rewrite, string: bytes | str, everywhere: bool
) -> bytes:
    """A string with its first match, or all matches, replaced.

    An empty match right behind another match does not count.
    """
    text = to_text(string)
    pieces: list[str] = []
    at = 0
    last_end = -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        if start == end == last_end:
            pieces.append(text[at : at + 1])
            at += 1
            continue
        pieces += [text[at:start], rewrite.of(match)]
        at = last_end = end
        if not everywhere:
            break
    return to_bytes("".join([*pieces, text[at:]]))
