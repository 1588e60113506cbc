"""Protocol messages in text form."""

from __future__ import annotations

import re
from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

_M = TypeVar("_M", bound=Message)

#: A string or a comment of a text; which characters a backslash may stand before is not looked at.
_STRING = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
#: What may follow a backslash (protobuf's text format, "String literals"): octal up to a byte.
#: Python's protobuf does not know `\?` and `\X`, which nothing writes.
_ESCAPE = re.compile(
    r"""\\([abfnrtv\\'"]|[0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7])|x[0-9a-fA-F]"""
    r"""|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
)


def parse_text(data: bytes | str, message: _M) -> _M:
    """Fill a message from its text form.

    Python's protobuf keeps a backslash before a character that has no meaning there and warns of
    it; the text format has no such escape, and C++ refuses it.

    Args:
        data: the text, in UTF-8 if bytes.
        message: what is filled.

    Returns:
        The message.

    Raises:
        text_format.ParseError: if the text is no such message; it names the line.
        UnicodeDecodeError: if the bytes are no text.
    """
    text = data.decode() if isinstance(data, bytes) else data
    if "\\" in text:
        _check_escapes(text)
    return text_format.Parse(text, message)


def _check_escapes(text: str) -> None:
    for string in _STRING.finditer(text):
        if string.group()[0] == "#":
            continue
        at, end = string.start() + 1, string.end() - 1
        while (at := text.find("\\", at, end)) >= 0:
            found = _ESCAPE.match(text, at, end)
            if found is None:
                line = text.count("\n", 0, at) + 1
                column = at - text.rfind("\n", 0, at)
                raise text_format.ParseError(
                    f"Invalid escape sequence {text[at : at + 4]!r} in a string: a backslash "
                    "itself is written as two.",
                    line,
                    column,
                )
            at = found.end()
