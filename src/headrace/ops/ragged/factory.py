"""Ragged tensors from nested Python lists, and placeholders for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.shapes import TensorShape
from headrace.ops.core.build import constant as dense_constant
from headrace.ops.core.build import placeholder as dense_placeholder
from headrace.ops.ragged.ragged_tensor import RaggedTensor, is_ragged
from headrace.ops.ragged.value import RaggedTensorValue
from headrace.ops.state.scopes_api import scope_or


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A constant ragged tensor of a nested list (or a Tensor, for a list that is not nested).

    Args:
        pylist: nested lists or tuples (or arrays), all scalars at one depth.
        dtype: type of the values; by default theirs.
        ragged_rank: how many dimensions get row splits; by default all but the innermost.
        inner_shape: the shape of the dense values inside the rows.

    Raises:
        ValueError: if scalars stand at different depths, or ranks do not fit.
        TypeError: if ``pylist`` is ragged already.
        ValueError: if ``row_splits_dtype`` is neither int32 nor int64.

    >>> constant([[1, 2], [3]]).shape
    TensorShape([Dimension(2), Dimension(None)])
    """

    splits_type = _splits_type(row_splits_dtype)

    def make(values: Any, row_splits: Any) -> RaggedTensor:
        return RaggedTensor(values, dense_constant(row_splits, splits_type), internal=True)

    def inner(values: Any, shape: Any) -> Any:
        return dense_constant(values, dtype, shape, name="values" if shape else "Const")

    with scope_or(name, "RaggedConstant"):
        return _build(make, inner, pylist, ragged_rank, inner_shape)


def _splits_type(row_splits_dtype: Any) -> dtypes.DType:
    found = dtypes.as_dtype(row_splits_dtype)
    if found not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"row_splits_dtype must be int32 or int64, not {found.name}")
    return found


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """A RaggedTensorValue of a nested list (or an array, for a list that is not nested), to feed.

    Arguments are those of ``constant``: the list is nested as deep as the rank of the result.

    Raises:
        ValueError: if scalars stand at different depths, or ranks do not fit; if
            ``row_splits_dtype`` is neither int32 nor int64.

    >>> constant_value([[1, 2], [3]]).to_list()
    [[1, 2], [3]]
    """
    kind = dtypes.as_dtype(dtype).np_dtype if dtype is not None else None
    splits_type = _splits_type(row_splits_dtype).np_dtype

    def make(values: Any, row_splits: Any) -> RaggedTensorValue:
        return RaggedTensorValue(values, np.array(row_splits, splits_type))

    def inner(values: Any, shape: Any) -> Any:
        array = np.array(values, kind)
        return array if shape is None else array.reshape(shape)

    return _build(make, inner, pylist, ragged_rank, inner_shape)


def placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """A ragged tensor (a Tensor for rank 0) whose value each step must feed.

    Args:
        value_shape: the shape of the values inside the rows, after the ragged dimensions.

    Raises:
        TypeError: if ``dtype`` is no type.
        ValueError: if ``ragged_rank`` is negative.
        InvalidArgumentError: when run, if nothing is fed.
    """
    if ragged_rank < 0:
        raise ValueError(f"ragged_rank must not be negative, got {ragged_rank}")
    if ragged_rank == 0:
        return dense_placeholder(dtype, value_shape, name)
    with scope_or(name, "RaggedPlaceholder"):
        shape = TensorShape([None]).concatenate(TensorShape(value_shape))
        result: Any = dense_placeholder(dtype, shape, "flat_values")
        for i in reversed(range(ragged_rank)):
            splits = dense_placeholder(dtypes.int64, [None], f"row_splits_{i}")
            result = RaggedTensor(result, splits, internal=True)
        return result


# -- nested lists -------------------------------------------------------------------------------


def _is_list(item: Any) -> bool:
    return isinstance(item, (list, tuple)) or np.ndim(item) != 0


def _build(
    make: Callable[[Any, Any], Any],
    inner: Callable[[Any, Any], Any],
    pylist: Any,
    ragged_rank: int | None,
    inner_shape: Any,
) -> Any:
    if is_ragged(pylist):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    shape = None if inner_shape is None else tuple(TensorShape(inner_shape).as_list())
    if not _is_list(pylist):
        if ragged_rank or shape:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                f"inner_shape={inner_shape}"
            )
        return inner(pylist, ())
    try:
        scalar_depth, depth = _depths(pylist)
    except RecursionError:
        raise nest.too_deep(pylist) from None
    _check_depths(pylist, scalar_depth, depth, ragged_rank, shape)
    if ragged_rank == 0 or (
        ragged_rank is None and (depth < 2 or (shape is not None and depth - len(shape) < 2))
    ):
        return inner(pylist, shape)
    if shape is None:
        shape = () if ragged_rank is None else _inner_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, (depth if scalar_depth is None else scalar_depth - len(shape)) - 1)
    values, nested = pylist, []
    for _ in range(ragged_rank):
        lengths = [len(row) for row in values]
        nested.append(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64).tolist())
        values = [item for row in values for item in row]
    result = inner(values, (len(values), *shape))
    for splits in reversed(nested):
        result = make(result, splits)
    return result


def _check_depths(
    pylist: Any, scalar_depth: int | None, depth: int, ragged_rank: int | None, shape: Any
) -> None:
    if scalar_depth is not None and depth > scalar_depth:
        raise ValueError(
            f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting"
        )
    if shape is None or ragged_rank is None:
        return
    expected = ragged_rank + len(shape) + 1
    if (scalar_depth is not None and expected != scalar_depth) or (
        scalar_depth is None and expected < depth
    ):
        raise ValueError(
            f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
            f"dim(inner_shape)={len(shape)}"
        )


def _depths(item: Any) -> tuple[int | None, int]:
    """How deep scalars stand (None: there are none), and how deep lists are nested."""
    if not _is_list(item):
        return 0, 0
    found: int | None = None
    deepest = 1
    for child in item:
        scalars, depth = _depths(child)
        if scalars is not None:
            if found is not None and found != scalars + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            found = scalars + 1
        deepest = max(deepest, depth + 1)
    return found, deepest


def _inner_shape(pylist: Any, ragged_rank: int) -> tuple[int, ...]:
    """The common shape of what stands inside the ragged dimensions."""
    values = pylist
    for dim in range(ragged_rank):
        if not all(_is_list(v) for v in values):
            raise ValueError(
                f"pylist has scalar values depth {dim + 1}, but ragged_rank={ragged_rank} requires "
                f"scalar value depth greater than {ragged_rank}"
            )
        values = [item for row in values for item in row]
    try:
        shape: tuple[int, ...] = np.shape(values)
        return shape[1:]
    except ValueError:
        raise ValueError("inner values have inconsistent shape") from None
