"""IndexedSlices: a tensor of which only some rows are given (sparse gradients)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from headrace.graph import dtypes
from headrace.graph.composite import PlacedElements
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import int_const
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_shape

#: Densifying more elements than this is worth a warning.
_LARGE = 100_000_000


@public("IndexedSlicesValue")
class IndexedSlicesValue(NamedTuple):
    """The value of IndexedSlices.

    >>> slices = tf.IndexedSlices(tf.constant([1.5]), tf.constant([4]), tf.constant([9]))
    >>> value = tf.Session().run(slices)
    >>> value.values, value.indices, value.dense_shape
    (array([1.5], dtype=float32), array([4], dtype=int32), array([9], dtype=int32))
    """

    values: Any
    indices: Any
    dense_shape: Any


@public("IndexedSlices")
class IndexedSlices(PlacedElements):
    """Rows of a larger tensor: ``dense[indices[i], ...] = values[i, ...]``, zero elsewhere.

    Rows with the same index add up. Gradients of ``tf.gather`` have this form.

    Args:
        values: ``[n, ...]`` of any numeric type.
        indices: ``[n]`` of int32 or int64.
        dense_shape: 1-D integer tensor, the shape of the dense tensor, or None.

    >>> table = tf.Variable(tf.zeros([1000, 2]))
    >>> [gradient] = tf.gradients(tf.nn.embedding_lookup(table, [7, 3]), [table])
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(gradient.indices), sess.run(gradient.values).tolist()
    (array([7, 3], dtype=int32), [[1.0, 1.0], [1.0, 1.0]])
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """Where the rows stand in the dense tensor."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the dense tensor, as a tensor."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the dense tensor, as far as it is known."""
        if self._dense_shape is None:
            dims = self._values.dims
            return TensorShape.of(None if dims is None else (None, *dims[1:]))
        return TensorShape.of(static_shape(self._dense_shape))

    @property
    def device(self) -> str:
        return self._values.device

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(raw.Neg(self._values), self._indices, self._dense_shape)

    @property
    def _elements(self) -> Tensor:
        return self._values

    def _parts(self) -> list[Tensor]:
        parts = [self._values, self._indices]
        return parts if self._dense_shape is None else [*parts, self._dense_shape]

    def _from_parts(self, parts: Sequence[Tensor]) -> Self:
        return type(self)(*parts)

    def _value(self, parts: Sequence[Any]) -> IndexedSlicesValue:
        values, indices, *shape = parts
        return IndexedSlicesValue(values, indices, shape[0] if shape else None)

    def _fed(self, value: Any) -> Sequence[Any]:
        return list(value)[: len(self._parts())]

    def __str__(self) -> str:
        shape = f", dense_shape={self._dense_shape}" if self._dense_shape is not None else ""
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    __repr__ = __str__

    def _to_tensor(self, dtype: DType | None, name: str | None) -> Tensor:
        """The dense tensor."""
        if dtype is not None and dtype is not self.dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype "
                f"{self.dtype.name}"
            )
        if self._dense_shape is None:
            raise ValueError(
                "Tensor conversion requested for IndexedSlices without dense_shape: "
                f"{self!s}. Its number of rows is not known."
            )
        sizes = static_shape(self._dense_shape)
        if sizes is not None and sizes and sizes[0] is not None:
            rows = int_const(sizes[0])
            _warn_if_large(sizes)
        else:
            rows = raw.StridedSlice(
                self._dense_shape,
                int_const([0]),
                int_const([1]),
                int_const([1]),
                shrink_axis_mask=1,
            )
        return raw.UnsortedSegmentSum(self._values, self._indices, rows, name=name)


def _warn_if_large(sizes: Sequence[int | None]) -> None:
    total = 1
    for size in sizes:
        total *= size or 1
    if total >= _LARGE:
        warnings.warn(
            f"Converting sparse IndexedSlices to a dense Tensor with {total} elements. "
            "This may consume a large amount of memory.",
            stacklevel=4,
        )


@public("convert_to_tensor_or_indexed_slices")
def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """``value`` as a Tensor of the same shape, or as it is when it is IndexedSlices already.

    Raises:
        TypeError: if ``value`` cannot be converted.
        ValueError: if IndexedSlices have another type than ``dtype``.
    """
    if isinstance(value, IndexedSlices):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for "
                f"IndexedSlices with dtype {value.dtype.name}"
            )
        return value
    return convert_to_tensor(value, dtype, name)


def convert_n_to_tensor_or_indexed_slices(
    values: Sequence[Any], dtype: Any = None, name: str | None = None
) -> list[Any]:
    """Each of ``values`` (None stays None) through ``convert_to_tensor_or_indexed_slices``."""
    return [
        None
        if v is None
        else convert_to_tensor_or_indexed_slices(v, dtype, None if name is None else f"{name}_{i}")
        for i, v in enumerate(values)
    ]
