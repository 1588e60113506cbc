"""The structure of a dataset's elements: nested tuples and dicts of leaves.

A leaf is a tensor, a sparse or ragged tensor, or a dataset; each is one component of a flat
element. Lists are values, not structure, as for TensorFlow: ``[1, 2]`` is a vector.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import headrace.graph.dtypes as dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.ragged.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from headrace.ops.ragged.value import RaggedTensorValue
from headrace.ops.sparse.serial import deserialize_sparse, serialize_sparse
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue


class Component:
    """One component of elements.

    Attributes:
        dtype, shape: as the user sees them; ``flat_type``, ``flat_shape``: of the component.
    """

    python_class: type = Tensor

    def __init__(self, dtype: DType, shape: Any) -> None:
        self.dtype = dtype
        self.shape = TensorShape(shape) if not isinstance(shape, TensorShape) else shape

    @property
    def flat_type(self) -> DType:
        return self.dtype

    @property
    def flat_shape(self) -> TensorShape:
        return self.shape

    def component(self, value: Any) -> Tensor:
        """The component of a value."""
        return convert_to_tensor(value, self.dtype)

    def value(self, component: Tensor) -> Any:
        """What the user gets of a component."""
        component.set_shape(self.flat_shape)
        return component

    def with_shape(self, shape: Any) -> Component:
        """The same kind of leaf in another shape."""
        return type(self)(self.dtype, shape)

    def batched(self, size: int | None) -> Component:
        """The leaf of a batch of these."""
        return self.with_shape(TensorShape([size]).concatenate(self.shape))

    def unbatched(self) -> Component:
        """The leaf of one of a batch; raises ValueError for scalars."""
        if self.shape.ndims is None:
            return self.with_shape(None)
        if self.shape.ndims == 0:
            raise ValueError("A scalar has no first axis along which it can be unbatched.")
        return self.with_shape(self.shape[1:])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Component)
            and type(self) is type(other)
            and self.dtype == other.dtype
            and self.shape.as_tuple == other.shape.as_tuple
        )

    def __hash__(self) -> int:
        return hash((type(self), self.dtype, self.shape.as_tuple))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype.name}, {self.shape})"


class SparseComponent(Component):
    """A sparse tensor, as the three strings that `tf.io.serialize_sparse` makes of it."""

    python_class = SparseTensor
    _batch = TensorShape([])

    @property
    def flat_type(self) -> DType:
        return dtypes.string

    @property
    def flat_shape(self) -> TensorShape:
        return self._batch.concatenate([3])

    def component(self, value: Any) -> Tensor:
        return serialize_sparse(SparseTensor.from_value(value))

    def value(self, component: Tensor) -> Any:
        component.set_shape(self.flat_shape)
        return deserialize_sparse(component, self.dtype, self.shape.ndims)

    def batched(self, size: int | None) -> Component:
        made = super().batched(size)
        assert isinstance(made, SparseComponent)
        made._batch = TensorShape([size]).concatenate(self._batch)
        return made

    def unbatched(self) -> Component:
        if not self._batch.ndims:
            raise NotImplementedError("A sparse tensor that is no batch cannot be unbatched.")
        made = super().unbatched()
        assert isinstance(made, SparseComponent)
        made._batch = self._batch[1:]
        return made


class RaggedComponent(Component):
    """A ragged tensor, as the strings of its parts (`headrace.ops.ragged.serial`).

    Attributes:
        ragged_rank: of the whole; 0 for rows of a ragged tensor that are dense by themselves.
        splits_type: of its row splits.
    """

    #: The axis along which rows are strings of their own, if there is one; None if that is open.
    _batch: TensorShape | None = TensorShape([])

    def __init__(
        self, dtype: DType, shape: Any, ragged_rank: int, splits_type: DType = dtypes.int64
    ) -> None:
        super().__init__(dtype, shape)
        self.ragged_rank, self.splits_type = ragged_rank, splits_type

    @property
    def python_class(self) -> type:  # type: ignore[override]
        return RaggedTensor if self.ragged_rank else Tensor

    @property
    def flat_type(self) -> DType:
        return dtypes.string

    @property
    def _batch_rank(self) -> int:
        return 0 if self._batch is None else self._batch.ndims or 0

    @property
    def flat_shape(self) -> TensorShape:
        if self._batch is None:
            return TensorShape(None)
        return self._batch.concatenate([self.ragged_rank - self._batch_rank + 1])

    def component(self, value: Any) -> Tensor:
        ragged = self._as_ragged(value)
        splits = list(ragged.nested_row_splits) if isinstance(ragged, RaggedTensor) else []
        values = ragged.flat_values if isinstance(ragged, RaggedTensor) else ragged
        made: Tensor = raw.SerializeRagged(
            [raw.Cast(s, DstT=self.splits_type) for s in splits],
            values,
            Tsplits=self.splits_type,
            is_batch=bool(self._batch_rank),
        )
        return made

    def _as_ragged(self, value: Any) -> Any:
        if not self.ragged_rank:
            return convert_to_tensor(value, self.dtype)
        if not isinstance(value, (RaggedTensor, RaggedTensorValue)):
            value = RaggedTensor.from_tensor(
                convert_to_tensor(value, self.dtype), ragged_rank=self.ragged_rank
            )
        return convert_to_tensor_or_ragged_tensor(value)

    def value(self, component: Tensor) -> Any:
        component.set_shape(self.flat_shape)
        inner = self.shape[self.ragged_rank + 1 :] if self.shape.ndims is not None else None
        splits, values = raw.DeserializeRagged(
            component,
            N=self.ragged_rank,
            T=self.dtype,
            Tsplits=self.splits_type,
            row_shape=TensorShape(inner),
        )
        if self.ragged_rank:
            return RaggedTensor.from_nested_row_splits(values, splits, validate=False)
        values.set_shape(self.shape)
        return values

    def with_shape(self, shape: Any) -> Component:
        made = copy.copy(self)
        made.shape = TensorShape(shape)
        return made

    def batched(self, size: int | None) -> Component:
        made = self.with_shape(TensorShape([size]).concatenate(self.shape))
        assert isinstance(made, RaggedComponent)
        made.ragged_rank += 1
        made._batch = TensorShape([size])
        return made

    def unbatched(self) -> Component:
        if not self._batch_rank:
            raise ValueError("A ragged tensor that is not held as rows cannot be unbatched.")
        made = self.with_shape(self.shape[1:])
        assert isinstance(made, RaggedComponent)
        made.ragged_rank -= 1
        made._batch = TensorShape([])
        return made

    def in_one(self) -> Component:
        """The same ragged tensor, as strings of the whole."""
        return self if self._batch == TensorShape([]) else self._held(TensorShape([]))

    def in_any(self) -> Component:
        """The same ragged tensor, in either form: strings tell which it is."""
        return self._held(None)

    def _held(self, batch: TensorShape | None) -> Component:
        made = copy.copy(self)
        made._batch = batch
        return made

    def in_rows(self) -> Component:
        """The same ragged tensor, each row along its first axis by itself."""
        if self._batch_rank:
            return self
        return self._held(self.shape[:1] if self.shape.ndims else TensorShape([None]))

    def __eq__(self, other: object) -> bool:
        return (
            super().__eq__(other)
            and isinstance(other, RaggedComponent)
            and self.ragged_rank == other.ragged_rank
            and self.splits_type == other.splits_type
        )

    __hash__ = Component.__hash__


def in_one(leaf: Component) -> Component:
    """A leaf whose values are components by themselves."""
    return leaf.in_one() if isinstance(leaf, RaggedComponent) else leaf


def in_rows(leaf: Component) -> Component:
    """A leaf whose components have the first axis of its values."""
    return leaf.in_rows() if isinstance(leaf, RaggedComponent) else leaf


class DatasetComponent(Component):
    """A dataset whose elements have ``structure``."""

    def __init__(self, structure: Any, make: Callable[[Tensor, Any], Any]) -> None:
        super().__init__(dtypes.variant, [])
        self.structure, self._make = structure, make

    def component(self, value: Any) -> Tensor:
        tensor: Tensor = value._variant_tensor
        return tensor

    def value(self, component: Tensor) -> Any:
        return self._make(component, self.structure)

    def with_shape(self, shape: Any) -> Component:
        return self


# -- nested -------------------------------------------------------------------------------------


def is_nested(value: Any) -> bool:
    """Whether a value is a part of the structure, not a leaf."""
    if isinstance(value, SparseTensorValue):
        return False
    return isinstance(value, (tuple, Mapping))


def _keys(value: Mapping[Any, Any]) -> list[Any]:
    return sorted(value)


def flatten(structure: Any) -> list[Any]:
    """The leaves, those of dicts in the order of their keys."""
    if not is_nested(structure):
        return [structure]
    if isinstance(structure, Mapping):
        return [leaf for key in _keys(structure) for leaf in flatten(structure[key])]
    return [leaf for item in structure for leaf in flatten(item)]


def pack(structure: Any, leaves: Sequence[Any]) -> Any:
    """The same structure with other leaves."""
    remaining = iter(leaves)

    def made(form: Any) -> Any:
        if not is_nested(form):
            return next(remaining)
        if isinstance(form, Mapping):
            found = {key: made(form[key]) for key in _keys(form)}
            ordered = {key: found[key] for key in form}
            kind: Any = type(form)
            return ordered if kind is dict else kind(ordered)
        items = [made(item) for item in form]
        return type(form)(*items) if hasattr(form, "_fields") else tuple(items)

    return made(structure)


def map_leaves(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """``function`` of each leaf, with what the others have at its place."""
    columns = [flatten(structure), *[flatten_up_to(structure, other) for other in others]]
    return pack(structure, [function(*leaf) for leaf in zip(*columns, strict=True)])


def flatten_up_to(structure: Any, other: Any) -> list[Any]:
    """What ``other`` has at the leaves of ``structure``.

    Raises:
        ValueError, TypeError: if it has another structure.
    """
    if not is_nested(structure):
        return [other]
    if isinstance(structure, Mapping):
        if not isinstance(other, Mapping) or set(other) != set(structure):
            keys = _keys(structure)
            raise ValueError(f"Expected a dict with the keys {keys}, but got {other!r}.")
        return [x for key in _keys(structure) for x in flatten_up_to(structure[key], other[key])]
    if not isinstance(other, (tuple, list)) or len(other) != len(structure):
        message = f"Expected a tuple of {len(structure)}, but got {other!r}."
        raise ValueError(message)
    pairs = zip(structure, other, strict=True)
    return [x for item, part in pairs for x in flatten_up_to(item, part)]


def of_value(value: Any) -> Any:
    """The structure of a value: datasets, sparse tensors, tensors, nested in tuples and dicts.

    Lists and arrays count as tensors.
    """

    def leaf(item: Any) -> Component:
        if hasattr(item, "_variant_tensor") and hasattr(item, "_structure"):
            return DatasetComponent(item._structure, item._of)
        if isinstance(item, (SparseTensor, SparseTensorValue)):
            sparse = SparseTensor.from_value(item)
            return SparseComponent(sparse.dtype, sparse.get_shape())
        if isinstance(item, (RaggedTensor, RaggedTensorValue)):
            ragged = convert_to_tensor_or_ragged_tensor(item)
            splits = ragged.row_splits.dtype
            return RaggedComponent(ragged.dtype, ragged.shape, ragged.ragged_rank, splits)
        tensor = convert_to_tensor(item)
        return Component(tensor.dtype, tensor.shape)

    return pack(value, [leaf(item) for item in flatten(value)])


def flat_attrs(structure: Any) -> dict[str, Any]:
    """``output_types`` and ``output_shapes`` of a dataset op."""
    return {"output_types": flat_types(structure), "output_shapes": flat_shapes(structure)}


def flat_types(structure: Any) -> list[DType]:
    """The types of the components."""
    return [leaf.flat_type for leaf in flatten(structure)]


def flat_shapes(structure: Any) -> list[TensorShape]:
    """The shapes of the components."""
    return [leaf.flat_shape for leaf in flatten(structure)]


def components(structure: Any, value: Any) -> list[Tensor]:
    """The components of a value of this structure."""
    leaves = zip(flatten(structure), flatten_up_to(structure, value), strict=True)
    return [leaf.component(item) for leaf, item in leaves]


def values(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """What the user gets of components."""
    leaves = zip(flatten(structure), tensors, strict=True)
    return pack(structure, [leaf.value(tensor) for leaf, tensor in leaves])


def of_types(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The structure that 1.x writes as nested types, shapes and classes.

    Args:
        shapes: by default unknown; ``classes``: by default tensors.
    """
    flat = [dtypes.as_dtype(t) for t in flatten(types)]
    sizes = [None] * len(flat) if shapes is None else _shapes_up_to(types, shapes)
    kinds = [Tensor] * len(flat) if classes is None else flatten_up_to(types, classes)
    leaves = zip(flat, sizes, kinds, strict=True)
    return pack(types, [_leaf_of(*leaf) for leaf in leaves])


def _leaf_of(dtype: DType, size: Any, kind: Any) -> Component:
    shape = TensorShape(size)
    if kind is SparseTensor:
        return SparseComponent(dtype, shape)
    if kind is RaggedTensor:
        if shape.ndims is None:
            raise ValueError("The rank of a ragged tensor must be known.")
        return RaggedComponent(dtype, shape, shape.ndims - 1).in_any()
    return Component(dtype, shape)


def _shapes_up_to(types: Any, shapes: Any) -> list[Any]:
    """The shapes of leaves; a tuple may be a shape where the types have a leaf."""
    if not is_nested(types):
        return [shapes]
    return flatten_up_to(types, shapes)


__all__: list[str] = []
