"""What a head is given, checked: labels, logits, weights, loss functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import headrace as tf
from headrace.errors import suggest
from headrace.estimator.callables import argument_names
from headrace.graph.tensor import Tensor

__all__ = [
    "call_loss_fn",
    "check_classes",
    "check_label_range",
    "check_loss_fn",
    "check_reduction",
    "check_thresholds",
    "check_vocabulary",
    "checked_labels",
    "checked_logits",
    "example_weights",
    "required_labels",
    "weighted_loss",
]

#: Names of the second generation (`tf.keras.losses.Reduction`) by those of `tf.losses.Reduction`.
_REDUCTIONS = {
    "sum": "weighted_sum",
    "sum_over_batch_size": "weighted_sum_over_batch_size",
}


def check_reduction(reduction: Any) -> str:
    """The reduction under its name in `tf.losses.Reduction`.

    Raises:
        ValueError: if it is none, or leaves losses unreduced.
    """
    name = _REDUCTIONS.get(reduction, reduction)
    valid = [r for r in tf.losses.Reduction.all() if r != tf.losses.Reduction.NONE]
    if name not in valid:
        raise ValueError(
            f"Invalid loss_reduction: {reduction}. Expected one of "
            f"{', '.join(map(repr, dict.fromkeys([*_REDUCTIONS, *valid])))}."
        )
    return str(name)


def check_loss_fn(loss_fn: Callable[..., Any] | None) -> None:
    """Raise ValueError unless the function takes labels and logits, and nothing unknown."""
    if loss_fn is None:
        return
    names = argument_names(loss_fn)
    for required in ("labels", "logits"):
        if required not in names:
            raise ValueError(
                f"loss_fn must contain argument: {required}. Given arguments: {tuple(names)}"
            )
    others = sorted(set(names) - {"labels", "logits", "features", "loss_reduction", "self"})
    if others:
        raise ValueError(f"loss_fn has unexpected args: {others}")


def check_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Thresholds between 0 and 1, without these."""
    found = tuple(thresholds) if thresholds else ()
    for threshold in found:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"thresholds must be in (0, 1) range. Given: {threshold}")
    return found


def check_classes(n_classes: Any) -> None:
    """Raise ValueError unless it is a whole number above 2."""
    whole = isinstance(n_classes, (int, np.integer)) and not isinstance(n_classes, bool)
    if not whole or n_classes <= 2:
        raise ValueError(
            f"n_classes must be > 2: {n_classes}. For two classes it is 2 in a classifier, and the "
            "head is a BinaryClassHead."
        )


def check_vocabulary(vocabulary: Any, n_classes: int | None = None) -> Any:
    """The names of classes: None, a list or a tuple with one for each."""
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(
            f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}"
        )
    if n_classes is not None and len(vocabulary) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must be n_classes ({n_classes}). "
            f"Given: {len(vocabulary)}, {list(vocabulary)}"
        )
    return tuple(vocabulary)


def required_labels(labels: Any) -> Any:
    """The labels; ValueError if there are none."""
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: "
            "Check that your data contains your label feature. Check that your input_fn properly "
            "parses and returns labels."
        )
    return labels


def checked_labels(labels: Any, logits: Tensor, dimension: int) -> Tensor:
    """Labels of shape ``[D0, ..., DN, dimension]`` for logits of shape ``[D0, ..., DN, any]``.

    Raises:
        ValueError: if labels are missing, sparse or of another shape.
        InvalidArgumentError: when run, if the shape is known only then and does not fit.
    """
    labels = required_labels(labels)
    if isinstance(labels, Mapping):
        raise ValueError(
            f"labels must be one tensor, here they are a dictionary with {sorted(labels)}. Only a "
            "multi-head takes labels by name."
        )
    if isinstance(labels, tf.SparseTensor):
        raise ValueError(
            "SparseTensor labels are not supported. labels must be a Tensor of shape "
            f"[D0, D1, ..., DN, {dimension}], e.g. [batch_size, {dimension}]. Suggested Fix (1): "
            "Check the label feature in your data. Each example must contain "
            f"{dimension} value(s). Suggested Fix (2): In your input_fn, use "
            "tf.sparse_tensor_to_dense() to turn labels into a Tensor."
        )
    with tf.name_scope(None, "labels", (labels, logits)):
        given: Tensor = tf.convert_to_tensor(labels)
        rank, wanted = given.shape.ndims, logits.shape.ndims
        if rank is not None and wanted is not None and rank == wanted - 1:
            given = tf.expand_dims(given, -1)
        _check_label_shape(given, logits, dimension)
        expected = tf.concat([tf.shape(logits)[:-1], [dimension]], 0)
        if _fits(given, logits, dimension):
            return given
        check = tf.assert_equal(
            expected,
            tf.shape(given),
            message=f"labels shape must be [D0, D1, ... DN, {dimension}], as that of the logits. "
            "Suggested Fix: check your n_classes argument to the estimator and/or the shape of "
            "your label.",
        )
        with tf.control_dependencies([check]):
            return tf.identity(given)


def _check_label_shape(labels: Tensor, logits: Tensor, dimension: int) -> None:
    shape = labels.shape
    if shape.ndims is None:
        return
    if shape.ndims < 2:
        raise ValueError(
            f"labels shape must be [D0, D1, ... DN, {dimension}], got {shape} for logits of shape "
            f"{logits.shape}. Suggested Fix: check your n_classes argument to the estimator "
            "and/or the shape of your label."
        )
    last = shape[-1].value
    if last is not None and last != dimension:
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={dimension}.  Received {last} "
            f"(labels have shape {shape}). Suggested Fix: If your classifier expects one-hot "
            "encoding label, check your n_classes argument to the estimator and/or the shape of "
            "your label. Otherwise, check the shape of your label."
        )


def _fits(labels: Tensor, logits: Tensor, dimension: int) -> bool:
    """Whether the shapes are known to fit."""
    if not logits.shape.ndims or labels.shape.ndims is None:
        return False
    known = [d.value for d in logits.shape[:-1]] + [dimension]
    return None not in known and labels.shape.as_list() == known


def checked_logits(logits: Any, dimension: int) -> Tensor:
    """Float logits of shape ``[D0, ..., DN, dimension]``.

    Raises:
        ValueError: if the shape is another.
    """
    with tf.name_scope(None, "logits", (logits,)):
        found: Tensor = tf.to_float(logits)
        rank = found.shape.ndims
        message = "logits shape must be [D0, D1, ... DN, logits_dimension]"
        if rank is not None and rank < 2:
            raise ValueError(f"{message}, got {found.shape}.")
        last = found.shape[-1].value if rank is not None else None
        if last is not None:
            if last != dimension:
                raise ValueError(
                    f"{message}, got {found.shape}. The head's logits_dimension is {dimension}."
                )
            return found
        check = tf.assert_equal(dimension, tf.shape(found)[-1], message=message)
        with tf.control_dependencies([check]):
            return tf.identity(found)


def check_label_range(
    labels: Tensor, n_classes: int, message: str | None = None, vocabulary: Any = None
) -> Tensor:
    """The labels, which are 0 to ``n_classes`` - 1 when run; names of the ``vocabulary`` before."""
    if vocabulary is not None:
        shown = ", ".join(map(repr, vocabulary[:10])) + (", ..." if len(vocabulary) > 10 else "")
        message = f"Labels must be in label_vocabulary ({shown}), others are -1 here"
    with tf.name_scope(None, "assert_range", (labels,)):
        top = tf.constant(n_classes - 1, dtype=labels.dtype)
        hint = f"; n_classes is {n_classes}, so labels are 0 to {n_classes - 1}."
        checks = [
            tf.assert_less_equal(
                labels, top, message=(message or "Labels must be <= n_classes - 1") + hint
            ),
            tf.assert_non_negative(labels, message=(message or "Labels must be >= 0") + hint),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(labels)


def call_loss_fn(
    loss_fn: Callable[..., Any], labels: Tensor, logits: Tensor, features: Any, dimension: int
) -> Tensor:
    """The losses of the function, whose shape is that of the logits but for ``dimension``."""
    given: dict[str, Any] = {}
    if "features" in argument_names(loss_fn):
        given["features"] = features
    with tf.name_scope(None, "call_loss_fn", [labels, logits]):
        losses = tf.convert_to_tensor(loss_fn(labels=labels, logits=logits, **given))
        expected = tf.concat([tf.shape(logits)[:-1], [dimension]], 0)
        found = losses.shape
        if found.ndims is not None and logits.shape.ndims not in (None, found.ndims):
            raise ValueError(
                f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}], got {found} "
                f"for logits of shape {logits.shape}."
            )
        check = tf.assert_equal(
            expected,
            tf.shape(losses),
            message=f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}].",
        )
        with tf.control_dependencies([check]):
            return tf.identity(losses)


def example_weights(
    features: Any, column: Any, logits: Tensor, per_logit: bool = False
) -> Tensor | float:
    """The weights of the examples, shape ``[D0, ..., DN, 1]`` (or that of the logits); 1.0 if none.

    Raises:
        ValueError: if the features have no such column, or it is no number.
        TypeError: if the column is neither a name nor a numeric column.
    """
    if column is None:
        return 1.0
    key = column if isinstance(column, str) else getattr(column, "key", None)
    if not isinstance(key, str):
        raise TypeError(
            f"Weight column must be either a string or NumericColumn. Given type: {type(column)}."
        )
    weights = _column_values(features, key)
    if not (weights.dtype.is_floating or weights.dtype.is_integer):
        raise ValueError(
            f"Weight column {key!r} should be castable to float. Given dtype: {weights.dtype.name}"
        )
    with tf.name_scope(None, "weights", (logits,)):
        weights = tf.to_float(weights)
        normalizer = getattr(column, "normalizer_fn", None)
        if normalizer is not None:
            weights = normalizer(weights)
        return _weights_for(weights, logits, key, per_logit)


def _column_values(features: Any, key: str) -> Tensor:
    if not isinstance(features, Mapping):
        raise ValueError(
            f"A weight_column ({key!r}) needs features in a dictionary; given {type(features)}."
        )
    if key not in features:
        raise ValueError(
            f"Missing weight_column {key!r}: features has only {sorted(map(str, features))}."
            f"{suggest(key, [str(name) for name in features])}"
        )
    weights = tf.convert_to_tensor(features[key])
    return tf.expand_dims(weights, -1) if weights.shape.ndims == 1 else weights


def _weights_for(weights: Tensor, logits: Tensor, key: str, per_logit: bool) -> Tensor:
    rank, wanted = weights.shape.ndims, logits.shape.ndims
    if rank is not None and wanted is not None and rank == wanted - 1:
        weights = tf.expand_dims(weights, -1)
    shapes: Sequence[str] = ["[D0, D1, ... DN]", "[D0, D1, ... DN, 1]"]
    if per_logit:
        shapes = [*shapes, "[D0, D1, ... DN, logits_dimension]"]
    message = f"weights shape must be {' or '.join(shapes)}; weight_column is {key!r}."
    sizes = tf.shape(logits)
    last = weights.shape[-1].value if weights.shape.ndims else None
    single = tf.concat([sizes[:-1], [1]], 0)
    allowed = sizes if per_logit and last not in (None, 1) else single
    if per_logit and last is None:
        allowed = tf.concat([sizes[:-1], tf.shape(weights)[-1:]], 0)
    found = weights.shape
    if found.ndims not in (None, logits.shape.ndims) and logits.shape.ndims is not None:
        raise ValueError(f"{message} Its shape is {found}, that of the logits {logits.shape}.")
    check = tf.assert_equal(allowed, tf.shape(weights), message=message)
    with tf.control_dependencies([check]):
        return tf.identity(weights)


def weighted_loss(losses: Tensor, weights: Any, reduction: str) -> Tensor:
    """The losses times the weights, reduced to a scalar."""
    return tf.losses.compute_weighted_loss(losses, weights=weights, reduction=reduction)
