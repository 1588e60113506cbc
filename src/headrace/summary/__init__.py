"""``tf.summary``: what TensorBoard shows, and the event files that carry it."""

from __future__ import annotations

from typing import Any as _Any

from headrace.errors import suggest as _suggest
from headrace.summary.ops import (
    audio,
    get_summary_description,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)
from headrace.summary.writer import FileWriter, FileWriterCache

_MESSAGES = ("Event", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata")


def __getattr__(name: str) -> _Any:
    if name in _MESSAGES:
        from headrace.graph import proto

        return getattr(proto, name)
    message = f"module 'headrace.summary' has no attribute {name!r}."
    raise AttributeError(message + _suggest(name, __all__))


__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "TaggedRunMetadata",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]
