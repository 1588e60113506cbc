"""Products of matrices, split over devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headrace.errors import suggest
from headrace.graph.tensor import Tensor
from headrace.ops.array.joining_api import concat, split
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.matmul import matmul as product
from headrace.ops.math.nary import add_n
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.scopes_api import colocate_with, device, name_scope

SPLITS: Final = ("columns", "rows")


def matmul(a: Any, b: Any, devices: Sequence[Any] | None = None, by: str = "columns") -> Tensor:
    """``a @ b``, each device with a part of ``b``.

    By columns, each device gets all of ``a`` and makes some columns of the product, which are
    joined. By rows, each device gets some columns of ``a`` and makes a term of the product; the
    terms are added. Source: Dean et al., "Large scale distributed deep networks", 2012, section 3,
    whose figure 1 splits a layer over machines.

    Args:
      a: ``[..., m, k]``.
      b: ``[k, n]``: a tensor, which is split; parts of it, a list or a partitioned variable, which
        stay as they are. Where ``devices`` is None, each part is multiplied where it is.
      devices: one for each part. A tensor is split into as many parts: equal ones, or such that
        differ by one where the size is known.
      by: "columns" or "rows": what of ``b`` the parts are. A partitioned variable tells it itself.

    Returns:
      ``[..., m, n]``.

    Raises:
      ValueError: ``by`` is something else; there are not as many devices as parts; a tensor without
        devices; fewer columns or rows than devices.

    >>> a, b = tf.ones([2, 4]), tf.ones([4, 6])
    >>> tf.parallel.matmul(a, b, ["/cpu:0", "/cpu:0"], by="rows").shape.as_list()
    [2, 6]
    """
    if by not in SPLITS:
        raise ValueError(f"by is 'columns' or 'rows', but it is {by!r}.{suggest(by, SPLITS)}")
    with name_scope(None, "split_matmul", [a]):
        return _matmul(convert_to_tensor(a), b, devices, by)


def _matmul(a: Tensor, b: Any, devices: Sequence[Any] | None, by: str) -> Tensor:
    if isinstance(b, PartitionedVariable):
        by = SPLITS[0] if _axis_of(b) == 1 else SPLITS[1]
        parts: list[Any] = list(b)
    elif isinstance(b, (list, tuple)):
        parts = list(b)
    elif devices is None:
        raise ValueError("matmul needs devices to split a tensor over; parts have devices already.")
    else:
        parts = split_evenly(convert_to_tensor(b), len(devices), 1 if by == "columns" else 0)
    if devices is not None and len(devices) != len(parts):
        raise ValueError(f"There are {len(parts)} parts of b, but {len(devices)} devices.")
    where = [_beside(p) for p in parts] if devices is None else [device(d) for d in devices]
    if by == "rows":
        sizes = [convert_to_tensor(p).shape.with_rank(2)[0].value for p in parts]
        factors = split(a, sizes, axis=-1) if None not in sizes else split(a, len(parts), axis=-1)
    else:
        factors = [a] * len(parts)
    products = []
    for place, factor, part in zip(where, factors, parts, strict=True):
        with place:
            products.append(product(factor, part))
    return concat(products, -1) if by == "columns" else add_n(products)


def split_evenly(tensor: Tensor, count: int, axis: int) -> list[Tensor]:
    """A tensor in ``count`` parts along an axis, as even as its size allows.

    Raises:
      ValueError: the axis has fewer elements.
    """
    size = tensor.shape[axis].value
    if size is None:
        return split(tensor, count, axis=axis)
    if size < count:
        raise ValueError(
            f"'{tensor.name}' of shape {tensor.shape} cannot be cut into {count} parts along axis "
            f"{axis}."
        )
    sizes = [size * (i + 1) // count - size * i // count for i in range(count)]
    return split(tensor, sizes, axis=axis)


def _beside(part: Any) -> Any:
    op = part.op if hasattr(part, "op") else convert_to_tensor(part).op
    return colocate_with(op)


def _axis_of(variable: Any) -> int:
    """Along which axis a matrix is partitioned; along both is not for products.

    Raises:
      ValueError: it is.
    """
    cut = [axis for axis, parts in enumerate(variable._get_partitions()) if parts > 1]
    if len(cut) > 1:
        raise ValueError(f"'{variable.name}' is partitioned along both axes.")
    return cut[0] if cut else 1


__all__ = ["SPLITS", "matmul", "split_evenly"]
