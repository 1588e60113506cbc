"""Floating point operations of an op, counted as TensorFlow counts them (`ops.core.flops`)."""

from __future__ import annotations

from collections.abc import Callable

from headrace.graph.tensor import Operation


def float_ops(op: Operation) -> int | None:
    """Floating point operations of one run of ``op``; None if its shapes are not known."""
    rule: Callable[[Operation], int] | None = op.op_def.traits.flops
    if rule is None:
        return 0
    try:
        return max(0, rule(op))
    except ValueError:
        return None
