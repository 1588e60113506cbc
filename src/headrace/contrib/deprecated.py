"""``tf.contrib.deprecated``: summaries under their names of release 0.x."""

from __future__ import annotations

from typing import Any

from headrace.api.old_names import (
    audio_summary,
    histogram_summary,
    image_summary,
    scalar_summary,
)
from headrace.summary import merge as _merge
from headrace.summary import merge_all as _merge_all

__all__ = [
    "audio_summary",
    "histogram_summary",
    "image_summary",
    "merge_all_summaries",
    "merge_summary",
    "scalar_summary",
]


def merge_summary(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """``tf.summary.merge``."""
    return _merge(inputs, collections, name)


def merge_all_summaries(key: str = "summaries") -> Any:
    """``tf.summary.merge_all``."""
    return _merge_all(key)
