"""Functions of elements as functions of batches of elements.

``map(f)`` before ``batch(n)`` is the same as ``batch(n)`` before a map that does with all elements
at once what ``f`` does with each, where each operation of ``f`` treats the elements of a batch
alone. Such functions consist of operations that are pure and listed here, or are element-wise by
their traits. Anything else stays a map of elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import function_placeholder, raw

#: What an operation becomes: takes it, its inputs, and which of them are batches.
Rule = Callable[[Operation, Sequence[Tensor], Sequence[bool]], Sequence[Tensor]]


class _NotSafe(Exception):
    """The operation may not treat elements alone, or nobody has said how it does."""


#: Beside element-wise ops: these take each element of the first input alone, the others for all.
_EACH = frozenset({"DecodeRaw", "Identity", "OneHot"})
_RULES: dict[str, Rule] = {}
_batched: WeakKeyDictionary[FuncGraph, FuncGraph | None] = WeakKeyDictionary()


def batched_body(body: FuncGraph) -> FuncGraph | None:
    """The function of batches; None where it is not known to be safe.

    It takes what ``body`` takes, with a first axis more but for what is captured.
    """
    if body not in _batched:
        try:
            _batched[body] = _made(body)
        except _NotSafe:
            _batched[body] = None
    return _batched[body]


def _made(body: FuncGraph) -> FuncGraph:
    made = FuncGraph(f"{body.name}_of_batches", body.outer_graph, function_placeholder)
    copies: dict[Tensor, tuple[Tensor, bool]] = {}
    with made.as_default():
        for tensor in body.inputs:
            if tensor.dims is None or tensor.dtype is dtypes.variant:
                raise _NotSafe
            copies[tensor] = made.add_input(tensor.dtype, (None, *tensor.dims)), True
        for outer, inner in body.captures.items():
            if inner.dtype in (dtypes.resource, dtypes.variant):
                raise _NotSafe
            copies[inner] = made.capture(outer), False
        for op in body.get_operations():
            if all(t in copies for t in op.outputs) and op.outputs:
                continue  # an input
            copies.update(_copied(op, [copies[t] for t in op.inputs]))
    outputs = [copies[t] for t in body.outputs]
    if not all(is_batch for _, is_batch in outputs):
        raise _NotSafe
    made.outputs = [tensor for tensor, _ in outputs]
    return made


def _copied(
    op: Operation, inputs: Sequence[tuple[Tensor, bool]]
) -> dict[Tensor, tuple[Tensor, bool]]:
    """The outputs of an operation on batches."""
    if op.control_inputs or op.op_def.is_stateful or op.op_def.makes_handle or not op.outputs:
        raise _NotSafe
    tensors, batches = [t for t, _ in inputs], [b for _, b in inputs]
    if not any(batches):
        return {old: (new, False) for old, new in zip(op.outputs, _again(op, tensors), strict=True)}
    rule = _RULES.get(op.type)
    if rule is not None:
        found = rule(op, tensors, batches)
    elif op.op_def.traits.elementwise:
        found = _elementwise(op, tensors, batches)
    elif op.type in _EACH and batches[0] and not any(batches[1:]):
        found = _again(op, tensors)
    else:
        raise _NotSafe
    return {old: (new, True) for old, new in zip(op.outputs, found, strict=True)}


def _again(op: Operation, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same operation on other inputs."""
    types = [t.dtype for t in op.outputs]
    copy = get_default_graph().add_op(
        op.op_def, inputs, dict(op.attrs), types, op.name, [], op.device
    )
    copy.site = op.site
    outputs: Sequence[Tensor] = copy.outputs
    return outputs


def _elementwise(
    op: Operation, inputs: Sequence[Tensor], batches: Sequence[bool]
) -> Sequence[Tensor]:
    """Inputs broadcast from their last axes on: the batch must stay the first of all."""
    ranks = [None if t.dims is None else len(t.dims) for t in op.inputs]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks):
        raise _NotSafe
    most = max(known)
    for rank, is_batch in zip(known, batches, strict=True):
        if is_batch and rank < most:
            raise _NotSafe
    return _again(op, inputs)


def _dims(tensor: Tensor) -> tuple[int, ...]:
    dims: Dims = tensor.dims
    if dims is None or None in dims:
        raise _NotSafe
    return tuple([int(size) for size in dims if size is not None])


def _reshape(op: Operation, inputs: Sequence[Tensor], batches: Sequence[bool]) -> Sequence[Tensor]:
    shape = _dims(op.outputs[0])
    if batches[1] or math.prod(shape) == 0:
        raise _NotSafe
    return [raw.Reshape(inputs[0], np.array([-1, *shape], np.int32))]


def _parse_single_example(
    op: Operation, inputs: Sequence[Tensor], batches: Sequence[bool]
) -> Sequence[Tensor]:
    """Dense features of fixed shapes: one tensor each, as of a batch."""
    attrs = op.attrs
    shapes = [shape.as_tuple for shape in attrs["dense_shapes"]]
    if attrs["num_sparse"] or not batches[0] or any(batches[1:]) or any(None in s for s in shapes):
        raise _NotSafe

    def keys(name: str) -> Any:
        return [np.array(key, object) for key in attrs[name]]

    parsed = raw.ParseExample(
        inputs[0],
        np.array([], object),
        keys("sparse_keys"),
        keys("dense_keys"),
        list(inputs[1:]),
        sparse_types=attrs["sparse_types"],
        Tdense=attrs["Tdense"],
        dense_shapes=attrs["dense_shapes"],
    )
    found: Sequence[Tensor] = parsed[-1]
    return found


_RULES["Reshape"] = _reshape
_RULES["ParseSingleExample"] = _parse_single_example

__all__ = ["batched_body"]
