"""Which calls of `tf.gradients` an update's gradients come from, and what is done to them after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.data_parallel.state import GradientCall, GraphState
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw

__all__ = ["Trail", "follow", "made_by", "values_of"]


def values_of(grad: Any) -> Any:
    """The numbers of a gradient: those of some rows, or all."""
    return getattr(grad, "values", grad)


def made_by(
    state: GraphState,
    losses: Sequence[Tensor],
    make: Callable[[list[Tensor]], list[Any]],
    is_averaged: bool,
) -> list[Any]:
    """The gradients that ``make`` gives of some losses; the graph remembers where they are from.

    Args:
        is_averaged: whether a step that trains may weight the losses of this worker.
    """
    call = GradientCall(list(losses))
    weighted = list(losses)
    for i, loss in enumerate(losses if is_averaged else ()):
        if loss.dtype.is_floating:
            weighted[i] = loss * _weight(call, loss)
    grads = make(weighted)
    for grad in grads:
        value = values_of(grad)
        if isinstance(value, Tensor):
            state.gradients[value] = call
    return grads


def _weight(call: GradientCall, loss: Tensor) -> Tensor:
    dtype = loss.dtype.base_dtype
    if dtype not in call.weights:
        one = convert_to_tensor(1.0, dtype)
        name = "data_parallel_weight"
        call.weights[dtype] = raw.PlaceholderWithDefault(one, shape=(), name=name)
    return call.weights[dtype]


class Trail(NamedTuple):
    """What lies between `tf.gradients` and an update.

    Attributes:
        calls: those that made the gradients.
        limits: what limits a gradient after it was made, as clipping does.
        by_hand: gradients that no call has made.
    """

    calls: list[GradientCall]
    limits: list[Operation]
    by_hand: list[Tensor]


#: By these all ways to clip go.
_LIMITS = ("Minimum", "Maximum")


def follow(state: GraphState, grads: Sequence[Any]) -> Trail:
    """Where some gradients come from."""
    calls: dict[GradientCall, None] = {}
    limits: dict[Operation, None] = {}
    by_hand = []
    for grad in grads:
        value = values_of(grad)
        if not isinstance(value, Tensor) or value in state.own:
            continue
        own, between = _back(state, value)
        calls.update(dict.fromkeys(own))
        # Of what no call has made, limits may be those of the model.
        limits.update(dict.fromkeys(between if own else ()))
        if not own:
            by_hand.append(value)
    return Trail(list(calls), list(limits), by_hand)


def _back(state: GraphState, grad: Tensor) -> tuple[list[GradientCall], list[Operation]]:
    calls, limits = [], []
    seen, todo = {grad}, [grad]
    while todo:
        tensor = todo.pop()
        call = state.gradients.get(tensor)
        if call is not None:
            calls.append(call)
            continue
        if tensor.op.type in _LIMITS:
            limits.append(tensor.op)
        for before in tensor.op.inputs:
            if before not in seen:
                seen.add(before)
                todo.append(before)
    return calls, limits
