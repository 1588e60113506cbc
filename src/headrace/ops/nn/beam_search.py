"""GatherTree: the sequences that a beam search found, from the parents of each step."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks, requirements
from headrace.ops.core.array_util import require_rank
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op


def _shape(op: Operation) -> list[Dims]:
    for tensor, rank, name in zip(
        op.inputs, (3, 3, 1, 0), ("step_ids", "parent_ids", "lengths", "end_token"), strict=True
    ):
        require_rank(tensor, rank, name)
    return [merge_static(op.inputs[0].dims, op.inputs[1].dims)]


def _walk(xp: Any, steps: Any, parents: Any, lengths: Any, end: Any, level: Any, at: Any) -> Any:
    """One step back: which beams to read at ``level``, what they hold, and their parents."""
    here = lengths - 1 == level
    width = steps.shape[1]
    at = xp.where(here[:, None], xp.arange(width, dtype=at.dtype), at)
    inside = (lengths > level)[:, None]
    found = xp.where(inside, xp.take_along_axis(steps, at, 1), end)
    return found, xp.where(inside, xp.take_along_axis(parents, at, 1), at)


def _gather_tree(
    xp: Any, step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any
) -> Any:
    parent_ids = xp.asarray(parent_ids)  # known while compiling, it may still be NumPy's
    steps, batch, width = step_ids.shape
    lengths = xp.minimum(max_sequence_lengths, steps)
    if parent_ids.size:
        used = (xp.arange(steps)[:, None, None] > 0) & (
            xp.arange(steps)[:, None, None] < lengths[:, None]
        )
        bad = used & ((parent_ids < 0) | (parent_ids >= width))
        position = xp.argmax(bad)
        checks.require(
            ~xp.any(bad),
            "Saw invalid parent id {1} at (time, batch, beam) number {0}",
            position,
            parent_ids.ravel()[position],
        )
    at = xp.zeros((batch, width), step_ids.dtype)
    walk = partial(_walk, xp)
    if xp is np:
        rows = []
        for level in range(steps - 1, -1, -1):
            row, at = walk(step_ids[level], parent_ids[level], lengths, end_token, level, at)
            rows.append(row)
        beams = np.stack(rows[::-1]) if rows else step_ids
    else:

        def step(at: Any, x: Any) -> Any:
            found, at = walk(x[0], x[1], lengths, end_token, x[2], jnp.clip(at, 0, width - 1))
            return at, found

        levels = jnp.arange(steps, dtype=lengths.dtype)
        _, beams = lax.scan(step, at, (step_ids, parent_ids, levels), reverse=True)
    # All that follows the first end token is end tokens.
    ended = xp.cumsum(beams == end_token, axis=0) > 0
    return xp.where(ended, end_token, beams).astype(step_ids.dtype)


def _length_for_each_sequence(op: Operation) -> None:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) == 3:
        requirements.shape((dims[1],), 2)(op)


define_op(
    "GatherTree(step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T) -> beams: T",
    attrs="T: {int32}",
    shape=_shape,
    requires=[_length_for_each_sequence],
    kernel=partial(_gather_tree, jnp),
    interpret=partial(_gather_tree, np),
    gradient=NotDifferentiable("it moves symbols"),
    effects=CHECKS,
)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Tensor:
    """The sequences of a beam search.

    Args:
        step_ids: int32 ``[time, batch, beam]``: the symbol that each step added.
        parent_ids: int32 of the same shape: the beam of the step before.
        max_sequence_lengths: int32 ``[batch]``: where to start going back.
        end_token: int32 scalar; what follows its first occurrence is end tokens.

    Returns:
        The symbols of each beam at the last step, int32 ``[time, batch, beam]``.

    Raises:
        TypeError: if they are not int32.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a parent is no beam.
    """
    return raw.GatherTree(step_ids, parent_ids, max_sequence_lengths, end_token, name=name)


__all__ = ["gather_tree"]
