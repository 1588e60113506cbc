"""Partitioned variables: one tensor kept as several variables, split along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.state.variables import Variable


class PartitionInfo:
    """Which part of a partitioned variable an initialiser makes."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        self.full_shape = list(full_shape)
        self.var_offset = list(var_offset)

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset along the axis that is split; 0 when none is."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis along which a part of ``shape`` is smaller than the whole; None if none is."""
        smaller = [i for i, n in enumerate(self.full_shape) if n != shape[i]]
        if len(smaller) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape {list(shape)} and full_shape "
                f"{self.full_shape} since slice dim could be one of {smaller}"
            )
        return smaller[0] if smaller else None


class PartitionedVariable:
    """A list of variables that stand for one tensor: their concatenation.

    Iterating gives the parts; where a tensor is needed, the parts are concatenated.
    """

    __array_priority__ = 100

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: Any,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        self._name = name
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._parts = list(variable_list)
        self._partitions = list(partitions)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    @property
    def graph(self) -> Any:
        return self._parts[0].graph

    @property
    def initializer(self) -> Operation:
        """An operation that gives all parts their initial values."""
        return group(*[v.initializer for v in self._parts])

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def _get_variable_list(self) -> list[Variable]:
        return self._parts

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        split = [i for i, n in enumerate(self._partitions) if n > 1]
        return split or [0]

    def as_tensor(self) -> Tensor:
        """The concatenation of the parts."""
        graph = get_default_graph()
        if len(self._parts) == 1:
            whole = self._parts[0].value()
        else:
            with graph.name_scope(f"{self._name}/ConcatPartitions/"):
                whole = raw.ConcatV2(
                    [v.value() for v in self._parts], self._partition_axes()[0], name="concat"
                )
        with graph.name_scope(None):
            result: Tensor = raw.Identity(whole, name=self._name)
            return result

    def _to_tensor(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        if dtype is not None and dtype is not self._dtype:
            raise ValueError(
                f"Incompatible type conversion requested to type '{dtype.name}' for variable of "
                f"type '{self._dtype.name}' ({self._name}). Use tf.cast to convert."
            )
        return self.as_tensor()

    def _split(self, value: Any) -> list[Tensor]:
        """The part of ``value`` that belongs to each variable."""
        if isinstance(value, PartitionedVariable):
            return [v.value() for v in value]
        if isinstance(value, (list, tuple)) and len(value) == len(self._parts):
            shapes = [getattr(v, "shape", None) for v in value]
            if all(shape is not None for shape in shapes):
                return [convert_to_tensor(v, self._dtype) for v in value]
        whole = convert_to_tensor(value, self._dtype, "value")
        axis = self._partition_axes()[0]
        sizes = [v.shape.as_list()[axis] for v in self._parts]
        return list(raw.SplitV(whole, sizes, axis, num_split=len(sizes)))

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Set all parts from one tensor, or from a list of one tensor per part."""
        parts = zip(self._parts, self._split(value), strict=True)
        return [v.assign(x, name=name, read_value=read_value) for v, x in parts]

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Add to all parts."""
        parts = zip(self._parts, self._split(delta), strict=True)
        return [v.assign_add(x, name=name, read_value=read_value) for v, x in parts]

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Subtract from all parts."""
        parts = zip(self._parts, self._split(delta), strict=True)
        return [v.assign_sub(x, name=name, read_value=read_value) for v, x in parts]

    def __repr__(self) -> str:
        return (
            f"<tf.PartitionedVariable '{self._name}' shape={self._shape} dtype={self._dtype.name} "
            f"in {len(self._parts)} parts>"
        )


def parts_of(variable: Any) -> list[Any]:
    """The variables that a variable consists of: itself, or its parts."""
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def _install_operators() -> None:
    def forward(operator: str) -> Callable[..., Any]:
        def method(self: PartitionedVariable, *args: Any) -> Any:
            return getattr(Tensor, operator)(self.as_tensor(), *args)

        method.__name__ = operator
        return method

    for operator in Variable.OPERATORS:
        setattr(PartitionedVariable, operator, forward(operator))


_install_operators()


# -- how to split ---------------------------------------------------------------------------------


def call_partitioner(partitioner: Any, shape: TensorShape, dtype: DType) -> list[int]:
    """How many parts along each axis the partitioner wants, checked.

    Raises:
        ValueError: if the shape is not known, or the answer does not fit it.
        TypeError: if the answer holds anything but integers.
    """
    if not shape.is_fully_defined():
        raise ValueError(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}."
        )
    if not shape.as_list():
        raise ValueError(
            f"Shape of a new partitioned variable must have rank at least 1, but instead was "
            f"{shape}."
        )
    slicing = partitioner(shape=shape, dtype=dtype)
    if not isinstance(slicing, (list, tuple)):
        raise ValueError(f"Partitioner must return a sequence, but saw: {slicing}")
    if len(slicing) != len(shape):
        raise ValueError(
            "Partitioner returned a partition list that does not match the Variable's rank: "
            f"{slicing} vs. {shape}"
        )
    if not all(isinstance(n, (int, np.integer)) for n in slicing):
        raise TypeError(f"Partitioner must return integers, one for each axis; it gave {slicing}")
    if any(n < 1 for n in slicing):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {slicing}")
    if sum(n > 1 for n in slicing) > 1:
        raise ValueError(
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: "
            f"{list(slicing)}"
        )
    return [int(n) for n in slicing]


def slices(
    shape: Sequence[int], partitions: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Offset and shape of each part; where sizes do not divide, the first parts are larger.

    Raises:
        ValueError: if there are more parts than elements.
    """
    axis = next((i for i, n in enumerate(partitions) if n > 1), 0)
    count = partitions[axis]
    if count > shape[axis]:
        raise ValueError(
            f"Cannot split axis {axis} of shape {list(shape)} into {count} parts: it has only "
            f"{shape[axis]} elements."
        )
    size, larger = divmod(shape[axis], count)
    start = 0
    for i in range(count):
        offset, part = [0] * len(shape), list(shape)
        offset[axis], part[axis] = start, size + (i < larger)
        yield offset, part
        start += part[axis]


Partitioner = Callable[..., list[int]]


def _only(axis: int, count: int, rank: int) -> list[int]:
    partitions = [1] * rank
    partitions[axis] = count
    return partitions


@public("fixed_size_partitioner")
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Split along ``axis`` into ``num_shards`` parts, or fewer when there are fewer elements.

    Returns:
        A function from the ``shape`` of a variable, fully known, and its ``dtype`` to a list with
        the number of parts along each axis.

    Raises:
        ValueError: if ``num_shards`` is not positive; from the function, if the shape does not
            have the axis or does not tell its size.
    """
    if num_shards < 1:
        raise ValueError(f"num_shards must be positive, got {num_shards}")

    def partitioner(shape: TensorShape, **_: Any) -> list[int]:
        dims = TensorShape(shape).as_list()
        if not -len(dims) <= axis < len(dims) or dims[axis] is None:
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is {dims}.")
        size: Any = dims[axis]
        return _only(axis, min(size, num_shards), len(dims))

    return partitioner


def _element_bytes(dtype: Any, bytes_per_string_element: int) -> int:
    kind = dtypes.as_dtype(dtype).base_dtype
    return bytes_per_string_element if kind is dtypes.string else int(kind.size)


@public("variable_axis_size_partitioner")
def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Split along ``axis`` so that no part is larger than ``max_shard_bytes``.

    Returns a function from ``shape`` and ``dtype`` to a list with the parts along each axis.

    Raises:
        ValueError: if a size is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive. Currently, "
            f"max_shard_bytes is {max_shard_bytes} and bytes_per_string_element is "
            f"{bytes_per_string_element}"
        )
    if max_shards is not None and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        dims: Any = TensorShape(shape).as_list()
        element = _element_bytes(dtype, bytes_per_string_element)
        slice_bytes = math.prod(dims) // max(1, dims[axis]) * element
        per_shard = max(1, max_shard_bytes // max(1, slice_bytes))
        count = math.ceil(dims[axis] / per_shard)
        if max_shards is not None:
            count = min(max_shards, count)
        return _only(axis, max(1, count), len(dims))

    return partitioner


@public("min_max_variable_partitioner")
def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Split along ``axis`` into at most ``max_partitions`` parts of at least ``min_slice_size``.

    Args:
        min_slice_size: bytes of a part.
        bytes_per_string_element: what a string counts as.

    Returns:
        A function from the ``shape`` of a variable, fully known, and its ``dtype`` to a list with
        the number of parts along each axis.

    Raises:
        ValueError: if ``max_partitions`` or ``min_slice_size`` is not positive; from the function,
            if the shape does not have the axis.
    """
    if max_partitions < 1 or min_slice_size < 1:
        raise ValueError(
            "max_partitions and min_slice_size must be positive, got "
            f"{max_partitions} and {min_slice_size}"
        )

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        dims: Any = TensorShape(shape).as_list()
        if axis >= len(dims):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is {dims}.")
        total = math.prod(dims) * _element_bytes(dtype, bytes_per_string_element)
        count = min(dims[axis], max_partitions, max(1, math.ceil(total / min_slice_size)))
        return _only(axis, max(1, count), len(dims))

    return partitioner
