"""Descriptions of the parts of elements, as `Dataset.element_spec` gives them."""

from __future__ import annotations

from typing import Any

from headrace.data import structure as nested
from headrace.data.dataset import Dataset, check_dataset
from headrace.data.iterators import Iterator
from headrace.data.optionals import Optional
from headrace.data.structure import Component, DatasetComponent, RaggedComponent, SparseComponent
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.ragged.ragged_tensor import RaggedTensor
from headrace.ops.sparse.sparse_tensor import SparseTensor


class TypeSpec:
    """What is known of a value before it is there: its kind, dtype and static shape.

    >>> import headrace as tf
    >>> isinstance(tf.TensorSpec([2], tf.int32), tf.TypeSpec)
    True
    """

    #: The class of the values.
    value_type: Any = Tensor

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = shape if isinstance(shape, TensorShape) else TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of elements."""
        return self._dtype

    def _key(self) -> tuple[Any, ...]:
        return (self._dtype, self._shape.as_tuple)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether another description, or a value, may be of this one's kind, dtype and shape."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            other = get_structure_of_value(other)
        return (
            type(self) is type(other)
            and self._dtype == other._dtype
            and self._shape.is_compatible_with(other._shape)
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), *self._key()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shape}, {self._dtype!r})"

    def _leaf(self) -> Component:
        return Component(self._dtype, self._shape)


class TensorSpec(TypeSpec):
    """A tensor of a dtype and a static shape.

    >>> import headrace as tf
    >>> tf.data.Dataset.range(3).batch(2).element_spec
    TensorSpec(shape=(?,), dtype=tf.int64, name=None)
    """

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32, name: Any = None) -> None:
        super().__init__(shape, dtype)
        self._name = name

    @property
    def name(self) -> Any:
        """What it is called; None if nothing."""
        return self._name

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._name)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


class SparseTensorSpec(TypeSpec):
    """A SparseTensor of a dtype and a static dense shape.

    >>> import headrace as tf
    >>> sparse = tf.SparseTensor([[0]], [1.0], [3])
    >>> tf.data.Dataset.from_tensors(sparse).element_spec
    SparseTensorSpec((3,), tf.float32)
    """

    value_type = SparseTensor

    def _leaf(self) -> Component:
        return SparseComponent(self._dtype, self._shape)


class RaggedTensorSpec(TypeSpec):
    """A RaggedTensor of a dtype, a static shape and a number of ragged dimensions.

    >>> import headrace as tf
    >>> tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])).element_spec
    RaggedTensorSpec((2, ?), tf.int32, 1, tf.int64)
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        super().__init__(shape, dtype)
        if ragged_rank is None:
            if self._shape.ndims is None:
                raise ValueError("Must specify ragged_rank or a shape of known rank.")
            ragged_rank = self._shape.ndims - 1
        self._ragged_rank = ragged_rank
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)

    @property
    def value_type(self) -> Any:
        """The class of the values: rows of ragged tensors may be dense."""
        return RaggedTensor if self._ragged_rank else Tensor

    @property
    def ragged_rank(self) -> int:
        """How many dimensions have rows of different lengths."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """The type of row splits."""
        return self._row_splits_dtype

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._ragged_rank, self._row_splits_dtype)

    def __repr__(self) -> str:
        rest = f"{self._ragged_rank}, {self._row_splits_dtype!r}"
        return f"RaggedTensorSpec({self._shape}, {self._dtype!r}, {rest})"

    def _leaf(self) -> Component:
        splits = self._row_splits_dtype
        return RaggedComponent(self._dtype, self._shape, self._ragged_rank, splits).in_any()


class _StructureSpec(TypeSpec):
    """A value that holds a nested structure of others."""

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        super().__init__(dataset_shape, dtypes.variant)
        self._element_spec = element_spec

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), tuple(nested.flatten(self._element_spec)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._element_spec!r}, {self._shape})"


class DatasetSpec(_StructureSpec):
    """A dataset whose elements are described by ``element_spec``.

    >>> import headrace as tf
    >>> tf.data.Dataset.range(4).window(2).element_spec
    DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), ())
    """

    value_type = Dataset

    @property
    def element_spec(self) -> Any:
        """The description of an element."""
        return self._element_spec

    def _leaf(self) -> Component:
        return DatasetComponent(structure_of_spec(self._element_spec), Dataset)


class OptionalSpec(_StructureSpec):
    """A `tf.data.experimental.Optional` whose value, if it has one, is described.

    >>> import headrace as tf
    >>> tf.OptionalSpec(tf.TensorSpec([], tf.int64))
    OptionalSpec(TensorSpec(shape=(), dtype=tf.int64, name=None), ())
    """

    value_type = Optional

    def __init__(self, value_structure: Any) -> None:
        super().__init__(value_structure)


def _spec(leaf: Any) -> TypeSpec:
    if isinstance(leaf, DatasetComponent):
        return DatasetSpec(spec_of_structure(leaf.structure))
    if isinstance(leaf, SparseComponent):
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf, RaggedComponent):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.ragged_rank, leaf.splits_type)
    return TensorSpec(leaf.shape, leaf.dtype)


def spec_of_structure(structure: Any) -> Any:
    """The descriptions of the leaves of a structure of elements."""
    return nested.map_leaves(_spec, structure)


def structure_of_spec(spec: Any) -> Any:
    """The structure that descriptions stand for; leaves of structures stay what they are."""
    return nested.map_leaves(lambda s: s._leaf() if isinstance(s, TypeSpec) else s, spec)


def get_structure_of_value(value: Any) -> Any:
    """The descriptions of the parts of a value."""
    if isinstance(value, Optional):
        return OptionalSpec(value.value_structure)
    return spec_of_structure(nested.of_value(value))


def get_structure(dataset_or_iterator: Any) -> Any:
    """The descriptions of the parts of an element: of shapes, dtypes and kinds.

    Raises:
        TypeError: if that is neither a dataset nor an iterator.
    """
    if not isinstance(dataset_or_iterator, (Dataset, Iterator)):
        raise TypeError(
            "`dataset_or_iterator` must be a Dataset or Iterator object, "
            f"but got {type(dataset_or_iterator)}."
        )
    return spec_of_structure(dataset_or_iterator._structure)


#: The older names.
Structure, DatasetStructure, OptionalStructure = TypeSpec, DatasetSpec, OptionalSpec


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:
    """`tf.TensorSpec`, by its older name, of a dtype and a shape.

    Raises:
        TypeError: if ``dtype`` is none.
    """
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:
    """`tf.SparseTensorSpec`, by its older name, of a dtype and a dense shape.

    Raises:
        TypeError: if ``dtype`` is none.
    """
    return SparseTensorSpec(shape, dtype)


def RaggedTensorStructure(dtype: Any, shape: Any, ragged_rank: int) -> RaggedTensorSpec:
    """`tf.RaggedTensorSpec`, by its older name, of a dtype and a shape.

    Raises:
        TypeError: if ``dtype`` is none.
    """
    return RaggedTensorSpec(shape, dtype, ragged_rank)


def to_variant(dataset: Dataset) -> Tensor:
    """The scalar variant tensor that stands for a dataset in the graph.

    Raises:
        TypeError: if ``dataset`` is none.
    """
    check_dataset(dataset)
    return dataset._variant_tensor


def from_variant(variant: Any, structure: Any) -> Dataset:
    """The dataset that a scalar variant tensor stands for.

    Args:
        structure: what `get_structure` says of its elements.

    Raises:
        TypeError: if ``variant`` is no tensor.
    """
    if not isinstance(variant, Tensor):
        raise TypeError(f"Expected a variant tensor, not {variant!r:.100}.")
    return Dataset(raw.Identity(variant), structure_of_spec(structure))


__all__ = [
    "DatasetSpec",
    "DatasetStructure",
    "OptionalSpec",
    "OptionalStructure",
    "RaggedTensorSpec",
    "RaggedTensorStructure",
    "SparseTensorSpec",
    "SparseTensorStructure",
    "Structure",
    "TensorSpec",
    "TensorStructure",
    "TypeSpec",
    "from_variant",
    "get_structure",
    "spec_of_structure",
    "structure_of_spec",
    "to_variant",
]
