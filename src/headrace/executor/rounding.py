"""Sums and products with constants are rounded in the order in which the program has them.

XLA adds up the constants of ``(1 - x) + 1e-8`` first, to ``1 - x`` in float32: a logarithm that the
small number was to keep finite is infinite then. NumPy, and so an interpreted first run, computes
what is written. A change of precision that changes nothing keeps XLA from seeing the two constants
together, and stays inside its loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
from jax import lax

from headrace.passes.ir import Node


def in_order(node: Node, args: Sequence[Any]) -> Sequence[Any]:
    """The inputs of a node that is traced, such that its constants stay where they are."""
    kind = node.op_def.traits.rounding
    if not kind or not node.dtypes[0].is_floating:
        return args
    if all(isinstance(a, jax.Array) for a in args):
        return args
    return [
        _as_rounded(a) if isinstance(a, jax.Array) and kind_of(source) == kind else a
        for a, (source, _) in zip(args, node.inputs, strict=True)
    ]


def kind_of(node: Node) -> str:
    # XLA looks through what hands on elements; a variable is another input of its program.
    while node.op_def.traits.is_view and node.op_def.effects.pure:
        node = node.inputs[0][0]
    return node.op_def.traits.rounding


def _as_rounded(value: Any) -> Any:
    info = ml_dtypes.finfo(value.dtype)  # type: ignore[no-untyped-call]
    return lax.reduce_precision(value, info.nexp, info.nmant)
