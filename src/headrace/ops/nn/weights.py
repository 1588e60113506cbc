"""Fitting labels, predictions and weights to each other, for losses and metrics."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import TensorShape, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control.basic import no_op
from headrace.ops.control.checking_api import Assert
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.scopes_api import scope_or

_MISFIT = "weights can not be broadcast to values."


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """``labels`` and ``predictions`` without a last dimension of size 1 that one has too much.

    Args:
        expected_rank_diff: the rank of the predictions minus that of the labels that is wanted.

    Returns:
        The labels and the predictions; where their ranks differ by something else, as they are.

    Raises:
        ValueError: if the dimension too much is known not to be 1.
        InvalidArgumentError: when run, if it is not 1 then.
    """
    with scope_or(name, "remove_squeezable_dimensions"):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        if labels.dims is not None and predictions.dims is not None:
            excess = len(predictions.dims) - len(labels.dims) - expected_rank_diff
            if excess == 1:
                predictions = _squeezed(predictions)
            elif excess == -1:
                labels = _squeezed(labels)
            return labels, predictions
        difference = raw.Sub(raw.Rank(predictions), raw.Rank(labels))
        squeezed = predictions, labels
        if _may_squeeze(predictions.dims):
            squeezed = _squeezed_if(predictions, difference, expected_rank_diff + 1), labels
        if _may_squeeze(labels.dims):
            squeezed = squeezed[0], _squeezed_if(labels, difference, expected_rank_diff - 1)
        return squeezed[1], squeezed[0]


def _squeezed(tensor: Tensor) -> Tensor:
    return raw.Squeeze(tensor, squeeze_dims=[-1])


def _may_squeeze(dims: Dims) -> bool:
    return dims is None or (bool(dims) and dims[-1] in (None, 1))


def _squeezed_if(tensor: Tensor, difference: Tensor, wanted: int) -> Tensor:
    result: Tensor = cond(raw.Equal(difference, wanted), lambda: _squeezed(tensor), lambda: tensor)
    return result


def _checked_statically(weights: Dims, values: Dims) -> bool:
    """Whether static shapes tell that weights fit values; False when they do not tell.

    Raises:
        ValueError: if they tell that weights do not fit.
    """
    if weights == ():
        return True
    if weights is None or values is None:
        return False
    ranks = f"values.rank={len(values)}. weights.rank={len(weights)}."
    shapes = f"values.shape={shape_text(values)}. weights.shape={shape_text(weights)}."
    if len(weights) != len(values):
        raise ValueError(f"{_MISFIT} {ranks} {shapes}")
    for position, (weight, value) in enumerate(zip(weights, values, strict=True)):
        if weight is not None and weight != 1 and value is not None and weight != value:
            raise ValueError(f"{_MISFIT} Mismatch at dim {position}. {shapes}")
    return all(w == 1 or (w == v and w is not None) for w, v in zip(weights, values, strict=True))


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An op that fails unless each dimension of ``weights`` is 1 or that of ``values``.

    Scalar weights fit too. No other broadcasting is allowed.

    Raises:
        ValueError: if static shapes tell that they do not fit.
        InvalidArgumentError: when run, if they do not fit.
    """
    with scope_or(None, "assert_broadcastable") as scope:
        weights = convert_to_tensor(weights, name="weights")
        values = convert_to_tensor(values, name="values")
        if _checked_statically(weights.dims, values.dims):
            return no_op(name="static_checks_determined_all_ok")
        shape_w, shape_v = raw.Shape(weights), raw.Shape(values)
        rank_w, rank_v = raw.Rank(weights), raw.Rank(values)
        fits = cond(
            raw.Equal(rank_w, 0),
            lambda: convert_to_tensor(True),
            lambda: cond(
                raw.Equal(rank_w, rank_v),
                lambda: raw.All(
                    raw.LogicalOr(raw.Equal(shape_w, 1), raw.Equal(shape_w, shape_v)), [0]
                ),
                lambda: convert_to_tensor(False),
            ),
        )
        data: list[Any] = [_MISFIT, "weights.shape=", weights.name, shape_w]
        data += ["values.shape=", values.name, shape_v]
        return Assert(fits, data, name=f"{scope}Assert")


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """``weights`` in the shape of ``values``; they must fit as assert_broadcastable says.

    Raises:
        ValueError: if static shapes tell that they do not fit.
        InvalidArgumentError: when run, if they do not fit.
    """
    with scope_or(None, "broadcast_weights") as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, values.dtype, name="weights")
        same = TensorShape.of(weights.dims)
        if same.is_fully_defined() and same.as_tuple == values.dims:
            result: Tensor = weights
            return result
        graph = default_graph_stack.current()
        with graph.control_dependencies((assert_broadcastable(weights, values),)):
            ones = raw.OnesLike(values, name="ones_like")
            return raw.Mul(weights, ones, name=scope)
