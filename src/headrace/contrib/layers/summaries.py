"""Summaries of tensors, by kind."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.build import constant, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import reduce_mean
from headrace.summary import histogram, scalar


def _checked(tensor: Any) -> Any:
    """``tensor``. Raises TypeError unless it is part of a graph."""
    if not hasattr(tensor, "op"):
        raise TypeError(
            f"A summary is of a tensor or a variable, got {tensor!r:.100}. Make it one with "
            "tf.convert_to_tensor."
        )
    return tensor


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar or histogram summary of a tensor, as its shape says; None for strings and bools.

    Raises:
        TypeError: if it is neither a tensor nor a variable.
    """
    _checked(tensor)
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.bool):
        return None
    tag = tag or f"{tensor.op.name}_summary"
    return scalar(tag, tensor) if tensor.shape.rank == 0 else histogram(tag, tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram, a scalar string, of an activation; of rectifiers the part that is cut off too.

    Raises:
        TypeError: if it is no tensor, or one of strings or bools.
    """
    kind = _checked(op).op.type
    if kind in ("Relu", "Softplus", "Relu6"):
        _part(op, raw.Less, 0.0, "zeros")
    if kind == "Relu6":
        _part(op, raw.Greater, 6.0, "sixes")
    return histogram(f"{op.op.name}/activation", op)


def _part(op: Any, compare: Callable[..., Any], limit: float, what: str) -> None:
    before = op.op.inputs[0]
    beyond = compare(before, constant(limit, before.dtype))
    scalar(f"{op.op.name}/{what}", reduce_mean(cast(beyond, dtypes.float32)))


def summarize_tensors(
    tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """A summary, a scalar string, of each tensor.

    Raises:
        TypeError: if ``tensors`` is no list, or the summarizer refuses one of them.
    """
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str,
    name_filter: str | None = None,
    summarizer: Callable[[Any], Any] = summarize_tensor,
) -> list[Any]:
    """A summary, a scalar string, of each tensor of a collection.

    ``name_filter`` is a regular expression for the start of its name.

    Raises:
        TypeError: if the summarizer refuses one of them.
        re.error: if ``name_filter`` is no regular expression and the collection is not empty.
    """
    found = get_default_graph().get_collection(collection)
    chosen = [t for t in found if name_filter is None or re.match(name_filter, t.op.name)]
    return summarize_tensors(chosen, summarizer)


summarize_variables = functools.partial(summarize_collection, GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, GraphKeys.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, GraphKeys.BIASES)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """A summary, a scalar string, of each tensor of the collection ``ACTIVATIONS``.

    Raises:
        TypeError: if the summarizer refuses one of them.
        re.error: if ``name_filter`` is no regular expression and the collection is not empty.
    """
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)


__all__ = [
    "summarize_activation",
    "summarize_activations",
    "summarize_biases",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "summarize_variables",
    "summarize_weights",
]
