"""``tf.contrib.losses``: the losses of release 0.x, predictions first.

Weights may have fewer dimensions than the losses: each then counts for all elements of an example.
"""

from __future__ import annotations

from typing import Any

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.framework.arg_scope import add_arg_scope
from headrace.graph import dtypes
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.losses import add_loss as _add_loss
from headrace.losses import get_losses as get_losses
from headrace.losses import get_regularization_losses as get_regularization_losses
from headrace.losses import get_total_loss as _get_total_loss
from headrace.ops.array.api import reshape, shape, squeeze
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import one_of, reduce_sum
from headrace.ops.nn import softmax
from headrace.ops.state.scopes_api import name_scope

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


@add_arg_scope
def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Add a loss, of any shape, to a collection; to none if that is None.

    Raises:
        RuntimeError: if the graph is finalized.
    """
    _add_loss(loss, loss_collection)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of all losses, a scalar.

    Raises:
        ValueError: if there are none.
    """
    return _get_total_loss(add_regularization_losses, name)


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Tensor:
    """The weighted sum of the losses, divided by the number of those with a weight other than 0.

    Raises:
        ValueError: if a rank is not known, or weights do not fit.
    """
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        values = cast(losses, dtypes.float32)
        factors = cast(convert_to_tensor(weights), dtypes.float32)
        if values.shape.rank is None:
            raise ValueError("losses.get_shape().ndims cannot be None")
        if factors.shape.rank is None:
            raise ValueError("weights.get_shape().ndims cannot be None")
        if len(factors.shape) > 1 and factors.shape.as_list()[-1] in (None, 1):
            factors = squeeze(factors, [-1])
        if len(factors.shape) > len(values.shape):
            raise ValueError(
                f"weights have shape {factors.shape}, which does not fit the losses' {values.shape}"
            )
        if len(factors.shape) > 0:
            missing = len(values.shape) - len(factors.shape)
            factors = reshape(factors, [*_sizes(factors), *[1] * missing])
        total = reduce_sum(raw.Mul(values, factors))
        ones = raw.Mul(cast(raw.NotEqual(factors, 0.0), dtypes.float32), raw.OnesLike(values))
        mean = raw.DivNoNan(total, reduce_sum(ones), name="value")
        result: Tensor = cast(mean, dtype)
        add_loss(result)
        return result


def _sizes(tensor: Tensor) -> list[Any]:
    dynamic = shape(tensor)
    return [dynamic[i] if n is None else n for i, n in enumerate(tensor.shape.as_list())]


def _pair(predictions: Any, labels: Any) -> tuple[Tensor, Tensor]:
    if labels is None:
        raise ValueError("labels must not be None.")
    values, truth = cast(predictions, dtypes.float32), cast(labels, dtypes.float32)
    values.shape.assert_is_compatible_with(truth.shape)
    return values, truth


@add_arg_scope
def absolute_difference(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """``|predictions - labels|``.

    Args:
        predictions, labels: numbers of the same shape.
        weights: a scalar, or one for each example or element.

    Returns:
        The weighted mean, a float32 scalar.

    Raises:
        ValueError: if shapes differ, ``labels`` are None, or ``weights`` do not fit.
    """
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        values, truth = _pair(predictions, labels)
        return compute_weighted_loss(raw.Abs(raw.Sub(values, truth)), weights, scope=scope)


@add_arg_scope
def mean_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """``(predictions - labels) ** 2``.

    Args:
        predictions, labels: numbers of the same shape.
        weights: a scalar, or one for each example or element.

    Returns:
        The weighted mean, a float32 scalar.

    Raises:
        ValueError: if shapes differ, ``labels`` are None, or ``weights`` do not fit.

    >>> loss = tf.contrib.losses.mean_squared_error([[1.0, 2.0]], [[0.0, 4.0]])
    >>> float(Session().run(loss))
    2.5
    """
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        values, truth = _pair(predictions, labels)
        return compute_weighted_loss(raw.SquaredDifference(values, truth), weights, scope=scope)


@add_arg_scope
def log_loss(
    predictions: Any,
    labels: Any = None,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
) -> Tensor:
    """The negative log of the probability that ``predictions`` give to ``labels``.

    Args:
        predictions, labels: numbers of the same shape.
        weights: a scalar, or one for each example or element.

    Returns:
        The weighted mean, a float32 scalar.

    Raises:
        ValueError: if shapes differ, ``labels`` are None, or ``weights`` do not fit.
    """
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        values, truth = _pair(predictions, labels)
        of_one = raw.Mul(truth, raw.Log(values + epsilon))
        of_zero = raw.Mul(1.0 - truth, raw.Log(1.0 - values + epsilon))
        return compute_weighted_loss(raw.Sub(raw.Neg(of_one), of_zero), weights, scope=scope)


@add_arg_scope
def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Tensor:
    """``max(0, 1 - y * logits)`` of each element, not reduced, for labels 0 and 1.

    Raises:
        ValueError: if the shapes differ, or ``labels`` are None.
    """
    with name_scope(scope, "hinge_loss", [logits, labels]):
        values, truth = _pair(logits, labels)
        ones = raw.OnesLike(truth)
        signs = raw.Sub(2.0 * truth, ones)
        result: Tensor = raw.Relu(raw.Sub(ones, raw.Mul(signs, values)))
        return result


@add_arg_scope
def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """The mean squared difference of the differences of pairs of elements of an example.

    ``weights`` are a number or ``[batch]``. Pairs of an element with itself count too.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: if the shapes differ, ``labels`` are None, or ``weights`` do not fit.
    """
    given = [predictions, labels, weights]
    with name_scope(scope, "mean_pairwise_squared_error", given):
        values, truth = _pair(predictions, labels)
        differences = raw.Sub(values, truth)
        factors = cast(convert_to_tensor(weights), dtypes.float32)
        axes = list(range(1, len(differences.shape)))
        squares = reduce_sum(raw.Square(differences), axes)
        present = cast(raw.NotEqual(factors, 0.0), dtypes.float32)
        count = raw.Mul(present, reduce_sum(raw.OnesLike(differences), axes))
        first = 2.0 * raw.DivNoNan(squares, count)
        sums = raw.Square(reduce_sum(differences, axes))
        second = 2.0 * raw.DivNoNan(sums, raw.Square(count))
        loss: Tensor = reduce_sum(raw.Mul(first - second, factors), name="value")
        add_loss(loss)
        return loss


@add_arg_scope
def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """One less the inner product along ``axis`` of vectors of length 1.

    Returns:
        The weighted mean, a float32 scalar.

    Raises:
        ValueError: if no axis is given, the shapes differ, ``labels`` are None, or ``weights`` do
            not fit.
    """
    axis = one_of("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        values, truth = _pair(predictions, labels)
        losses = 1.0 - reduce_sum(raw.Mul(values, truth), [axis])
        return compute_weighted_loss(losses, weights, scope=scope)


@add_arg_scope
def sigmoid_cross_entropy(
    logits: Any,
    multi_class_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:
    """Cross entropy of labels that do not exclude each other.

    Args:
        logits, multi_class_labels: ``[batch, classes]``.
        weights: a scalar, or ``[batch]``, or one for each element.
        label_smoothing: how far labels are moved towards 1/2, from 0 to 1.

    Returns:
        The weighted mean, a scalar of the type of ``logits``.

    Raises:
        ValueError: if the shapes differ, or ``weights`` do not fit.
    """
    given = [logits, multi_class_labels, weights]
    with name_scope(scope, "sigmoid_cross_entropy_loss", given) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = softmax.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope=scope)


@add_arg_scope
def softmax_cross_entropy(
    logits: Any,
    onehot_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:
    """Cross entropy of labels that are distributions over classes.

    Args:
        logits, onehot_labels: ``[batch, classes]``.
        weights: a scalar, or ``[batch]``.
        label_smoothing: how far labels are moved towards 1/classes, from 0 to 1.

    Returns:
        The weighted mean, a scalar of the type of ``logits``.

    Raises:
        ValueError: if the shapes differ, or ``weights`` do not fit.
    """
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = cast(shape(labels)[1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        losses = softmax.softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope=scope)


@add_arg_scope
def sparse_softmax_cross_entropy(
    logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None
) -> Tensor:
    """Cross entropy of class numbers (of shape ``[batch]`` or ``[batch, 1]``).

    Raises:
        ValueError: if ``logits`` have another number of rows, or ``weights`` do not fit.
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels = reshape(labels, [-1])
        losses = softmax.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope=scope)


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
