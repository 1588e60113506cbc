"""Losses of lists of outputs, and models for sequences of several lengths."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.ops.array.api import reshape
from headrace.ops.array.api import shape as shape_of
from headrace.ops.math.cast import cast
from headrace.ops.math.nary import add_n
from headrace.ops.math.reduction_api import reduce_sum
from headrace.ops.nn.softmax import sparse_softmax_cross_entropy_with_logits
from headrace.ops.state.variable_scope import get_variable_scope, variable_scope

LossFunction = Callable[..., Any]


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Any:
    """Weighted cross-entropy of each sequence.

    Args:
        logits: list of scores ``[batch, symbols]``.
        targets: list of symbols ``[batch]``.
        weights: list of weights ``[batch]``.
        average_across_timesteps: divide by the sum of the weights.
        softmax_loss_function: ``(labels, logits) -> losses [batch]`` in place of the cross-entropy.

    Returns:
        The losses ``[batch]``: log-perplexities if averaged.

    Raises:
        ValueError: if the lists differ in length.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with get_default_graph().name_scope(name or "sequence_loss_by_example"):
        losses = [
            _loss(softmax_loss_function, target, logit) * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        total = add_n(losses)
        if average_across_timesteps:
            total = total / (add_n(list(weights)) + 1e-12)
    return total


def _loss(function: LossFunction | None, target: Any, logit: Any) -> Any:
    if function is None:
        return sparse_softmax_cross_entropy_with_logits(labels=reshape(target, [-1]), logits=logit)
    if _takes_names(function):
        return function(labels=target, logits=logit)
    # Functions written for older releases take (inputs, labels) or (labels, inputs) by position.
    first = next(iter(inspect.signature(function).parameters))
    return function(logit, target) if first in ("inputs", "logits") else function(target, logit)


def _takes_names(function: LossFunction) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    kinds = {p.kind for p in parameters.values()}
    return {"labels", "logits"} <= set(parameters) or inspect.Parameter.VAR_KEYWORD in kinds


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Any:
    """The sum of `sequence_loss_by_example`, or with ``average_across_batch`` their mean: a scalar.

    Args:
        logits: a list of ``[batch, symbols]``; targets: of integers ``[batch]``; weights:
            ``[batch]``.

    Raises:
        TypeError: if the targets are no integers.
        ValueError: if the lists have different lengths or are empty.
    """
    with get_default_graph().name_scope(name or "sequence_loss"):
        cost = reduce_sum(
            sequence_loss_by_example(
                logits,
                targets,
                weights,
                average_across_timesteps=average_across_timesteps,
                softmax_loss_function=softmax_loss_function,
            )
        )
        return cost / cast(shape_of(targets[0])[0], cost.dtype) if average_across_batch else cost


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], Any],
    softmax_loss_function: LossFunction | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> Any:
    """A model for each bucket of lengths; all share their variables.

    Args:
        buckets: (length of inputs, length of outputs), the last one the longest.
        seq2seq: ``seq2seq(encoder_inputs, decoder_inputs) -> outputs, state``.
        per_example_loss: losses ``[batch]``; else their mean.

    Returns:
        For each bucket the list of outputs, and the loss.

    Raises:
        ValueError: if a list is shorter than the last bucket asks for.
    """
    longest = buckets[-1]
    for kind, given, needed in (
        ("encoder_inputs", encoder_inputs, longest[0]),
        ("targets", targets, longest[1]),
        ("weights", weights, longest[1]),
    ):
        if len(given) < needed:
            raise ValueError(
                f"Length of {kind} ({len(given)}) must be at least that of last bucket ({needed})."
            )
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    losses, outputs = [], []
    with get_default_graph().name_scope(name or "model_with_buckets"):
        for j, (inputs, steps) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if j > 0 else None):
                made, _ = seq2seq(encoder_inputs[:inputs], decoder_inputs[:steps])
                outputs.append(made)
                losses.append(
                    loss(
                        made,
                        targets[:steps],
                        weights[:steps],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses


__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]
