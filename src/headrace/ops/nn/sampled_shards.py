"""Logits of true and sampled classes, computed beside the parts of the weights.

Rows of classes travel to the examples, or examples to the rows: whichever are fewer bytes. With
batches of B examples of width D, S sampled classes and N servers, rows are D * (S + B) numbers, and
examples and their logits N * B * D + B * S; gradients are as many again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.gradient_places import gradients_beside
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.nn.embedding import partitioned_ids, table_rows

__all__ = ["examples_travel", "logits_beside"]


def examples_travel(parts: list[Any], inputs: Tensor, labels: Tensor, sampled: Tensor) -> bool:
    """Whether it takes fewer bytes to send the examples than the rows: False where nobody knows."""
    known = [inputs.dims, labels.dims, sampled.dims]
    if any(d is None or None in d for d in known):
        return False
    if not all("/job:" in (getattr(p, "device", "") or "") and _is_variable(p) for p in parts):
        return False
    (batch, width), (_, num_true), (count,) = known  # type: ignore[misc]
    rows = width * (count + batch * num_true)  # type: ignore[operator]
    examples = batch * (len(parts) * width + count + num_true)  # type: ignore[operator]
    return examples < rows


def _is_variable(part: Any) -> bool:
    return hasattr(part, "sparse_read") and hasattr(part, "handle")


def logits_beside(
    parts: list[Any], inputs: Tensor, flat: Tensor, sampled: Tensor, num_true: int, strategy: str
) -> tuple[Tensor, Tensor]:
    """Products of ``inputs`` ``[batch, dim]`` and rows of classes, made where the rows are.

    Args:
        flat: true classes ``[batch * num_true]``; ``sampled``: ``[num_sampled]``.

    Returns:
        ``[batch, num_true]`` of the true classes, ``[batch, num_sampled]`` of the sampled ones.
    """
    true_ids, true_places = partitioned_ids(parts, flat, strategy)
    ids, places = partitioned_ids(parts, sampled, strategy)
    own, others = [], []
    for i, part in enumerate(parts):
        example = raw.FloorDiv(true_places[i], np.int32(num_true))
        both = raw.ConcatV2([true_ids[i], ids[i]], 0)
        with get_default_graph().colocate_with(part.handle.op), gradients_beside():
            # One look-up: its gradient is one list of rows, and stays here.
            rows = table_rows(part, both)
            sizes = raw.Pack([raw.Size(true_ids[i]), raw.Size(ids[i])], axis=0)
            mine, theirs = raw.SplitV(rows, sizes, 0, num_split=2)
            here = raw.Identity(inputs)
            own.append(raw.Sum(raw.Mul(mine, raw.GatherV2(here, example, 0)), [1]))
            others.append(raw.MatMul(theirs, here, transpose_b=True))
    true = raw.Reshape(raw.DynamicStitch(true_places, own), [-1, num_true])
    other = raw.Transpose(raw.DynamicStitch(places, others), [1, 0])
    batch, count = inputs.dims[0], sampled.dims[0]  # type: ignore[index]
    true.set_shape((batch, num_true))
    other.set_shape((batch, count))
    return true, other
