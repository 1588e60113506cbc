"""Public functions that join tensors and split them: concat, stack, split ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.array import join
from headrace.ops.array.api import identity
from headrace.ops.core.array_util import (
    as_tensor,
    fully_known,
)
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.old_arguments import concat_arguments, split_arguments
from headrace.ops.core.public import public


@public("concat")
@composite_function
def concat(values: Any, axis: Any = None, name: str = "concat", concat_dim: Any = None) -> Tensor:
    """Tensors joined along one dimension; all other sizes must agree.

    Args:
        values: at least one tensor, all of one dtype and rank.
        axis: the dimension, an integer scalar (negative: from the end).
        concat_dim: the old name of ``axis``.

    Raises:
        TypeError: if the dtypes differ.
        ValueError: if ``values`` is empty, static shapes do not fit, or ``axis`` is out of range.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> concat([tf.zeros([2, 3]), tf.ones([2, 1])], axis=1).shape.as_list()
    [2, 4]
    """
    values, axis = concat_arguments(values, axis, concat_dim)
    if len(values) == 1:
        at = convert_to_tensor(axis, dtypes.int32, "concat_dim")
        if at.dims not in (None, ()):
            raise ValueError(f"The axis of tf.concat must be a scalar, got shape {at.shape}.")
        return identity(values[0], name=name)
    return raw.ConcatV2(list(values), axis, name=name)


@public("stack")
@composite_function
def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape and dtype as one tensor with a new dimension at ``axis``.

    Args:
        axis: in [-rank - 1, rank] for values of that rank.

    Raises:
        TypeError: if the dtypes differ.
        ValueError: if the shapes differ or ``axis`` is out of range.
        InvalidArgumentError: when run, if shapes known only then differ.

    >>> stack([[1, 2], [3, 4], [5, 6]], axis=1).shape.as_list()
    [2, 3]
    """
    if axis == 0 and not isinstance(values, Tensor):
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass  # shapes differ: the op's own message says which
    if isinstance(values, Tensor):
        values = unstack(values)
    return raw.Pack(_same_types(values), axis=axis, name=name)


def _same_types(values: Sequence[Any]) -> list[Any]:
    """Python numbers beside tensors take the tensors' type."""
    kinds = [v.dtype for v in values if isinstance(v, Tensor)]
    return [
        v if isinstance(v, Tensor) or not kinds else convert_to_tensor(v, kinds[0]) for v in values
    ]


@public("parallel_stack")
def parallel_stack(values: Sequence[Any], name: str = "parallel_stack") -> Tensor:
    """Like ``stack`` along dimension 0; all shapes must be fully known.

    Raises:
        ValueError: if there are no values, the first shape is not known, or another differs.
        TypeError: if the dtypes differ.
    """
    tensors = [as_tensor(v) for v in values]
    if not tensors:
        raise ValueError("tf.parallel_stack needs at least one value; got none.")
    each = tensors[0].dims
    if not fully_known(each):
        raise ValueError("tf.parallel_stack needs fully known shapes; use tf.stack.")
    with get_default_graph().name_scope(name) as scope:
        return raw.ParallelConcat(
            [raw.ExpandDims(t, 0) for t in tensors],
            shape=TensorShape([len(tensors), *each]),  # type: ignore[misc]
            name=scope,
        )


@public("unstack")
def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of ``value`` along ``axis``, a list of ``num`` tensors of one rank less.

    Raises:
        ValueError: if ``num`` is neither given nor known, is not the size of the dimension, or
            ``axis`` is out of range.
        InvalidArgumentError: when run, if the dimension is not ``num`` then.

    >>> [t.shape.as_list() for t in unstack(tf.zeros([2, 3]), axis=1)]
    [[2], [2], [2]]
    """
    tensor = as_tensor(value)
    if num is None:
        dims = tensor.dims
        if dims is None:
            raise ValueError(f"Cannot infer num from shape {tensor.shape}")
        num = dims[join.stacked_axis(axis, len(dims))]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {tensor.shape}")
    return raw.Unpack(tensor, num=num, axis=axis, name=name)


@public("split")
def split(
    value: Any = None,
    num_or_size_splits: Any = None,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
    split_dim: Any = None,
    num_split: Any = None,
) -> list[Tensor]:
    """Split ``value`` along ``axis``: into equal parts (an int) or parts of given sizes (a list).

    Args:
        num_or_size_splits: the number of parts, or ``[parts]`` sizes, one of which may be -1.
        axis: integer scalar in [-rank, rank).
        num: the number of parts where the length of the sizes is not known.
        split_dim, num_split: old names of ``axis`` and of the number of parts.

    Raises:
        ValueError: if the sizes do not fit, or ``axis`` is out of range.
        InvalidArgumentError: when run, if they do not fit a size known only then.

    >>> [t.shape.as_list() for t in split(constant([[1, 2, 3, 4]]), [1, -1], axis=1)]
    [[1, 1], [1, 3]]
    """
    value, num_or_size_splits, axis = split_arguments(
        value, num_or_size_splits, axis, split_dim, num_split
    )
    if isinstance(num_or_size_splits, (int, np.integer)):
        return raw.Split(axis, value, num_split=int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits, preferred_dtype=dtypes.int32)
    if sizes.dims == ():
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. "
            f"Argument provided: {num_or_size_splits}"
        )
    if num is None:
        num = sizes.dims[0] if sizes.dims else None
        if num is None:
            raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
    return raw.SplitV(value, sizes, axis, num_split=num, name=name)
