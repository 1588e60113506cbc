"""Sizes and nested states of recurrent cells: shapes from sizes, zeros, and mapping over nests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.api import expand_dims, zeros
from headrace.ops.array.joining_api import concat
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import constant
from headrace.ops.core.static import static_value
from headrace.ops.state.variable_scope import VariableScope, variable_scope


def joined_shape(prefix: Any, suffix: Any) -> Tensor:
    """The shape ``prefix + suffix`` as an int32 vector.

    Args:
        prefix, suffix: an integer, a list of integers, a TensorShape, or a tensor of rank 0 or 1.

    Raises:
        ValueError: if one of them is not fully known, or a tensor of higher rank.
    """
    parts = [_as_vector(prefix), _as_vector(suffix)]
    if None in parts:
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    values = [static_value(p) for p in parts if p is not None]
    if all(v is not None for v in values):
        return constant([int(n) for v in values for n in v], dtypes.int32)  # type: ignore[union-attr]
    joined: Tensor = concat(parts, 0)
    return joined


def joined_static(prefix: Any, suffix: Any) -> TensorShape:
    """The same as far as it is known while the graph is built."""
    return _static_part(prefix).concatenate(_static_part(suffix))


def joined(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """`joined_shape`, or with ``static`` `joined_static` as a list."""
    if not static:
        return joined_shape(prefix, suffix)
    shape = joined_static(prefix, suffix)
    return None if shape.rank is None else shape.as_list()


def _as_vector(size: Any) -> Tensor | None:
    if isinstance(size, Tensor):
        if size.shape.rank == 0:
            vector: Tensor = expand_dims(size, 0)
            return vector
        if size.shape.rank != 1:
            raise ValueError(
                f"prefix tensor must be either a scalar or vector, but saw tensor: {size}"
            )
        return size
    shape = _as_shape(size)
    return constant(shape.as_list(), dtypes.int32) if shape.is_fully_defined() else None


def _as_shape(size: Any) -> TensorShape:
    """A size as a shape: ``3`` stands for ``[3]``."""
    if isinstance(size, TensorShape):
        return size
    if isinstance(size, (list, tuple)):
        return TensorShape(size)
    return TensorShape([size])


def _static_part(size: Any) -> TensorShape:
    if not isinstance(size, Tensor):
        return _as_shape(size)
    value = static_value(size)
    if value is not None:
        return TensorShape(value.ravel().tolist())
    if size.shape.rank == 0:
        return TensorShape([None])
    known = size.shape.as_list() if size.shape.rank == 1 else [None]
    return TensorShape(None if known[0] is None else [None] * known[0])


def zero_states(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros ``[batch_size, *size]`` for each size in a nest."""

    def zero(size: Any) -> Tensor:
        made = zeros(joined_shape(batch_size, size), dtype=dtype)
        made.set_shape(joined_static(batch_size, size))
        return made

    return map_sizes(zero, state_size)


def map_sizes(function: Callable[[Any], Any], sizes: Any) -> Any:
    """``function`` of each size of a nest of sizes (integers or TensorShapes)."""
    return nest.map_structure(function, sizes)


@contextmanager
def network_scope(scope: Any, default: str) -> Iterator[VariableScope]:
    """The variable scope of a network, in which each variable is read once, before the loop."""
    with variable_scope(scope or default) as opened:
        read_once(opened)
        yield opened


def read_once(scope: VariableScope) -> None:
    """Have the variables made in ``scope`` read once, where they are made.

    Not inside of a loop or function: there a variable may change between two calls.
    """
    if scope.caching_device is None and not get_default_graph().building_function:
        scope.set_caching_device(_where_it_is)


def _where_it_is(op: Operation) -> str:
    return op.device


def map_up_to(shallow: Any, function: Callable[..., Any], *structures: Any) -> Any:
    """``function`` of what stands in ``structures`` where ``shallow`` has leaves."""
    columns = [nest.flatten_up_to(shallow, s) for s in structures]
    mapped = [function(*parts) for parts in zip(*columns, strict=True)]
    return nest.pack_sequence_as(shallow, mapped)


def copy_through(finished: Any, old: Any, new: Any, where: Callable[..., Any]) -> Any:
    """Nest of tensors: ``old`` in the rows that are ``finished``, else ``new``.

    TensorArrays and scalars are those of ``new``.
    """

    def choose(before: Any, after: Any) -> Any:
        if isinstance(before, TensorArray) or before.shape.rank == 0:
            return after
        kept = where(finished, before, after)
        kept.set_shape(before.shape)
        return kept

    return nest.map_structure(choose, old, new)
