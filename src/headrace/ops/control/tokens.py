"""The ops of control flow of the old kind, for programs that build it by hand.

A graph may have them; before a step runs, loops and branches are raised to functions as those of
files are (`graph_files.by_hand`). Source: the 2015 white paper, section 4.4.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

__all__: list[str] = []

_NO_GRADIENT = NotDifferentiable("control flow by hand has none; use tf.cond and tf.while_loop")


def _same(count: int) -> Any:
    return lambda op: [op.inputs[0].dims] * count


def _merge_shape(op: Operation) -> list[Dims]:
    first, *others = (t.dims for t in op.inputs)
    if all(o == first for o in others):
        return [first, ()]
    known = [d for d in (first, *others) if d is not None]
    if len(known) < len(op.inputs) or len({len(d) for d in known}) > 1:
        return [None, ()]
    columns = zip(*known, strict=True)
    return [tuple([c[0] if len(set(c)) == 1 else None for c in columns]), ()]


def _unraised(context: Any, *_: Any) -> Any:
    raise InvalidArgumentError(
        None,
        None,
        "Control flow by hand runs in the graph of a local session only, not in functions or on "
        "clusters. Use tf.cond or tf.while_loop.",
    )


def _define(signature: str, attrs: str, shape: Any) -> None:
    define_op(
        signature,
        attrs=attrs,
        shape=shape,
        host=_unraised,
        gradient=_NO_GRADIENT,
        traits=Traits(by_hand=True),
    )


_define(
    "Merge(inputs: N * T) -> (output: T, value_index: int32)", "T: type, N: int >= 1", _merge_shape
)
_define(
    "Enter(data: T) -> output: T",
    "T: type, frame_name: string, is_constant: bool = False, parallel_iterations: int = 10",
    _same(1),
)
_define("Exit(data: T) -> output: T", "T: type", _same(1))
_define("NextIteration(data: T) -> output: T", "T: type", _same(1))
_define("LoopCond(input: bool) -> output: bool", "", _same(1))
