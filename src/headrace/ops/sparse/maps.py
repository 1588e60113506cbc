"""Sparse tensors kept between steps: queues hold a number in the place of each."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import EXTERNAL, HostResource, NotDifferentiable, define_op

_NO_GRADIENT = NotDifferentiable("the tensors are handed over between steps")

#: Indices, values and shape.
Parts = tuple[Any, Any, Any]


class _MapKey(NamedTuple):
    """Names a map in the state of a session."""

    container: str
    name: str


class SparseTensorsMap(HostResource):
    """Sparse tensors by number; each is taken once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._tensors: dict[int, Parts] = {}

    def add(self, tensors: Sequence[Parts]) -> list[int]:
        """Keep tensors; returns their numbers."""
        with self._lock:
            numbers = list(itertools.islice(self._numbers, len(tensors)))
            self._tensors.update(zip(numbers, tensors, strict=True))
        return numbers

    def take(self, numbers: Sequence[int]) -> list[Parts]:
        """Give tensors back.

        Raises:
            InvalidArgumentError: if there is none of some number; then all stay.
        """
        with self._lock:
            for number in numbers:
                if number not in self._tensors:
                    message = f"Unable to find SparseTensor: {number} in map"
                    raise InvalidArgumentError(None, None, message)
            return [self._tensors.pop(number) for number in numbers]

    def abandon(self) -> None:
        """Nobody ever waits for a map."""


def _map(context: Any, container: str, shared_name: str) -> SparseTensorsMap:
    key = _MapKey(container, shared_name or context.node.name)
    found = context.store.object(key, SparseTensorsMap)
    result: SparseTensorsMap = found
    return result


def _checked(indices: Any, values: Any, dense_shape: Any) -> Parts:
    if indices.ndim != 2 or values.ndim != 1 or dense_shape.ndim != 1:
        problem = "indices must be a matrix, values and shape vectors"
    elif len(indices) != len(values) or indices.shape[1] != len(dense_shape):
        problem = "indices, values and shape do not fit"
    else:
        return indices, values, dense_shape
    shapes = ", ".join(shape_text(tuple(p.shape)) for p in (indices, values, dense_shape))
    raise InvalidArgumentError(None, None, f"{problem}: their shapes are {shapes}")


def _add(
    context: Any, indices: Any, values: Any, dense_shape: Any, *, container: str, shared_name: str
) -> Any:
    own = context.owned
    parts = _checked(own(indices), own(values), own(dense_shape))
    return np.int64(_map(context, container, shared_name).add([parts])[0])


def _add_many(
    context: Any, indices: Any, values: Any, dense_shape: Any, *, container: str, shared_name: str
) -> Any:
    _checked(indices, values, dense_shape)
    if len(dense_shape) < 2:
        message = f"The rank must be at least 2, but is {len(dense_shape)}"
        raise InvalidArgumentError(None, None, message)
    rows, inner = indices[:, 0], dense_shape[1:].copy()
    count = int(dense_shape[0])
    if len(rows) and (rows.min() < 0 or rows.max() >= count or np.any(np.diff(rows) < 0)):
        message = f"The indices are not in order along dimension 0, or not in [0, {count})"
        raise InvalidArgumentError(None, None, message)
    ends = np.searchsorted(rows, np.arange(count + 1))
    tensors = [
        (indices[a:b, 1:].copy(), values[a:b].copy(), inner)
        for a, b in itertools.pairwise(ends.tolist())
    ]
    numbers = _map(context, container, shared_name).add(tensors)
    return np.array(numbers, np.int64)


def _take_many(
    context: Any, numbers: Any, *, dtype: Any, container: str, shared_name: str
) -> tuple[Any, Any, Any]:
    if numbers.ndim != 1 or not len(numbers):
        message = f"sparse_handles must be a vector with elements, not {shape_text(numbers.shape)}"
        raise InvalidArgumentError(None, None, message)
    taken = _map(context, container, shared_name).take(numbers.tolist())
    ranks = {len(shape) for _, _, shape in taken}
    if len(ranks) > 1:
        message = f"The sparse tensors have different ranks: {sorted(ranks)}"
        raise InvalidArgumentError(None, None, message)
    for _, values, _ in taken:
        if values.dtype != dtype.np_dtype:
            message = f"The sparse tensors are of {values.dtype}, not {dtype.name}"
            raise InvalidArgumentError(None, None, message)
    rows = np.repeat(np.arange(len(taken)), [len(v) for _, v, _ in taken])
    indices = np.column_stack([rows, np.concatenate([i for i, _, _ in taken])])
    shape = np.array([len(taken), *np.max([s for _, _, s in taken], axis=0)], np.int64)
    return indices.astype(np.int64), np.concatenate([v for _, v, _ in taken]), shape


def _count_dims(op: Operation) -> list[Dims]:
    for tensor, rank in zip(op.inputs, (2, 1, 1), strict=True):
        if tensor.dims is not None and len(tensor.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(tensor.dims)}.")
    return [() if op.type == "AddSparseToTensorsMap" else (None,)]


_SPARSE = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_NAMES = "container: string = '', shared_name: string = ''"

for _signature, _host in (
    (f"AddSparseToTensorsMap({_SPARSE}) -> sparse_handle: int64", _add),
    (f"AddManySparseToTensorsMap({_SPARSE}) -> sparse_handles: int64", _add_many),
):
    define_op(
        _signature,
        attrs=f"T: type, {_NAMES}",
        shape=_count_dims,
        host=_host,
        effects=EXTERNAL,
        gradient=_NO_GRADIENT,
    )

define_op(
    "TakeManySparseFromTensorsMap(sparse_handles: int64)"
    " -> (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)",
    attrs=f"dtype: type, {_NAMES}",
    shape=lambda op: [(None, None), (None,), (None,)],
    host=_take_many,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)
