"""What trains on workers, but not quite as the script does alone: said before the first step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headrace import logging
from headrace.data_parallel.losses import LossKinds
from headrace.data_parallel.state import GraphState
from headrace.data_parallel.steps import ScriptStep, where
from headrace.graph.tensor import Operation, Tensor

__all__ = ["of_gradients", "of_loss", "of_step"]

#: The scope of what `tf.gradients` makes.
_GRADIENTS = re.compile(r"(^|/)gradients(_\d+)?/")
#: By these all ways to clip go.
_LIMITS = ("Minimum", "Maximum")
_INPUTS = ("QueueDequeue", "ReaderRead")


def of_loss(loss: Tensor, found: LossKinds, is_averaged: bool) -> None:
    """Say what of a loss is not that of the whole batch.

    Args:
        is_averaged: whether gradients of workers are averaged.
    """
    if found.mixing:
        logging.warning(
            "%s gives each row what depends on all rows, as batch normalisation does: each worker "
            "takes the statistics of its own rows.",
            where(found.mixing[0]),
        )
    if is_averaged and not (found.is_sum or found.is_mean):
        logging.warning(
            "The loss %s is neither a sum nor a mean over examples, as far as %s tells: workers "
            "train with the average of their own losses. Make it a mean over the first axis to "
            "train with that of the whole batch.",
            where(loss.op),
            where(found.other or loss.op),
        )


def of_gradients(grads: Sequence[Any]) -> None:
    """Say that gradients are clipped before they are applied."""
    for grad in grads:
        clip = _clip(getattr(grad, "values", grad))
        if clip is not None:
            logging.warning(
                "Gradients are clipped by %s before they are applied: each worker clips those of "
                "its own rows, not those of the whole batch.",
                where(clip),
            )
            return


def of_step(step: ScriptStep, state: GraphState) -> None:
    """Say what of a training step's input is taken otherwise than the script may mean it."""
    for tensor in step.request.feeds:
        dims = tensor.dims or ()
        if dims[:2] == (None, None) and tensor.op not in state.said:
            state.said.add(tensor.op)
            logging.warning(
                "%s has rows in its first dimension, as far as its shape tells: each worker takes "
                "some of them. If its batch is the second dimension, as in [time, batch], feed it "
                "with the batch first and transpose it in the script.",
                where(tensor.op),
            )
    for op in step.examples():
        if op.type.startswith(_INPUTS) and op not in state.said:
            state.said.add(op)
            logging.warning(
                "The training step %s reads from a queue by %s: each worker reads all of the "
                "queue's input. Of a tf.data.Dataset each would read its share.",
                where(step.updates[0].op),
                where(op),
            )


def _clip(grad: Any) -> Operation | None:
    """The operation that limits a gradient after `tf.gradients` made it."""
    if not isinstance(grad, Tensor):
        return None
    limits, is_reached = [], False
    seen, todo = {grad.op}, [grad.op]
    while todo:
        op = todo.pop()
        if _GRADIENTS.search(op.name):
            is_reached = True
            continue
        if op.type in _LIMITS:
            limits.append(op)
        for tensor in op.inputs:
            if tensor.op not in seen:
                seen.add(tensor.op)
                todo.append(tensor.op)
    # Gradients in a scope of another name: what limits are found may be those of the model.
    return limits[0] if limits and is_reached else None
