"""``tf.summary``: what TensorBoard shows, and the event files that carry it."""

from __future__ import annotations

from headrace.namespaces.lazy import lazy as _lazy
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

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.graph.proto": (
            "Event",
            "SessionLog",
            "Summary",
            "SummaryDescription",
            "TaggedRunMetadata",
        )
    },
)


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
