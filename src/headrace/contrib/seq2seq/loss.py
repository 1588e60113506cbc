"""Cross-entropy of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.ops.array.api import reshape
from headrace.ops.array.api import shape as shape_of
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.binary import div_no_nan
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import count_nonzero, reduce_sum
from headrace.ops.nn.softmax import sparse_softmax_cross_entropy_with_logits


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Weighted cross-entropy of sequences of symbols.

    Args:
        logits: ``[batch, time, symbols]``.
        targets: int ``[batch, time]``.
        weights: ``[batch, time]``.
        average_across_timesteps, average_across_batch: divide by the sum of the weights along
            that axis.
        sum_over_timesteps, sum_over_batch: divide by the number of weights that are not zero.
        softmax_loss_function: ``(labels, logits) -> losses`` in place of the cross-entropy.

    Returns:
        A scalar, or what is left of ``[batch, time]`` when an axis is not reduced.

    Raises:
        ValueError: for other ranks, or an axis both averaged and summed.
    """
    for what, value, form in (
        ("Logits", logits, "[batch_size x sequence_length x logits]"),
        ("Targets", targets, "[batch_size x sequence_length]"),
        ("Weights", weights, "[batch_size x sequence_length]"),
    ):
        if convert_to_tensor(value).shape.rank != len(form.split(" x ")):
            raise ValueError(f"{what} must be a {form} tensor")
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError(
            "average_across_timesteps and sum_over_timesteps cannot be set to True at same time."
        )
    if average_across_batch and sum_over_batch:
        raise ValueError(
            "average_across_batch and sum_over_batch cannot be set to True at same time."
        )
    with get_default_graph().name_scope(name or "sequence_loss"):
        flat = reshape(logits, [-1, shape_of(logits)[2]])
        labels = reshape(targets, [-1])
        if softmax_loss_function is None:
            losses = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
        else:
            losses = softmax_loss_function(labels=labels, logits=flat)
        losses = losses * reshape(weights, [-1])
        by_weight = average_across_timesteps or average_across_batch
        across_time = average_across_timesteps or sum_over_timesteps
        across_batch = average_across_batch or sum_over_batch
        mixed = across_time and across_batch and average_across_timesteps != average_across_batch
        if across_time and across_batch and not mixed:
            axis = None
        else:
            losses = reshape(losses, shape_of(logits)[0:2])
            if not (across_time or across_batch):
                return losses
            # Where both kinds are asked for, averaging counts, and its axis.
            reduced = average_across_batch if by_weight else sum_over_batch
            axis = [0] if reduced else [1]
        total = reduce_sum(losses, axis=axis)
        if by_weight:
            return div_no_nan(total, reduce_sum(weights, axis=axis))
        return div_no_nan(total, cast(count_nonzero(weights, axis=axis), total.dtype))


__all__ = ["sequence_loss"]
