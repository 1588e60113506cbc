"""``tf.losses``: what a model is trained to make small.

Each function weighs the losses of all elements, reduces them as ``reduction`` says, adds the
result to the collection ``LOSSES`` and returns it. Weights are a number or have the rank of the
losses, each dimension 1 or that of the losses.
"""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import rank, shape, squeeze
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.math.cumulative import range as range_op
from headrace.ops.math.nary import add_n
from headrace.ops.math.reduction_api import one_of, reduce_sum
from headrace.ops.nn import softmax
from headrace.ops.nn.weights import (
    assert_broadcastable,
    broadcast_weights,
    remove_squeezable_dimensions,
)
from headrace.ops.state.replica_scope import LAST_LOSS_REDUCTION
from headrace.ops.state.scopes_api import control_dependencies, name_scope


class Reduction:
    """How the losses of the elements become one scalar.

    Raises:
        ValueError: from ``validate``, for a key that is none of these.

    >>> with tf.Session() as session:
    ...     total = tf.losses.absolute_difference([0.0, 0.0], [1.0, 2.0], reduction="weighted_sum")
    ...     float(session.run(total)), tf.losses.Reduction.SUM
    (3.0, 'weighted_sum')
    """

    #: They do not: the result has the shape of the losses.
    NONE = "none"
    SUM = "weighted_sum"
    #: The sum divided by the number of elements.
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    #: The sum divided by the sum of the weights.
    MEAN = "weighted_mean"
    #: The sum divided by the number of elements whose weight is not 0.
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them, the keys of how losses of any shape are reduced."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: Any) -> None:
        """Check that ``key`` is one of them.

        Raises:
            ValueError: unless it is.
        """
        if key not in cls.all():
            raise ValueError(
                f"Invalid Reduction Key {key}: it must be one of {', '.join(sorted({*cls.all()}))}."
            )


# -- the collections ----------------------------------------------------------------------------


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Add a loss, of any shape, to a collection; to none if that is None.

    Raises:
        RuntimeError: if the graph is finalized.
    """
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection whose names match ``scope``, scalars or of any shape.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses that regularisers made, scalars or of any shape, whose names match ``scope``.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Any:
    """The sum of the losses that regularisers made; the scalar 0 if there are none.

    Raises:
        ValueError: if their shapes differ.
    """
    losses = get_regularization_losses(scope)
    return add_n(losses, name=name) if losses else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Any:
    """The sum of the losses in the collections, in their shape (scalars, as a rule).

    Raises:
        ValueError: if there are none, or their shapes differ.
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses += get_regularization_losses(scope)
    return add_n(losses, name=name)


# -- weights ------------------------------------------------------------------------------------


def _present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Any:
    """How many elements have a weight other than 0: in all, or of each example."""
    with name_scope(None, "num_present", (losses, weights)) as scope:
        ones, zeros = raw.OnesLike(weights), raw.ZerosLike(weights)
        present = raw.Select(raw.Equal(weights, constant(0.0)), zeros, ones)
        present = broadcast_weights(present, losses)
        if per_batch:
            axes = range_op(1, rank(present))
            return reduce_sum(present, axes, keepdims=True, name=scope)
        return reduce_sum(present, name=scope)


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The losses times the weights, reduced.

    Args:
        losses: numbers of any shape.
        weights: a number, or of the rank of the losses, each dimension 1 or that of the losses.
        reduction: see `Reduction`.

    Returns:
        A scalar of the type of the losses; without reduction, of their shape.

    Raises:
        ValueError: if the reduction is unknown, or the weights do not fit the losses.
        InvalidArgumentError: when run, if weights of a shape known only then do not fit.

    >>> with tf.Session() as session:
    ...     float(session.run(compute_weighted_loss([1.0, 2.0, 6.0], [1.0, 1.0, 0.0])))
    1.5
    """
    Reduction.validate(reduction)
    get_default_graph().get_collection_ref(LAST_LOSS_REDUCTION)[:] = [reduction]
    with (
        name_scope(scope, "weighted_loss", (losses, weights)),
        control_dependencies((assert_broadcastable(weights, losses),)),
    ):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        losses = cast(losses, dtypes.float32)
        weights = cast(weights, dtypes.float32)
        weighted = raw.Mul(losses, weights)
        loss = weighted if reduction == Reduction.NONE else reduce_sum(weighted)
        count: Any = None
        if reduction == Reduction.MEAN:
            count = reduce_sum(raw.Mul(raw.OnesLike(weighted), weights))
        elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
            count = _present(weighted, weights)
        elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
            with name_scope(None, "num_elements", [weighted]) as inner:
                count = raw.Cast(raw.Size(weighted), DstT=dtypes.float32, name=inner)
        if count is not None:
            loss = raw.DivNoNan(loss, count, name="value")
        result: Tensor = cast(loss, dtype)
        add_loss(result, loss_collection)
        return result


def _pair(labels: Any, predictions: Any, what: str = "predictions") -> tuple[Tensor, Tensor]:
    """Predictions and labels as float32 of one shape.

    Raises:
        ValueError: if their static shapes cannot be equal.
    """
    values = cast(predictions, dtypes.float32)
    truth = cast(labels, dtypes.float32)
    values.shape.assert_is_compatible_with(truth.shape)
    return values, truth


def _given(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


# -- differences --------------------------------------------------------------------------------


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``|predictions - labels|``, elementwise, weighed and reduced by `compute_weighted_loss`.

    Args:
        labels, predictions: numbers of one shape.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
        InvalidArgumentError: when run, if weights of a shape known only then do not fit.
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", (predictions, labels, weights)) as scope:
        values, truth = _pair(labels, predictions)
        losses = raw.Abs(raw.Sub(values, truth))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``(predictions - labels) ** 2``, elementwise, weighed and reduced by `compute_weighted_loss`.

    Args:
        labels, predictions: numbers of one shape.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
        InvalidArgumentError: when run, if weights of a shape known only then do not fit.

    >>> import headrace as tf
    >>> with tf.Session() as session:
    ...     float(session.run(tf.losses.mean_squared_error([1.0, 2.0], [1.0, 4.0])))
    2.0
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as scope:
        values, truth = _pair(labels, predictions)
        losses = raw.SquaredDifference(values, truth)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Half the squared difference up to ``delta``, linear beyond, elementwise.

    Huber, "Robust estimation of a location parameter" (1964). Arguments and shapes are those of
    `mean_squared_error`.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.

    >>> with tf.Session() as session:
    ...     float(session.run(huber_loss([0.0], [3.0])))
    2.5
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", (predictions, labels, weights)) as scope:
        values, truth = _pair(labels, predictions)
        error = raw.Abs(raw.Sub(values, truth))
        quadratic = raw.Minimum(error, delta)
        linear = raw.Sub(error, quadratic)
        losses = raw.AddV2(
            raw.Mul(constant(0.5), raw.Mul(quadratic, quadratic)), raw.Mul(delta, linear)
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
) -> Tensor:
    """The mean squared difference, over pairs of elements of an example, of their differences.

    Args:
        labels, predictions: ``[batch, ...]`` of one shape.
        weights: a number, ``[batch]`` or ``[batch, 1, ...]``.

    Returns:
        A float32 scalar.

    Raises:
        ValueError: if one is None, or the shapes differ or do not fit the weights.
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)) as scope:
        weights = cast(weights, dtypes.float32)
        truth = cast(labels, dtypes.float32)
        with control_dependencies((assert_broadcastable(weights, truth),)):
            values, truth = _pair(truth, predictions)
            differences = raw.Sub(values, truth)
            axes = range_op(1, rank(differences))
            squares = reduce_sum(raw.Square(differences), axes, keepdims=True)
            present = _present(differences, weights, per_batch=True)
            others = raw.Maximum(present - 1.0, constant(0.0))
            first = 2.0 * raw.DivNoNan(squares, others, name="value")
            sums = reduce_sum(differences, axes, keepdims=True)
            pairs = raw.Maximum(raw.Mul(present, present - 1.0), constant(0.0))
            second = 2.0 * raw.DivNoNan(raw.Square(sums), pairs, name="value")
            total = reduce_sum(raw.Mul(first - second, weights))
            some = raw.Greater(reduce_sum(present), constant(0.0))
            loss: Tensor = raw.Select(some, total, raw.ZerosLike(total), name="value")
            add_loss(loss, loss_collection)
            return loss


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """One less the inner product along ``axis`` of vectors that already have length 1.

    Args:
        labels, predictions: numbers of one shape; their losses have size 1 in dimension ``axis``.
        dim: the old name of ``axis``.

    Raises:
        ValueError: if one is None, ``axis`` is none or is given by both names, the shapes differ,
            or weights or reduction do not fit.
    """
    axis = one_of("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as scope:
        values, truth = _pair(labels, predictions)
        losses = 1.0 - reduce_sum(raw.Mul(values, truth), [axis], keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


# -- classification -----------------------------------------------------------------------------


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """``max(0, 1 - y * logits)`` where ``y`` is -1 or 1 for labels 0 or 1, elementwise.

    The loss of support vector machines: Cortes and Vapnik, "Support-vector networks" (1995).

    Arguments and shapes are those of `mean_squared_error`.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
    """
    _given(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", (logits, labels, weights)) as scope:
        values, truth = _pair(labels, logits)
        ones = raw.OnesLike(truth)
        signs = raw.Sub(2.0 * truth, ones)
        losses = raw.Relu(raw.Sub(ones, raw.Mul(signs, values)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The negative log of the probability ``predictions`` gives to ``labels`` (0 to 1).

    ``epsilon`` is added before each log. Other arguments and shapes are those of
    `mean_squared_error`.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", (predictions, labels, weights)) as scope:
        values, truth = _pair(labels, predictions)
        of_one = raw.Mul(truth, raw.Log(values + epsilon))
        of_zero = raw.Mul(1.0 - truth, raw.Log(1.0 - values + epsilon))
        losses = raw.Sub(raw.Neg(of_one), of_zero)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of labels that do not exclude each other, for each element.

    Args:
        multi_class_labels, logits: of one shape, such as ``[batch, classes]``; logits are floats.
        label_smoothing: moves the labels that far towards 1/2.

    Raises:
        TypeError: if the logits are no floats.
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
    """
    _given(multi_class_labels=multi_class_labels, logits=logits)
    values = (logits, multi_class_labels, weights)
    with name_scope(scope, "sigmoid_cross_entropy_loss", values) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = softmax.sigmoid_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of labels that are distributions over the classes, for each example.

    Args:
        onehot_labels, logits: ``[..., classes]``, of one shape; the losses are ``[...]``.
        label_smoothing: moves the labels that far towards the uniform distribution: Szegedy et al.,
            "Rethinking the Inception architecture for computer vision" (2016), section 7.

    Raises:
        ValueError: if one is None, the shapes differ, or weights or reduction do not fit.
        InvalidArgumentError: when run, if shapes known only then differ.
    """
    _given(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = cast(shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = raw.StopGradient(labels, name="labels_stop_gradient")
        losses = softmax.softmax_cross_entropy_with_logits_v2(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Cross entropy of class numbers ``labels`` and ``[..., classes]`` logits, for each example.

    Args:
        labels: int32 or int64 ``[...]``; a last dimension of 1 too much of labels or weights is
            dropped.
        logits: floats.

    Raises:
        TypeError: if labels are no integers or logits no floats.
        ValueError: if one is None, or shapes, weights or reduction do not fit.
        InvalidArgumentError: when run, if a label is no class.
    """
    _given(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)) as scope:
        labels, logits = remove_squeezable_dimensions(labels, logits, 1)
        weights = _without_last(weights, labels)
        losses = softmax.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def _without_last(weights: Any, labels: Tensor) -> Tensor:
    """Weights of one rank more than the labels, without their last dimension."""
    given = convert_to_tensor(weights)
    wanted, found = labels.shape.rank, given.shape.rank
    if wanted is not None and found is not None:
        return squeeze(given, [-1]) if found == wanted + 1 else given
    if found is not None and (found == 0 or given.shape.as_list()[-1] not in (None, 1)):
        return given
    excess = raw.Sub(rank(given), rank(labels))
    result: Tensor = cond(raw.Equal(excess, 1), lambda: squeeze(given, [-1]), lambda: given)
    return result


__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
