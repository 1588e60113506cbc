"""Softmax, the cross-entropies, and the losses and ranks built on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import broadcast_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, flops, requirements
from headrace.ops.core.array_util import like_first, summed, widened
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.old_arguments import cross_entropy_arguments
from headrace.ops.core.public import public
from headrace.ops.core.reducing import extreme_in_vectors, in_vectors
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op, index_check
from headrace.ops.core.traits import Traits
from headrace.ops.math.elementwise_util import (
    FLOATS,
)


def _shifted(logits: Any) -> Any:
    """Logits less the maximum of their row."""
    if logits.size == 0:
        return logits
    return logits - np.maximum.reduce(logits, axis=-1, keepdims=True)


def _row_sums(x: Any) -> Any:
    """The sum of each row, as a column."""
    sums = in_vectors(lax.reduce_sum, widened(x), (x.ndim - 1,))
    return jnp.expand_dims(sums.astype(x.dtype), -1)


def _shifted_rows(logits: Any) -> Any:
    """Logits less the maximum of their row, by which nothing is differentiated."""
    top = extreme_in_vectors(lax.reduce_max, logits, (logits.ndim - 1,))
    return logits - jnp.expand_dims(lax.stop_gradient(top), -1)


def _softmax(logits: Any) -> Any:
    powers = jnp.exp(_shifted_rows(logits))
    return powers / _row_sums(powers)


def _log_softmax(logits: Any) -> Any:
    shifted = _shifted_rows(logits)
    return shifted - jnp.log(_row_sums(jnp.exp(shifted)))


def _softmax_np(logits: Any) -> Any:
    powers = np.exp(_shifted(logits))
    return powers / summed(powers, -1, keepdims=True)


def _log_softmax_np(logits: Any) -> Any:
    shifted = _shifted(logits)
    return shifted - np.log(summed(np.exp(shifted), -1, keepdims=True))


def _softmax_shape(op: Operation) -> list[Dims]:
    if op.inputs[0].dims == ():
        raise ValueError("logits must have at least one dimension, but they are a scalar")
    return like_first(op)


def _softmax_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [raw.SoftmaxGrad(grad, op.outputs[0])]


define_op(
    "Softmax(logits: T) -> softmax: T",
    attrs=f"T: {FLOATS}",
    shape=_softmax_shape,
    kernel=_softmax,
    interpret=_softmax_np,
    gradient=_softmax_gradient,
    traits=Traits(flops=flops.per_element(5)),
)


def _softmax_grad(xp: Any, grad: Any, softmax: Any) -> Any:
    product = grad * softmax
    if xp is jnp:
        return (grad - _row_sums(product)) * softmax
    return (grad - summed(product, -1, keepdims=True)) * softmax


# One op for the whole backward step, so that passes recognise it (see passes.stability).
define_op(
    "SoftmaxGrad(gradients: T, softmax: T) -> backprops: T",
    attrs=f"T: {FLOATS}",
    shape=like_first,
    requires=[requirements.same_shape(0, 1)],
    kernel=partial(_softmax_grad, jnp),
    interpret=partial(_softmax_grad, np),
)


def _log_softmax_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [raw.LogSoftmaxGrad(grad, raw.Exp(op.outputs[0]))]


define_op(
    "LogSoftmax(logits: T) -> logsoftmax: T",
    attrs=f"T: {FLOATS}",
    shape=_softmax_shape,
    kernel=_log_softmax,
    interpret=_log_softmax_np,
    gradient=_log_softmax_gradient,
)


def _log_softmax_grad(xp: Any, grad: Any, softmax: Any) -> Any:
    if xp is jnp:
        return grad - softmax * _row_sums(grad)
    return grad - softmax * summed(grad, -1, keepdims=True)


define_op(
    "LogSoftmaxGrad(gradients: T, softmax: T) -> backprops: T",
    attrs=f"T: {FLOATS}",
    shape=like_first,
    requires=[requirements.same_shape(0, 1)],
    kernel=partial(_log_softmax_grad, jnp),
    interpret=partial(_log_softmax_grad, np),
)


# Used by the stability pass: the finite part of a maximum.
define_op(
    "FiniteOrZero(x: T) -> y: T",
    attrs=f"T: {FLOATS}",
    shape=like_first,
    kernel=lambda x: jnp.where(jnp.isfinite(x), x, jnp.zeros_like(x)),
    interpret=lambda x: np.where(np.isfinite(x), x, np.zeros_like(x)),
    gradient=NotDifferentiable("it stands for a constant"),
)


# -- cross-entropy ------------------------------------------------------------------------------


def _matrix_pair(op: Operation) -> list[Dims]:
    features, labels = (t.dims for t in op.inputs)
    both = broadcast_static(features, labels)
    if both is not None and len(both) != 2:
        raise ValueError(
            f"logits and labels must be matrices, but their shapes are {shape_text(features)} and "
            f"{shape_text(labels)}"
        )
    both = both or (None, None)
    return [both[:1], both]


def _cross_entropy(xp: Any, features: Any, labels: Any) -> tuple[Any, Any]:
    features, labels = xp.broadcast_arrays(features, labels)
    log = _log_softmax_np(features) if xp is np else _log_softmax(features)
    # 0 * -inf counts as 0: a class of no weight costs nothing.
    terms = xp.where(labels == 0, xp.zeros_like(log), labels * log)
    loss = _row_sums(terms)[..., 0] if xp is jnp else summed(terms, -1)
    return -loss, xp.exp(log) - labels


def _cross_entropy_gradient(op: Operation, grad_loss: Tensor, grad_backprop: Any) -> list[Any]:
    logits = op.inputs[0]
    column = raw.ExpandDims(grad_loss, -1)
    grad = raw.Mul(column, op.outputs[1])
    if grad_backprop is not None and grad_backprop.op.type != "ZerosLike":
        grad = raw.AddV2(grad, raw.SoftmaxGrad(grad_backprop, raw.Softmax(logits)))
    return [grad, raw.Mul(column, raw.Neg(raw.LogSoftmax(logits)))]


define_op(
    "SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> (loss: T, backprop: T)",
    attrs=f"T: {FLOATS}",
    shape=_matrix_pair,
    kernel=partial(_cross_entropy, jnp),
    interpret=partial(_cross_entropy, np),
    gradient=_cross_entropy_gradient,
)

_LABEL_RANGE = "Received a label value of {1} which is outside the valid range of [0, {2})."


def _sparse_shape(op: Operation) -> list[Dims]:
    features, labels = (t.dims for t in op.inputs)
    if features is not None and len(features) != 2:
        raise ValueError(f"logits must be a matrix, but their shape is {shape_text(features)}")
    if labels is not None and len(labels) != 1:
        raise ValueError(f"labels must be a vector, but their shape is {shape_text(labels)}")
    rows = merge_static(features[:1] if features else (None,), labels)
    return [rows, merge_static(features, (rows or (None,)) + (None,))]


def _sparse_cross_entropy(xp: Any, features: Any, labels: Any) -> tuple[Any, Any]:
    classes = features.shape[1]
    if features.shape[0] != labels.shape[0]:
        raise ValueError(
            f"logits have {features.shape[0]} rows, but there are {labels.shape[0]} labels"
        )
    if labels.size:
        known = np if isinstance(labels, np.ndarray) else xp  # constants, while tracing
        bad = (labels < 0) | (labels >= classes)
        at = known.argmax(bad)
        checks.require(~known.any(bad), _LABEL_RANGE, at, labels[at], known.asarray(classes))
    log = _log_softmax_np(features) if xp is np else _log_softmax(features)
    hot = labels[:, None] == xp.arange(classes, dtype=labels.dtype)
    loss = -xp.sum(xp.where(hot, log, xp.zeros_like(log)), axis=-1, dtype=log.dtype)
    return loss, xp.exp(log) - hot.astype(log.dtype)


def _sparse_gradient(op: Operation, grad_loss: Tensor, grad_backprop: Any) -> list[Any]:
    grad = raw.Mul(raw.ExpandDims(grad_loss, -1), op.outputs[1])
    if grad_backprop is not None and grad_backprop.op.type != "ZerosLike":
        softmax = raw.Softmax(op.inputs[0])
        grad = raw.AddV2(grad, raw.SoftmaxGrad(grad_backprop, softmax))
    return [grad, None]


define_op(
    "SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> (loss: T, backprop: T)",
    attrs=f"T: {FLOATS}, Tlabels: index = int64",
    shape=_sparse_shape,
    kernel=partial(_sparse_cross_entropy, jnp),
    interpret=partial(_sparse_cross_entropy, np),
    gradient=_sparse_gradient,
    effects=CHECKS,
    early_check=index_check(1, lambda attrs, dims: dims[0][1], _LABEL_RANGE),  # type: ignore[index]
)


def _l2_loss(t: Any) -> Any:
    squares = in_vectors(lax.reduce_sum, widened(t * t), tuple(range(t.ndim)))
    return squares.astype(t.dtype) / 2


define_op(
    "L2Loss(t: T) -> output: T",
    attrs=f"T: {FLOATS}",
    shape=lambda op: [()],
    kernel=_l2_loss,
    interpret=lambda t: np.asarray(summed(t * t) / 2, t.dtype),
    gradient=lambda op, grad: [raw.Mul(op.inputs[0], grad)],
    traits=Traits(flops=flops.half_square_sum, reduces="sum"),
)


# -- the public functions -----------------------------------------------------------------------


def _along_last(
    function: Any, logits: Any, axis: int | None, dim: int | None, name: str | None, label: str
) -> Tensor:
    """Apply a rule for the last axis along any axis."""
    axis = _one_of(axis, dim, "axis", "dim")
    logits = convert_to_tensor(logits)
    dims = logits.dims
    if axis is None or axis == -1 or (dims is not None and axis == len(dims) - 1):
        result: Tensor = function(logits, name=name or label)
        return result
    if dims is None:
        raise ValueError(f"{label} along axis {axis} needs logits of known rank")
    rank = len(dims)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in [{-rank}, {rank}) for logits of rank {rank}")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    with get_default_graph().name_scope(name or label):
        return raw.Transpose(function(raw.Transpose(logits, order)), order)


def _one_of(new: Any, old: Any, new_name: str, old_name: str) -> Any:
    if new is not None and old is not None:
        raise ValueError(f"Cannot specify both '{new_name}' and '{old_name}'")
    return old if new is None else new


@public("math.softmax", "nn.softmax")
def softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``exp(logits) / sum(exp(logits))`` along ``axis`` (the last by default).

    Args:
        logits: a floating tensor, of rank 1 at least.

    Returns:
        A tensor of the same shape and type.

    Raises:
        TypeError: if ``logits`` is not floating.
        ValueError: if ``axis`` is not one of its axes, or ``dim`` is given too.

    >>> with tf.Session() as session:
    ...     session.run(softmax([[1.0, 1.0], [0.0, 1000.0]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    return _along_last(raw.Softmax, logits, axis, dim, name, "Softmax")


@public("math.log_softmax", "nn.log_softmax")
def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``logits - log(sum(exp(logits)))`` along ``axis`` (the last by default).

    Args:
        logits: a floating tensor, of rank 1 at least.

    Returns:
        A tensor of the same shape and type.

    Raises:
        TypeError: if ``logits`` is not floating.
        ValueError: if ``axis`` is not one of its axes, or ``dim`` is given too.
    """
    return _along_last(raw.LogSoftmax, logits, axis, dim, name, "LogSoftmax")


@public("nn.l2_loss")
def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares of ``t``, a scalar.

    Args:
        t: floats of any shape.

    Raises:
        TypeError: if ``t`` does not hold floats.

    >>> with tf.Session() as session:
    ...     float(session.run(l2_loss([3.0, 4.0])))
    12.5
    """
    return raw.L2Loss(t, name=name)


@public("nn.softmax_cross_entropy_with_logits_v2")
def softmax_cross_entropy_with_logits_v2(
    labels: Any,
    logits: Any,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """Cross-entropy between ``labels`` (rows that sum to one) and softmax of ``logits``.

    Both have shape ``[..., classes]``; the result has one entry for each row. Labels of another
    type are cast to that of the logits. Gradients flow to both.

    Raises:
        TypeError: if ``logits`` are no floats.
        ValueError: if a shape or the axis does not fit, or labels or logits are missing.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    axis = _one_of(axis, dim, "axis", "dim")
    with get_default_graph().name_scope(name or "softmax_cross_entropy_with_logits"):
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        if labels.dtype is not logits.dtype:
            labels = raw.Cast(labels, DstT=logits.dtype)
        low = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        if low:
            precise = [raw.Cast(t, DstT=dtypes.float32) for t in (logits, labels)]
        else:
            precise = [logits, labels]
        loss = _cross_entropy_any_rank(precise[0], precise[1], -1 if axis is None else axis)
        return raw.Cast(loss, DstT=logits.dtype) if low else loss


def _cross_entropy_any_rank(logits: Tensor, labels: Tensor, axis: int) -> Tensor:
    """The loss; "Reshape_2" is the name under which TensorFlow returns it."""
    dims = logits.dims
    if dims is not None and len(dims) == 2 and axis in (-1, 1):
        matrix = _as_matrix(labels)
        return raw.SoftmaxCrossEntropyWithLogits(logits, matrix, name="Reshape_2")[0]
    if dims is None:
        if axis != -1:
            order: Any = _last_by_rank(raw.Rank(logits), axis)
            logits, labels = raw.Transpose(logits, order), raw.Transpose(labels, order)
    elif not -len(dims) <= axis < len(dims):
        raise ValueError(f"axis {axis} is not in [{-len(dims)}, {len(dims)}) for logits {dims}.")
    elif axis not in (-1, len(dims) - 1):
        order = [i for i in range(len(dims)) if i != axis % len(dims)] + [axis % len(dims)]
        logits, labels = raw.Transpose(logits, order), raw.Transpose(labels, order)
    rows = raw.StridedSlice(raw.Shape(logits), [0], [-1], [1])
    loss = raw.SoftmaxCrossEntropyWithLogits(_as_matrix(logits), _as_matrix(labels))[0]
    return raw.Reshape(loss, rows, name="Reshape_2")


def _as_matrix(tensor: Tensor) -> Tensor:
    """All axes but the last made one: labels may have other outer axes than the logits."""
    if tensor.dims is not None and len(tensor.dims) == 2:
        return tensor
    shape = raw.Shape(tensor)
    last = raw.StridedSlice(shape, [-1], [0], [1], shrink_axis_mask=1)
    # How many rows there are does not follow from the number of elements if there are no classes.
    has_classes = tensor.dims is not None and bool(tensor.dims[-1])
    rows = -1 if has_classes else raw.Prod(raw.StridedSlice(shape, [0], [-1], [1]), 0)
    return raw.Reshape(tensor, raw.Pack([rows, last]))


def _last_by_rank(rank: Tensor, axis: int) -> Tensor:
    """The permutation that puts ``axis`` last, of a rank known only when the graph runs."""
    place = axis if axis >= 0 else raw.AddV2(rank, axis)
    parts = [raw.Range(0, place, 1), raw.Range(raw.AddV2(place, 1), rank, 1), raw.Pack([place])]
    return raw.ConcatV2(parts, 0)


@public("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int | None = None,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """As ``softmax_cross_entropy_with_logits_v2``; no gradient flows to the labels.

    Args:
        labels: probabilities, of the shape of ``logits``.
        logits: ``[..., classes]``, or with the classes along ``axis``.

    Returns:
        The losses, of the shape of ``logits`` without the axis of the classes.

    Raises:
        ValueError: if the shapes differ, or labels or logits are missing.

    >>> losses = softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]], logits=[[0.0, 0.0]])
    >>> with tf.Session() as session:
    ...     round(float(session.run(losses)[0]), 3)  # log(2)
    0.693
    """
    labels, logits = cross_entropy_arguments(
        "softmax_cross_entropy_with_logits", _sentinel, labels, logits
    )
    axis = _one_of(axis, dim, "axis", "dim")
    with get_default_graph().name_scope(name or "softmax_cross_entropy_with_logits_sg") as scope:
        stopped = raw.StopGradient(convert_to_tensor(labels), name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(stopped, logits, axis, name=scope)


@public("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross-entropy between class numbers ``labels`` and softmax of ``logits``.

    Args:
        labels: ``[...]`` of int32 or int64.
        logits: floats ``[..., classes]``.

    Returns:
        The losses ``[...]``.

    Raises:
        TypeError: if labels are no integers, or logits no floats.
        ValueError: if the ranks do not fit.
        InvalidArgumentError: when the graph runs, if a label is not in [0, classes).

    >>> losses = sparse_softmax_cross_entropy_with_logits(labels=[1], logits=[[0.0, 0.0]])
    >>> with tf.Session() as session:
    ...     round(float(session.run(losses)[0]), 3)  # log(2)
    0.693
    """
    labels, logits = cross_entropy_arguments(
        "sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits
    )
    label = "SparseSoftmaxCrossEntropyWithLogits"
    with get_default_graph().name_scope(name or label):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        wanted, given = labels.dims, logits.dims
        if given == ():
            raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
        if given is not None and wanted is not None:
            if len(wanted) != len(given) - 1:
                raise ValueError(
                    "Rank mismatch: Rank of labels (received "
                    f"{len(wanted)}) should equal rank of logits minus 1 (received {len(given)})."
                )
            merge_static(wanted, given[:-1])
        low = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        precise = raw.Cast(logits, DstT=dtypes.float32) if low else logits
        loss = _sparse_any_rank(precise, labels)
        return raw.Cast(loss, DstT=logits.dtype) if low else loss


def _sparse_any_rank(logits: Tensor, labels: Tensor) -> Tensor:
    if logits.dims is not None and len(logits.dims) == 2:
        return raw.SparseSoftmaxCrossEntropyWithLogits(logits, labels)[0]
    shape = raw.Shape(labels)
    matrix = _as_matrix(logits)
    flat = raw.Reshape(labels, [-1])
    loss = raw.SparseSoftmaxCrossEntropyWithLogits(matrix, flat)[0]
    return raw.Reshape(loss, shape)


@public("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Elementwise cross-entropy of independent classes: ``max(x,0) - x z + log(1 + exp(-|x|))``.

    Args:
        labels, logits: floats of one shape, which the result has; ``z`` and ``x`` above.

    Raises:
        TypeError: if they are no floats.
        ValueError: if the shapes differ, or one is missing.
    """
    labels, logits = cross_entropy_arguments(
        "sigmoid_cross_entropy_with_logits", _sentinel, labels, logits
    )
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype, name="labels")
        _same_shape(logits, labels, "logits", "labels")
        zeros = raw.ZerosLike(logits)
        positive = raw.GreaterEqual(logits, zeros)
        relu = raw.SelectV2(positive, logits, zeros)
        minus_abs = raw.SelectV2(positive, raw.Neg(logits), logits)
        return raw.AddV2(
            raw.Sub(relu, raw.Mul(logits, labels)), raw.Log1p(raw.Exp(minus_abs)), name=scope
        )


def _same_shape(a: Tensor, b: Tensor, a_name: str, b_name: str) -> None:
    try:
        merge_static(a.dims, b.dims)
    except ValueError:
        raise ValueError(
            f"{a_name} and {b_name} must have the same shape ({a.shape} vs {b.shape})"
        ) from None


@public("nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """Sigmoid cross-entropy in which positive labels count ``pos_weight`` times, elementwise.

    Args:
        labels, logits: floats of one shape, which the result has; ``targets`` is the old name of
            ``labels``.
        pos_weight: of a shape that broadcasts to it.

    Raises:
        TypeError: if they are no floats.
        ValueError: if the shapes differ, labels are missing, or both names are given.
    """
    labels = _one_of(labels, targets, "labels", "targets")
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype, name="labels")
        _same_shape(logits, labels, "logits", "labels")
        one = convert_to_tensor(1, logits.dtype)
        weight = convert_to_tensor(pos_weight, logits.dtype)
        factor = raw.AddV2(one, raw.Mul(raw.Sub(weight, one), labels))
        tail = raw.AddV2(raw.Log1p(raw.Exp(raw.Neg(raw.Abs(logits)))), raw.Relu(raw.Neg(logits)))
        linear = raw.Mul(raw.Sub(one, labels), logits)
        return raw.AddV2(linear, raw.Mul(factor, tail), name=scope)
