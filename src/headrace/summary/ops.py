"""The functions of ``tf.summary`` that add ops to the graph."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import SummaryMetadata
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.state.replica_scope import is_first_replica

_UNUSABLE = re.compile(r"[^-/\w\.]")


def clean_tag(name: str | None) -> str | None:
    """``name`` with what no name of an op may have turned into underscores."""
    if name is None:
        return None
    return _UNUSABLE.sub("_", name).lstrip("/")


@contextlib.contextmanager
def summary_scope(name: str, family: str | None, default: str) -> Iterator[tuple[str, str]]:
    """(tag, name of the op): both unique in the graph.

    The scopes that are open count; ``family`` groups tags in TensorBoard, as the first part.
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of a summary is a string, not {name!r}.")
    cleaned = clean_tag(name) or default
    family = clean_tag(family)
    base = cleaned if family is None else f"{family}/{cleaned}"
    with get_default_graph().name_scope(base) as scope:
        tag = scope.rstrip("/")
        yield tag if family is None else f"{family}/{tag}", scope


def _collected(summary: Tensor, collections: Sequence[str] | None) -> Tensor:
    """The summary, in its collections; of the replicas of a strategy the first one writes."""
    if not is_first_replica():
        return constant("", dtypes.string)
    graph = get_default_graph()
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, summary)
    return summary


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A summary of one number.

    Args:
        name: the tag in TensorBoard, and the op's name.
        tensor: a scalar of a real type.
        collections: where the summary is added; by default ``GraphKeys.SUMMARIES``.
        family: puts it under this heading, before the scopes that are open.

    Returns:
        A string scalar: a serialised Summary, for ``FileWriter.add_summary``. Running it raises
        InvalidArgumentError if the value is no scalar.

    Raises:
        TypeError: if ``tensor`` is of no real type, or ``name`` is no string.
    """
    with summary_scope(name, family, "ScalarSummary") as (tag, scope):
        value = raw.ScalarSummary(np.asarray(tag.encode(), object), tensor, name=scope)
        return _collected(value, collections)


def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A summary of how ``values`` (any shape, a real type) are spread.

    Returns:
        A string scalar. Running it raises InvalidArgumentError if a value is not finite.

    Raises:
        TypeError: if ``values`` are of no real type.
    """
    with summary_scope(name, family, "HistogramSummary") as (tag, scope):
        value = raw.HistogramSummary(np.asarray(tag.encode(), object), values, name=scope)
        return _collected(value, collections)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first ``max_outputs`` images of a batch.

    Args:
        tensor: ``[batch, height, width, channels]`` with 1 (grey), 3 (RGB) or 4 channels (RGBA).
            uint8 is shown as it is. Floats are stretched: the largest becomes 255, or, where some
            are negative, 0 becomes the middle grey. Pixels that are not finite are red.

    Returns:
        A string scalar. Running it raises InvalidArgumentError if the shape is another.

    Raises:
        TypeError: if ``tensor`` is neither uint8 nor floating.
        ValueError: if ``max_outputs`` is below 1.
    """
    with summary_scope(name, family, "ImageSummary") as (tag, scope):
        value = raw.ImageSummary(
            np.asarray(tag.encode(), object), tensor, max_images=max_outputs, name=scope
        )
        return _collected(value, collections)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of sound.

    Args:
        tensor: float32 ``[batch, frames]`` or ``[batch, frames, channels]``, in [-1, 1].
        sample_rate: frames per second, a float scalar.

    Returns:
        A string scalar.

    Raises:
        ValueError: if ``max_outputs`` is below 1.
    """
    with summary_scope(name, family, "AudioSummaryV2") as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        value = raw.AudioSummaryV2(
            np.asarray(tag.encode(), object), tensor, rate, max_outputs=max_outputs, name=scope
        )
        return _collected(value, collections)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary that holds any tensor, with a SummaryMetadata that says which plugin shows it.

    Args:
        tensor: any type but resources, any shape.

    Returns:
        A serialized Summary, a string scalar.

    Raises:
        TypeError: if ``tensor`` cannot be made a tensor, ``summary_metadata`` is no SummaryMetadata
            or ``name`` no string.
    """
    metadata = SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    with summary_scope(name, family, "TensorSummary") as (tag, scope):
        value = raw.TensorSummaryV2(
            np.asarray(tag.encode(), object),
            tensor,
            np.asarray(metadata.SerializeToString(), object),
            name=scope,
        )
        return _collected(value, collections)


def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A summary of strings: a scalar, a list or a table (Markdown is rendered).

    Raises:
        ValueError: if ``tensor`` holds no strings.
    """
    tensor = convert_to_tensor(tensor)
    if tensor.dtype is not dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def merge(
    inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """One summary with the values of all ``inputs`` (string tensors).

    Returns:
        A string scalar. Running it raises InvalidArgumentError if two inputs have the same tag.

    Raises:
        ValueError: if ``inputs`` are empty.
        TypeError: if they are no list, or one of them is no string tensor.
    """
    with get_default_graph().name_scope(clean_tag(name) or "Merge"):
        value = raw.MergeSummary(list(inputs), name=name or "MergeSummary")
        graph = get_default_graph()
        for key in collections or ():
            graph.add_to_collection(key, value)
        merged: Tensor = value
        return merged


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """All summaries of a collection as one string scalar, or None if there are none.

    Args:
        scope: a regular expression; only summaries whose name begins with a match.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    found = get_default_graph().get_collection(key, scope=scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription of a node of type TensorSummary.

    Raises:
        ValueError: for a node of another type.
    """
    from google.protobuf import json_format

    from headrace.graph.proto import SummaryDescription

    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    description = node_def.attr["description"].s.decode()
    return json_format.Parse(description or "{}", SummaryDescription())
