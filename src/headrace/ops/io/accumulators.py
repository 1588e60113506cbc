"""Accumulator ops: making accumulators, adding gradients, taking their average.

The accumulators themselves are in ``headrace.ops.io.accumulators_kernels``, the public classes in
``headrace.ops.io.accumulators_api``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.io.accumulators_kernels import (
    Accumulator,
    AccumulatorSpec,
    DenseAccumulator,
    SparseAccumulator,
)
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.state.variable_ops import handle_op

_NO_GRADIENT = NotDifferentiable("an accumulator hands over values between steps")
_ATTRS = (
    "dtype: numeric, shape: shape, container: string = '', shared_name: string = '', "
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"
)


def _provider(kind: type[Accumulator]) -> Callable[[Any, Any, Any], None]:
    def provide(store: Any, handle: Any, node: Any) -> None:
        attrs = node.attrs
        dims = None if attrs["shape"] is None else attrs["shape"].as_tuple
        spec = AccumulatorSpec(attrs["dtype"], dims, attrs["reduction_type"])
        found = store.object(handle, lambda: kind(spec, node.name))
        if type(found) is not kind or found.spec != spec:
            message = f"Shared accumulator '{handle.name}' is another one: {found.spec}, not {spec}"
            raise InvalidArgumentError(None, node.op, message)

    return provide


# TensorFlow's sparse accumulators have references for handles, and no op that makes a resource.
for _name, _kind in (
    ("ResourceConditionalAccumulator", DenseAccumulator),
    ("SparseConditionalAccumulator", SparseAccumulator),
):
    define_op(
        f"{_name}() -> handle: resource",
        attrs=_ATTRS,
        makes_handle="accumulator",
        provide=_provider(_kind),
        shape=lambda op: [()],
        gradient=_NO_GRADIENT,
    )


def _accumulator(context: Any, handle: Any, dtype: Any = None) -> Accumulator:
    found: Accumulator = host_resource(context, handle)
    if dtype is not None and found.spec.dtype is not dtype:
        message = f"Accumulator '{found.name}' is of {found.spec.dtype.name}, not {dtype.name}"
        raise InvalidArgumentError(None, None, message)
    return found


def _declared(op: Operation) -> Dims:
    """The declared shape of the accumulator behind the first input."""
    maker = handle_op(op.inputs[0])
    shape = None if maker is None else maker.attrs.get("shape")
    return None if shape is None else shape.as_tuple


def _apply(context: Any, handle: Any, local_step: Any, gradient: Any, *, dtype: Any) -> Any:
    _accumulator(context, handle, dtype).apply(int(local_step), (gradient,))
    return ()


def _take(context: Any, handle: Any, num_required: Any, *, dtype: Any) -> Any:
    return _accumulator(context, handle, dtype).take(int(num_required), context.step)


def _count(context: Any, handle: Any) -> Any:
    return np.int32(_accumulator(context, handle).count())


def _is_new(context: Any, handle: Any) -> Any:
    return np.bool_(_accumulator(context, handle).is_new)


def _set_step(context: Any, handle: Any, new_global_step: Any) -> Any:
    _accumulator(context, handle).set_global_step(int(new_global_step))
    return ()


def _apply_sparse(
    context: Any,
    handle: Any,
    local_step: Any,
    indices: Any,
    values: Any,
    shape: Any,
    *,
    dtype: Any,
    has_known_shape: bool,
) -> Any:
    parts = (indices, values, shape, has_known_shape)
    _accumulator(context, handle, dtype).apply(int(local_step), parts)
    return ()


def _sparse_shape(op: Operation) -> list[Dims]:
    declared = _declared(op)
    if declared is None:
        return [(None,), None, (None,)]
    if len(declared) < 2:  # values may have more dimensions than are declared
        return [(None,), None, (None,)]
    return (
        [(None,), None, (None,)]
        if None in declared[1:]
        else [
            (None,),
            (None, *declared[1:]),
            (len(declared),),
        ]
    )


def _define(signature: str, attrs: str, shape: Any, host: Any, only_here: str = "") -> None:
    define_op(
        signature,
        attrs=attrs,
        shape=shape,
        host=host,
        effects=BLOCKS,
        gradient=_NO_GRADIENT,
        traits=Traits(only_here=only_here),
    )


_define(
    "ResourceAccumulatorApplyGradient(handle: resource, local_step: int64, gradient: dtype)",
    "dtype: numeric",
    lambda op: [],
    _apply,
)
_define(
    "ResourceAccumulatorTakeGradient(handle: resource, num_required: int32) -> average: dtype",
    "dtype: numeric",
    lambda op: [_declared(op)],
    _take,
)
# Sparse accumulators are asked by the ops without "Resource" in their names.
for _prefix in ("Resource", ""):
    _define(
        f"{_prefix}AccumulatorNumAccumulated(handle: resource) -> num_accumulated: int32",
        "",
        lambda op: [()],
        _count,
    )
    _define(
        f"{_prefix}AccumulatorSetGlobalStep(handle: resource, new_global_step: int64)",
        "",
        lambda op: [],
        _set_step,
    )
_define(
    "AccumulatorIsNew(handle: resource) -> is_new: bool",
    "",
    lambda op: [()],
    _is_new,
    only_here="TensorFlow's replicas know nothing of lost servers",
)
_define(
    "SparseAccumulatorApplyGradient(handle: resource, local_step: int64, gradient_indices: int64,"
    " gradient_values: dtype, gradient_shape: int64)",
    "dtype: numeric, has_known_shape: bool",
    lambda op: [],
    _apply_sparse,
)
_define(
    "SparseAccumulatorTakeGradient(handle: resource, num_required: int32)"
    " -> (indices: int64, values: dtype, shape: int64)",
    "dtype: numeric",
    _sparse_shape,
    _take,
)
