"""``tf.sets``: sets along the last axis of tensors, dense or sparse."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor

__all__ = [
    "difference",
    "intersection",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "size",
    "union",
]

_TYPES = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.string,
)


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different elements each row (along the last axis) of a SparseTensor has, int32.

    Args:
        a: integers or strings of rank 2 or more, in row-major order.
        validate_indices: whether that order is checked.

    Returns:
        ``a``'s dense shape without its last dimension.

    Raises:
        TypeError: if ``a`` is no SparseTensor, or not of integers or strings.
        InvalidArgumentError: when run, if its rank is below 2 or the order another.
    """
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    _check_type(a, "a")
    return raw.SetSize(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that a row of ``a`` has in common with that of ``b``, each once, in order.

    Args:
        a, b: tensors or SparseTensors of integers or strings, of one rank, and equal in all
            dimensions but the last.
        validate_indices: require the places of SparseTensors to be in row-major order.

    Raises:
        TypeError: if types differ or are floating.
        ValueError, InvalidArgumentError: if shapes do not fit.

    >>> rows = set_intersection([[1, 2, 3]], [[3, 1, 9]])
    >>> Session().run(rows.values).tolist()
    [1, 3]
    """
    return _operation(a, b, "intersection", validate_indices)


def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The elements of each row of ``a`` that ``b`` does not have, or the other way round.

    Arguments and errors are those of ``set_intersection``.

    Raises:
        TypeError: if types differ or are floating.
        ValueError, InvalidArgumentError: if shapes do not fit.
    """
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that a row of ``a`` or of ``b`` has, each once, in order.

    Arguments and errors are those of ``set_intersection``.

    Raises:
        TypeError: if types differ or are floating.
        ValueError, InvalidArgumentError: if shapes do not fit.
    """
    return _operation(a, b, "union", validate_indices)


def _check_type(value: Any, name: str) -> None:
    if value.dtype not in _TYPES:
        raise TypeError(
            f"'{name}' invalid dtype {value.dtype.name}: sets are of integers or strings."
        )


def _operation(a: Any, b: Any, kind: str, validate: bool) -> SparseTensor:
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    _check_type(a, "a")
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if a.dtype is not b.dtype:
        raise TypeError(f"Types don't match, {a.dtype.name} vs {b.dtype.name}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b = b, a
        kind = {"a-b": "b-a", "b-a": "a-b"}.get(kind, kind)
    sides = [t for side in (a, b) for t in (_parts(side))]
    names = ["Sparse" if isinstance(side, SparseTensor) else "Dense" for side in (a, b)]
    op = getattr(raw, f"{names[0]}To{names[1]}SetOperation")
    return SparseTensor(*op(*sides, set_operation=kind, validate_indices=validate))


def _parts(value: Any) -> list[Tensor]:
    if isinstance(value, SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    return [value]


size = set_size
union = set_union
intersection = set_intersection
difference = set_difference
