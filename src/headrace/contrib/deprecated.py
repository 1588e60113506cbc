"""``tf.contrib.deprecated``: summaries under their names of release 0.x."""

from __future__ import annotations

from typing import Any

from headrace import summary as _summaries
from headrace.ops.core.static import static_value as _static_value
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
    """``tf.summary.merge``: several summaries, strings of any shape, as one scalar string.

    Raises:
        TypeError: if ``inputs`` is no list of strings.
        ValueError: if it is empty.
    """
    return _merge(inputs, collections, name)


def merge_all_summaries(key: str = "summaries") -> Any:
    """``tf.summary.merge_all``: all summaries of a collection as a scalar string, or None.

    Raises:
        TypeError: if the collection holds something that is no string.
    """
    return _merge_all(key)


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    """`tf.summary.scalar` of one tag.

    Raises:
        TypeError: if there are several tags, or the value is no real number.
        ValueError: if the value is no scalar.
    """
    return _summary("scalar", tags, values, collections)


def histogram_summary(
    tag: Any, values: Any, collections: Any = None, name: str | None = None
) -> Any:
    """`tf.summary.histogram` under its old name: of a tensor of any shape, a scalar string.

    Raises:
        TypeError: if there are several tags, or the values are no real numbers.
    """
    return _summary("histogram", tag, values, collections)


def image_summary(
    tag: Any,
    tensor: Any,
    max_images: int = 3,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.summary.image` with the argument names of old.

    ``tensor``: images ``[batch, height, width, channels]``.

    Raises:
        TypeError: if there are several tags, or the images are neither floating nor uint8.
        ValueError: if the rank is not 4, there are not 1, 3 or 4 channels, or ``max_images`` is
            below 1.
    """
    return _summary("image", tag, tensor, collections, max_outputs=max_images)


def audio_summary(
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.summary.audio` with the argument order of old.

    ``tensor``: sound ``[batch, frames]`` or ``[batch, frames, channels]``.

    Raises:
        TypeError: if there are several tags, or ``sample_rate`` is no number.
        ValueError: if the rank is neither 2 nor 3, or ``max_outputs`` is below 1.
    """
    return _summary(
        "audio", tag, tensor, collections, sample_rate=sample_rate, max_outputs=max_outputs
    )


def _summary(kind: str, tag: Any, tensor: Any, collections: Any, **options: Any) -> Any:
    """Old summaries have their tag as it is; today's have it from the operation's name.

    Raises:
        TypeError: if the tag is no string, or a list of one.
    """
    if hasattr(tag, "op"):
        tag = _static_value(tag)
        tag = None if tag is None or getattr(tag, "size", 1) != 1 else tag.item()
    if isinstance(tag, (list, tuple)) and len(tag) == 1:
        (tag,) = tag
    if isinstance(tag, bytes):
        tag = tag.decode()
    if not isinstance(tag, str):
        raise TypeError(
            f"tf.{kind}_summary takes one tag that is known while the graph is built, got {tag!r}. "
            f"Use tf.summary.{kind}, once for each value."
        )
    return getattr(_summaries, kind)(tag, tensor, collections=collections, **options)
