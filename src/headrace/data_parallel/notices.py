"""What trains on workers, but not quite as the script does alone: said before the first step."""

from __future__ import annotations

from typing import Any

from headrace import logging
from headrace.data_parallel.gradients import Trail
from headrace.data_parallel.losses import LossKinds, examine, normalises
from headrace.data_parallel.state import GraphState
from headrace.data_parallel.steps import ScriptStep, bodies, reads_queue, where
from headrace.graph.tensor import Tensor

__all__ = ["of_chief_alone", "of_gradients", "of_loss", "of_step"]


def of_loss(loss: Tensor, found: LossKinds, is_averaged: bool) -> None:
    """Say what of a loss is not that of the whole batch.

    Args:
        is_averaged: whether gradients of workers are averaged.
    """
    known = [op for op in found.mixing if normalises(op) or not list(bodies(op))]
    if found.mixing and not known:
        logging.warning(
            "Whether %s gives a row of the batch what depends on other rows is not known: if so, "
            "each worker has its own rows only.",
            where(found.mixing[0]),
        )
    elif known:
        logging.warning(
            "%s gives each row what depends on all rows, as batch normalisation does: each worker "
            "takes the statistics of its own rows.",
            where(known[0]),
        )
    if is_averaged and not (found.is_sum or found.is_mean):
        logging.warning(
            "The loss %s is neither a sum nor a mean over examples, as far as %s tells: workers "
            "train with the average of their own losses. Make it a mean over the first axis to "
            "train with that of the whole batch.",
            where(loss.op),
            where(found.other or loss.op),
        )


def of_gradients(trail: Trail, is_averaged: bool) -> None:
    """Say what comes between the gradients of a loss and the update.

    Args:
        is_averaged: whether gradients of workers are averaged.
    """
    if trail.limits:
        logging.warning(
            "Gradients are clipped by %s before they are applied: each worker clips those of "
            "its own rows, not those of the whole batch.",
            where(trail.limits[0]),
        )
    for grad in trail.by_hand if is_averaged else ():
        if not examine(grad).is_mean:
            logging.warning(
                "The gradient %s is not made by tf.gradients and is no mean over examples: workers "
                "train with the average of their own. Make it a mean over the first axis, or leave "
                "it to tf.gradients.",
                where(grad.op),
            )


def of_chief_alone(what: str, site: Any, has_servers: bool) -> None:
    """Say that a training is not shared out.

    Args:
        what: trains so; site: the line of the script.
        has_servers: whether variables are on servers: else each worker trains its own.
    """
    line = "" if site is None else f" ({site.filename}, line {site.lineno})"
    logging.warning(
        "%s%s is not shared out by a plain script: %s",
        what,
        line,
        "the chief (worker 0) trains, and other workers wait for what that comes to."
        if has_servers
        else "each worker trains with all of its input, and the chief (worker 0) saves its model.",
    )


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
        if reads_queue(op) and op not in state.said:
            state.said.add(op)
            logging.warning(
                "The training step %s reads from a queue by %s: each worker reads all of the "
                "queue's input. Of a tf.data.Dataset each would read its share.",
                where(step.updates[0].op),
                where(op),
            )
