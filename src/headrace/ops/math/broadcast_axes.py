"""The axes over which gradients of inputs that broadcast are summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.ops.core.registry import define_op
from headrace.ops.math.elementwise_util import INTEGER


def _broadcast_gradient_args(s0: Any, s1: Any) -> tuple[Any, Any]:
    """For two shapes, the axes over which the gradient of each must be summed."""
    a, b = list(s0), list(s1)
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    if any(x != y and x != 1 and y != 1 for x, y in zip(a, b, strict=True)):
        raise ValueError(f"Incompatible shapes: {list(map(int, s0))} vs. {list(map(int, s1))}")
    lead_a, lead_b = rank - len(s0), rank - len(s1)
    first = [i for i in range(rank) if i < lead_a or (a[i] == 1 and b[i] != 1)]
    second = [i for i in range(rank) if i < lead_b or (b[i] == 1 and a[i] != 1)]
    return np.array(first, s0.dtype), np.array(second, s1.dtype)


define_op(
    "BroadcastGradientArgs(s0: T, s1: T) -> (r0: T, r1: T)",
    attrs="T: index = int32",
    shape=lambda op: [(None,), (None,)],
    kernel=_broadcast_gradient_args,
    interpret=_broadcast_gradient_args,
    static=(0, 1),
    gradient=INTEGER,
)
