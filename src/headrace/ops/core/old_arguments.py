"""Arguments under the names and in the orders of releases 0.x, each noted once in the log."""

from __future__ import annotations

from typing import Any

from headrace import logging

__all__ = [
    "concat_arguments",
    "cross_entropy_arguments",
    "note",
    "renamed",
    "reverse_axes",
    "sampled_loss_arguments",
    "split_arguments",
]

_noted: set[str] = set()


def note(old: str, new: str) -> None:
    """Log, the first time, that ``old`` is deprecated and what to say instead."""
    if old in _noted:
        return
    _noted.add(old)
    logging.warning("%s is deprecated; use %s instead.", old, new)


def concat_arguments(values: Any, axis: Any, concat_dim: Any) -> tuple[Any, Any]:
    """``(values, axis)`` of `tf.concat`, which was ``tf.concat(concat_dim, values)``.

    The values are a list; one alone stands for a list of one.

    Raises:
        TypeError: if there is no axis.
    """
    if concat_dim is not None:
        note("tf.concat(concat_dim=...)", "tf.concat(axis=...)")
        axis = concat_dim
    elif isinstance(axis, (list, tuple)) and not isinstance(values, (list, tuple)):
        note("tf.concat(axis, values)", "tf.concat(values, axis)")
        values, axis = axis, values
    if axis is None:
        raise TypeError("concat() missing 1 required positional argument: 'axis'")
    return values if isinstance(values, (list, tuple)) else [values], axis


def split_arguments(
    value: Any, splits: Any, axis: Any, split_dim: Any, num_split: Any
) -> tuple[Any, Any, Any]:
    """The first arguments of `tf.split`, which was ``tf.split(split_dim, num_split, value)``.

    Raises:
        TypeError: if the value or the splits are missing.
    """
    if split_dim is not None or num_split is not None:
        note("tf.split(split_dim=..., num_split=...)", "tf.split(value, num_or_size_splits, axis)")
        axis = axis if split_dim is None else split_dim
        splits = splits if num_split is None else num_split
    elif isinstance(value, int) and hasattr(axis, "shape"):
        note("tf.split(axis, number, value)", "tf.split(value, number, axis)")
        value, axis = axis, value
    if value is None or splits is None:
        raise TypeError("split() needs the arguments 'value' and 'num_or_size_splits'")
    return value, splits, axis


def reverse_axes(axis: Any) -> Any:
    """The axes of `tf.reverse`, which took a bool for each dimension."""
    flags = getattr(axis, "tolist", lambda: axis)()
    if isinstance(flags, (list, tuple)) and flags and all(isinstance(f, bool) for f in flags):
        note("tf.reverse(tensor, [True, False, ...])", "tf.reverse(tensor, axes)")
        return [i for i, flag in enumerate(flags) if flag]
    return axis


def cross_entropy_arguments(
    function: str, sentinel: Any, labels: Any, logits: Any
) -> tuple[Any, Any]:
    """``(labels, logits)`` of a loss that was called ``loss(logits, labels)``.

    Raises:
        ValueError: if one is missing, or one is given by position and ``logits`` by name.
    """
    if sentinel is not None:
        if logits is not None or labels is None:
            raise ValueError(
                f"Only call `{function}` with named arguments (labels=..., logits=..., ...)"
            )
        note(f"tf.nn.{function}(logits, labels)", f"tf.nn.{function}(labels=..., logits=...)")
        logits = sentinel
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
    return labels, logits


def sampled_loss_arguments(function: str, labels: Any, inputs: Any) -> tuple[Any, Any]:
    """``(labels, inputs)`` of a loss that was called with ``inputs, labels``.

    Classes are whole numbers and inputs are not, so the two orders can be told apart.
    """

    def is_whole(value: Any) -> bool:
        kind = getattr(value, "dtype", None)
        return bool(getattr(kind, "is_integer", getattr(kind, "kind", "") in ("i", "u")))

    if not is_whole(labels) and is_whole(inputs):
        order = "weights, biases, labels, inputs, ..."
        note(
            f"tf.nn.{function}(weights, biases, inputs, labels, ...)", f"tf.nn.{function}({order})"
        )
        return inputs, labels
    return labels, inputs


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has an old name too.

    Raises:
        ValueError: if both are given.
    """
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{new_name}' and '{old_name}'")
    return old
