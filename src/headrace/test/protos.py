"""Messages compared, with what differs in the failure."""

from __future__ import annotations

import difflib
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message

__all__ = ["ProtoAssertions", "ProtoEq", "assertProtoEqual"]


def ProtoEq(a: Any, b: Any) -> bool:
    """Whether two messages are equal; fields that are set to their defaults count as unset."""
    return bool(a == b) or _text(a) == _text(b)


def _text(message: Any) -> str:
    return text_format.MessageToString(message) if isinstance(message, Message) else repr(message)


def assertProtoEqual(
    self: Any,
    a: Any,
    b: Any,
    check_initialized: bool = True,
    normalize_numbers: bool = False,
    msg: str | None = None,
) -> None:
    """Fail the test case ``self`` unless two messages are equal.

    Args:
        self: a test case.
        a: a message, or the text form of one like ``b``.
        b: a message.
        check_initialized: also fail if a required field is unset.
        normalize_numbers: accepted; numbers are compared as their fields hold them.
        msg: goes before what differs.
    """
    if isinstance(a, str):
        a = text_format.Parse(a, type(b)())
    for message in (a, b):
        if check_initialized and not message.IsInitialized():
            self.fail(f"Initialization errors: {message.FindInitializationErrors()}")
    if ProtoEq(a, b):
        return
    lines = difflib.unified_diff(
        _text(a).splitlines(), _text(b).splitlines(), "expected", "actual", lineterm=""
    )
    self.fail("\n".join([*([msg] if msg else []), "The messages differ:", *lines]))


class ProtoAssertions:
    """`assertProtoEqual` as a method, for test cases."""

    def assertProtoEqual(self, *args: Any, **kwargs: Any) -> None:
        """See `assertProtoEqual`."""
        assertProtoEqual(self, *args, **kwargs)
